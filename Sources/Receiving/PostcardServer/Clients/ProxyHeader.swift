import NIOCore
import PostcardStore

/// The header in which a proxy names its client: version 2 of the PROXY protocol (§2.2 of proxy-protocol.txt).
enum ProxyHeader: Hashable {
    /// The proxy's own connection, such as a health check, or a client without an IP address.
    case ownConnection
    case client(IPAddress)

    /// The reason why a connection does not begin with a valid header.
    enum Refusal: Error, Hashable, CustomStringConvertible {
        case noHeader
        /// The header has the text format of version 1.
        case firstVersion
        case unknownVersion
        case unknownCommand
        case unknownFamily
        case tooLong
        /// The header is too short for its addresses.
        case tooShort

        var description: String {
            switch self {
            case .noHeader: "The connection does not begin with a PROXY header"
            case .firstVersion: "The PROXY header has version 1, and only version 2 is supported"
            case .unknownVersion: "The PROXY header has an unknown version"
            case .unknownCommand: "The PROXY header has an unknown command"
            case .unknownFamily: "The PROXY header has an unknown address family or transport protocol"
            case .tooLong: "The PROXY header is longer than \(ProxyHeader.maximumBytes) bytes"
            case .tooShort: "The PROXY header is too short for its addresses"
            }
        }
    }

    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    private static let firstVersion = Array("PROXY ".utf8)
    /// The number of bytes before the addresses.
    private static let fixedBytes = 16

    /// The maximum length of a header, in bytes. Even headers with all registered additions (TLV) are shorter.
    static let maximumBytes = 4096

    /// Removes the header from the first bytes of a connection; `nil` if the header is incomplete. Throws ``Refusal``
    /// as soon as the bytes cannot become a valid header.
    static func read(from buffer: inout ByteBuffer) throws(Refusal) -> ProxyHeader? {
        let bytes = buffer.readableBytesView
        guard zip(bytes, signature).allSatisfy({ $0 == $1 }) else {
            throw zip(bytes, firstVersion).allSatisfy { $0 == $1 } ? .firstVersion : .noHeader
        }
        guard bytes.count >= fixedBytes else { return nil }
        let start = bytes.startIndex
        let (version, family) = (bytes[start + 12], bytes[start + 13])
        guard version >> 4 == 2 else { throw .unknownVersion }
        guard version & 0xF <= 1 else { throw .unknownCommand }
        guard family >> 4 <= 3, family & 0xF <= 2 else { throw .unknownFamily }
        let length = fixedBytes + Int(bytes[start + 14]) << 8 + Int(bytes[start + 15])
        guard length <= maximumBytes else { throw .tooLong }
        guard bytes.count >= length else { return nil }
        let isOwn = version & 0xF == 0
        let header = isOwn ? .ownConnection : try client(family, bytes[(start + fixedBytes)..<(start + length)])
        buffer.moveReaderIndex(forwardBy: length)
        return header
    }

    /// - Parameter block: The addresses, followed by additions, which are ignored.
    private static func client(_ family: UInt8, _ block: ByteBufferView) throws(Refusal) -> ProxyHeader {
        let addressBytes: Int
        switch family {
        case 0x11: addressBytes = 4
        case 0x21: addressBytes = 16
        // For Unix sockets, datagrams and unknown families, the address of the connection itself is used.
        default: return .ownConnection
        }
        // The block contains the source, the destination, and a port for each.
        guard block.count >= 2 * addressBytes + 4 else { throw .tooShort }
        return IPAddress(bytes: block.prefix(addressBytes)).map(ProxyHeader.client) ?? .ownConnection
    }
}
