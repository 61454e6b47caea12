import PostcardDoctor
import Testing

@Suite("The end of a request on a connection")
struct RequestEndTests {
    /// What comes, whether the request has ended with it, and whether the client waits for an interim response.
    static let requests: [(wire: String, isComplete: Bool, expectsContinue: Bool)] = [
        ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", true, false),
        ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcd", true, false),
        ("POST / HTTP/1.1\ncontent-length:3\n\nabc", true, false),
        ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", false, false),
        ("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", true, false),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", true, false),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", false, false),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", false, false),
        ("POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n", false, true),
        ("POST / HTTP/1.1\r\nHost: x\r\n\r\nabc", false, false),
        ("POST / HTTP/1.1\r\nHost: x\r\n", false, false),
        ("\u{16}\u{03}\u{01}", true, false),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", true, false),
        ("", false, false),
    ]

    @Test(arguments: requests)
    func `is told by its head, however it is cut`(wire: String, isComplete: Bool, expectsContinue: Bool) {
        let bytes = Array(wire.utf8)
        for size in [1, 4, max(bytes.count, 1)] {
            var end = RequestEnd()
            for start in stride(from: 0, to: bytes.count, by: size) {
                end.read(bytes[start..<min(start + size, bytes.count)].span.bytes)
            }
            #expect(end.isComplete == isComplete)
            #expect(end.expectsContinue == expectsContinue)
        }
    }
}
