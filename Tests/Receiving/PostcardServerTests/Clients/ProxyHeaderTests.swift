import NIOCore
import Testing

@testable import PostcardReception
@testable import PostcardServer

/// PROXY headers as proxies write them.
enum ProxyHeaderBytes {
    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    static func header(command: UInt8 = 0x21, family: UInt8, _ block: [UInt8], length: Int? = nil) -> [UInt8] {
        let length = length ?? block.count
        return signature + [command, family, UInt8(length >> 8), UInt8(length & 0xFF)] + block
    }

    /// The header of a client of 203.0.113.0/24.
    static func v4(_ last: UInt8, adding additions: [UInt8] = []) -> [UInt8] {
        header(family: 0x11, [203, 0, 113, last, 10, 0, 0, 2, 0x12, 0x34, 0x00, 0x50] + additions)
    }

    static let v6 = header(
        family: 0x21,
        [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1] + [UInt8](repeating: 0, count: 16)
            + [0x12, 0x34, 0x00, 0x50])
}

struct ProxyHeaderTests {
    private static func client(_ text: String) -> ProxyHeader {
        IPAddress(text: text).map(ProxyHeader.client) ?? .ownConnection
    }

    static let valid: [(name: String, bytes: [UInt8], client: String?)] = [
        ("TCP over IPv4", ProxyHeaderBytes.v4(9), "203.0.113.9"), ("TCP over IPv6", ProxyHeaderBytes.v6, "2001:db8::1"),
        ("additions", ProxyHeaderBytes.v4(9, adding: [0x04, 0x00, 0x01, 0x00]), "203.0.113.9"),
        ("additions that are cut off", ProxyHeaderBytes.v4(9, adding: [0x02, 0xFF]), "203.0.113.9"),
        (
            "as long as a header may be", ProxyHeaderBytes.v4(9, adding: [UInt8](repeating: 0, count: 4096 - 28)),
            "203.0.113.9"
        ),
        ("LOCAL without addresses", ProxyHeaderBytes.header(command: 0x20, family: 0x00, []), nil),
        (
            "LOCAL with addresses",
            ProxyHeaderBytes.header(command: 0x20, family: 0x11, [UInt8](repeating: 7, count: 12)), nil
        ),
        ("LOCAL with half an address", ProxyHeaderBytes.header(command: 0x20, family: 0x11, [1, 2, 3]), nil),
        ("an unknown family", ProxyHeaderBytes.header(family: 0x00, []), nil),
        ("UDP over IPv4", ProxyHeaderBytes.header(family: 0x12, [UInt8](repeating: 7, count: 12)), nil),
        ("a Unix socket", ProxyHeaderBytes.header(family: 0x31, [UInt8](repeating: 0x2F, count: 216)), nil),
    ]

    @Test(arguments: valid)
    func `a header names the client, and the bytes behind it stay`(
        name: String, bytes: [UInt8], client: String?
    ) throws {
        var buffer = ByteBuffer(bytes: bytes + Array("GET".utf8))
        let header = try ProxyHeader.read(from: &buffer)
        #expect(header == client.map(Self.client) ?? .ownConnection)
        #expect(String(buffer: buffer) == "GET")
        for count in 0..<bytes.count {
            var beginning = ByteBuffer(bytes: bytes.prefix(count))
            #expect(try ProxyHeader.read(from: &beginning) == nil)
            #expect(beginning.readableBytes == count)
        }
    }

    static let invalid: [(bytes: [UInt8], refusal: ProxyHeader.Refusal)] = [
        (Array("GET / HTTP/1.1\r\n".utf8), .noHeader), ([0x16, 0x03, 0x01], .noHeader),
        (Array("\r\n\r\nGET".utf8), .noHeader), (Array("PROXY TCP4 203.0.113.9".utf8), .firstVersion),
        (Array("PR".utf8), .firstVersion), (Array("PRI * HTTP/2.0".utf8), .noHeader),
        (ProxyHeaderBytes.header(command: 0x11, family: 0x11, []), .unknownVersion),
        (ProxyHeaderBytes.header(command: 0x31, family: 0x11, []), .unknownVersion),
        (ProxyHeaderBytes.header(command: 0x22, family: 0x11, []), .unknownCommand),
        (ProxyHeaderBytes.header(family: 0x41, []), .unknownFamily),
        (ProxyHeaderBytes.header(family: 0x13, []), .unknownFamily),
        (ProxyHeaderBytes.header(family: 0x11, [], length: 4096 - 15), .tooLong),
        (ProxyHeaderBytes.header(command: 0x20, family: 0x00, [], length: 65_535), .tooLong),
        (ProxyHeaderBytes.header(family: 0x11, [UInt8](repeating: 0, count: 11)), .tooShort),
        (ProxyHeaderBytes.header(family: 0x21, [UInt8](repeating: 0, count: 35)), .tooShort),
    ]

    @Test(arguments: invalid)
    func `a connection without a valid header is refused with the reason`(
        bytes: [UInt8], refusal: ProxyHeader.Refusal
    ) {
        var buffer = ByteBuffer(bytes: bytes)
        #expect(throws: refusal) { try ProxyHeader.read(from: &buffer) }
    }
}
