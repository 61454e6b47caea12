import HTTPTypes
import Testing

@testable import PostcardConformance

@Suite struct ResponseReaderTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let name: String
        let text: String
        /// The statuses and bodies.
        let expected: [String]
        var respondsToHead = false
        var isEnded = false

        var testDescription: String { name }
    }

    private static let rows = [
        Row(name: "a length", text: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", expected: ["200 abc"]),
        Row(name: "no reason", text: "HTTP/1.1 204 \r\nUpload-Offset: 5\r\n\r\n", expected: ["204 "]),
        Row(
            name: "interim responses before the final one",
            text: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 104 Upload Resumption Supported\r\nLocation: /a\r\n\r\n"
                + "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", expected: ["100 ", "104 ", "201 "]),
        Row(
            name: "chunks with an extension and trailers",
            text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nA: b\r\n\r\n",
            expected: ["200 abcde"]),
        Row(name: "up to the end", text: "HTTP/1.1 200 OK\r\n\r\nabc", expected: ["200 abc"], isEnded: true),
        Row(
            name: "the length of a response to HEAD", text: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
            expected: ["200 "], respondsToHead: true),
        Row(
            name: "two responses", text: "HTTP/1.1 409 Conflict\r\nContent-Length: 1\r\n\r\naHTTP/1.1 204 No\r\n\r\n",
            expected: ["409 a", "204 "]),
    ]

    @Test(arguments: rows)
    func `responses are read whole and byte by byte`(row: Row) throws {
        for size in [row.text.utf8.count, 1] {
            var reader = ResponseReader()
            reader.respondsToHead = row.respondsToHead
            var responses: [RawResponse] = []
            var rest = ArraySlice(row.text.utf8)
            while !rest.isEmpty {
                responses += try reader.read(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            if row.isEnded { responses += [try reader.readEnd()].compactMap(\.self) }
            let seen = responses.map { "\($0.status) \(String(decoding: $0.body, as: UTF8.self))" }
            #expect(seen == row.expected)
        }
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH_9.6\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    ])
    func `what is no response is an error`(text: String) {
        var reader = ResponseReader()
        #expect(throws: ConnectionFailure.self) { try reader.read(text.utf8) }
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK", " and so on", "the head of the response is larger than 64 KiB"),
        ("HTTP/1.1 200 OK\r\n", "Name: value\r\n", "the head of the response is larger than 64 KiB"),
        ("HTTP/1.1 200 OK\r\n\r\n", "content without end", "the content of the response is larger than 1 MiB"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "10\r\n0123456789abcdef\r\n",
            "the lines around the chunks of the response are larger than 64 KiB"
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "Name: value\r\n",
            "the lines around the chunks of the response are larger than 64 KiB"
        ),
    ])
    func `a response without end is an error that names the limit`(
        start: String, repeated: String, message: String
    ) throws {
        var reader = ResponseReader()
        #expect(try reader.read(start.utf8).isEmpty)
        let failure = #expect(throws: ConnectionFailure.self) {
            for _ in 0..<1_000_000 { _ = try reader.read(repeated.utf8) }
        }
        #expect(failure?.description == message)
    }

    @Test func `a connection that ends within a response is an error`() throws {
        var reader = ResponseReader()
        _ = try reader.read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab".utf8)
        #expect(throws: ConnectionFailure.cutResponse) { try reader.readEnd() }
    }
}
