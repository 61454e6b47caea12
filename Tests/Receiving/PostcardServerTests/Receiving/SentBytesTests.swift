import Foundation
import PostcardForm
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Testing

/// What was sent can be fetched again, byte by byte.
@Suite(.timeLimit(.minutes(10)))
struct SentBytesTests {
    struct Part: Sendable {
        var header = ""
        var name = "a"
        var filename: String?
        let bytes: [UInt8]
    }

    /// Parts, and the value of each.
    static let forms: [(parts: [Part], values: [String], areKept: [Bool])] = [
        ([Part(bytes: Array("초코".utf8))], ["초코"], [false]),
        ([Part(bytes: [0x67, 0xF6, 0xDF])], ["g\u{FFFD}\u{FFFD}"], [true]),
        ([Part(header: "Content-Type: text/plain; charset=ISO-8859-1", bytes: [0x67, 0xF6, 0xDF])], ["göß"], [true]),
        ([Part(header: "Content-Type: text/plain; charset=ISO-8859-1", bytes: Array("göß".utf8))], ["göß"], [false]),
        ([Part(header: "Content-Type: text/plain; charset=x-none", bytes: [0xE9])], ["\u{FFFD}"], [true]),
        (
            [Part(header: "Content-Type: text/plain; charset=iso-2022-jp", bytes: [0x1B, 0x24, 0x42, 0x24, 0x22])],
            ["あ"], [true]
        ),
        ([Part(header: "Content-Type: text/plain; charset=iso-2022-jp", bytes: [0x61])], ["a"], [false]),
        (
            [Part(header: "Content-Type: application/x-protobuf", bytes: [0x08, 0x96, 0x01, 0xFF, 0x00])],
            ["\u{8}\u{FFFD}\u{1}\u{FFFD}\u{0}"], [true]
        ),
        // Wherever the charset of the form is named.
        (
            [Part(bytes: [0xCF]), Part(name: "_charset_", bytes: Array("windows-1251".utf8)), Part(bytes: [0xF0])],
            ["П", "windows-1251", "р"], [true, false, true]
        ),
        (
            [
                Part(bytes: [0xC3, 0xCA]), Part(header: "Content-Type: text/plain; charset=latin1", bytes: [0xE9]),
                Part(name: "_charset_", bytes: Array("euc-kr".utf8)),
                Part(name: "_charset_", bytes: Array("windows-1251".utf8)),
            ],
            ["초", "é", "euc-kr", "windows-1251"], [true, true, false, false]
        ),
        (
            [
                Part(bytes: [0x1B, 0x24, 0x42, 0x24, 0x22]), Part(bytes: [0x61]),
                Part(name: "_charset_", bytes: Array("ISO-2022-JP".utf8)),
            ],
            ["あ", "a", "ISO-2022-JP"], [true, false, false]
        ),
        ([Part(name: "_charset_", bytes: [0xFF]), Part(bytes: [0xE9])], ["\u{FFFD}", "\u{FFFD}"], [true, true]),
    ]

    private static func body(of parts: [Part]) -> [UInt8] {
        var body: [UInt8] = []
        for part in parts {
            let filename = part.filename.map { "; filename=\"\($0)\"" } ?? ""
            body += Array("--b\r\nContent-Disposition: form-data; name=\"\(part.name)\"\(filename)\r\n".utf8)
            body += Array((part.header.isEmpty ? "" : part.header + "\r\n").utf8) + Array("\r\n".utf8)
            body += part.bytes + Array("\r\n".utf8)
        }
        return body + Array("--b--\r\n".utf8)
    }

    private static func record(of parts: [Part], in receiver: RunningReceiver) async throws -> UploadRecord {
        let body = body(of: parts)
        let head =
            "POST /uploads HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: \(body.count)\r\n"
            + "\(Form.contentType)\r\n\r\n"
        let response = try await receiver.exchange(Array(head.utf8) + body)
        #expect(response.status == 201)
        return try UploadRecord(json: Data(response.body.utf8))
    }

    private static func content(of file: UploadRecord.File, in receiver: RunningReceiver) async throws -> [UInt8] {
        let socket = try RawSocket(port: receiver.port)
        try await socket.send("GET \(file.url) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        let response = try await socket.receiveAll()
        let end = try #require(response.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound)
        return Array(response[end...])
    }

    @Test(arguments: forms)
    func `a text that is not in UTF-8 is decoded if its charset is named, and its bytes are kept`(
        parts: [Part], values: [String], areKept: [Bool]
    ) async throws {
        try await withReceiver { receiver in
            let record = try await Self.record(of: parts, in: receiver)
            #expect(record.fields.map(\.value) == values)
            #expect(record.fields.map { $0.bytes != nil } == areKept)
            #expect(record.fields.map(\.content) == parts.map { Data($0.bytes) })
        }
        // The decoder reads the same text, where there is one.
        let form = try ReceivedForm(contentType: "multipart/form-data; boundary=b", body: Data(Self.body(of: parts)))
        for (part, value) in zip(form.parts, values) {
            #expect(part.text == value || (part.text == nil && value.contains("\u{FFFD}")))
        }
    }

    @Test func `a file is marked if none was chosen, and has the name that was sent beside the safe one`() async throws
    {
        try await withReceiver { receiver in
            let record = try await Self.record(
                of: [
                    Part(filename: "", bytes: []), Part(filename: "", bytes: [1]), Part(filename: "a.txt", bytes: []),
                    Part(filename: "trip/day1/a.jpg", bytes: [2]), Part(filename: "trip/day2/a.jpg", bytes: [3]),
                ], in: receiver)
            #expect(record.files.map(\.isChosen) == [false, true, true, true, true])
            #expect(record.files.map(\.filename) == ["", "", "a.txt", "a.jpg", "a.jpg"])
            #expect(record.files.map(\.sentFilename) == [nil, nil, nil, "trip/day1/a.jpg", "trip/day2/a.jpg"])
            let json = try await receiver.curl("\(receiver.url)\(record.url)").output
            #expect(json == record.json())
        }
    }

    @Test func `each byte of random parts comes back`() async throws {
        try await withReceiver { receiver in
            for seed in 0..<20 {
                var generator = SeededGenerator(seed: UInt64(seed))
                let parts = (0..<Int.random(in: 1...20, using: &generator)).map { _ in
                    Part.random(using: &generator)
                }
                let record = try await Self.record(of: parts, in: receiver)
                for (part, place) in zip(parts, record.parts) {
                    switch place {
                    case .field(let index):
                        #expect(part.filename == nil)
                        #expect(record.fields[index].content == Data(part.bytes), "seed \(seed)")
                    case .file(let index):
                        let file = record.files[index]
                        #expect(part.filename?.hasSuffix(file.filename) == true)
                        #expect(try await Self.content(of: file, in: receiver) == part.bytes, "seed \(seed)")
                    }
                }
            }
        }
    }
}

extension SentBytesTests.Part {
    fileprivate static func random(using generator: inout SeededGenerator) -> Self {
        let alphabets: [[UInt8]] = [
            Array(0...255), Array(0x20...0x7E), Array(0x80...0xFF), Array("\r\n-b".utf8), Array("초코é\0".utf8),
        ]
        let headers = [
            "", "", "Content-Type: text/plain; charset=iso-8859-1", "Content-Type: text/plain; charset=shift_jis",
            "Content-Type: application/octet-stream", "Content-Type: image/png", "Content-Type: text/plain; charset=?",
        ]
        let alphabet = alphabets.randomElement(using: &generator) ?? []
        var bytes = (0..<Int.random(in: 0...300, using: &generator)).compactMap { _ in
            alphabet.randomElement(using: &generator)
        }
        // A delimiter would end the part.
        while let range = bytes.firstRange(of: Array("\r\n--b".utf8)) { bytes.removeSubrange(range) }
        if bytes.starts(with: "--b".utf8) { bytes.removeFirst() }
        let filenames: [String?] = [nil, nil, "a.bin", "", "x/a.bin"]
        return Self(
            header: headers.randomElement(using: &generator) ?? "",
            name: Int.random(in: 0..<10, using: &generator) == 0 ? "_charset_" : "a",
            filename: filenames.randomElement(using: &generator) ?? nil, bytes: bytes)
    }
}
