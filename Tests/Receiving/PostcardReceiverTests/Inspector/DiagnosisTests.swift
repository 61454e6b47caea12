import Foundation
import PostcardDoctor
import PostcardForm
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@testable import PostcardReceiver
@testable import PostcardReception
@testable import PostcardServer

/// The answer to a request, the page and `explain` name the same first cause for the same bytes.
@Suite(.timeLimit(.minutes(10)))
struct DiagnosisTests {
    struct Mistake: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: String
        var contentType = "multipart/form-data; boundary=b"
        let body: [UInt8]

        var request: [UInt8] {
            let head = [
                "POST /uploads HTTP/1.1", "Host: a", "Connection: close", "Content-Type: \(contentType)",
                "Content-Length: \(body.count)",
            ]
            return Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body
        }
    }

    /// A picture of about this many bytes, which has all bytes but CR, as the content of every photo.
    private static func picture(_ size: Int = 1500) -> [UInt8] {
        let start: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 16] + Array("JFIF".utf8) + [0, 1, 1, 0, 0, 1, 0, 1, 0, 0]
        let pixels = (0..<size).map { UInt8(truncatingIfNeeded: ($0 &* 37 &+ $0 / 7) % 251) }
        return start + [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0] + pixels.map { $0 == 13 ? 14 : $0 } + [0xFF, 0xD9]
    }

    private static func field(_ name: String = "name", _ value: String = "초코") -> [UInt8] {
        Array("--b\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n".utf8)
    }

    private static func file(_ content: [UInt8], delimiter: String = "--b", blankLine: String = "\r\n") -> [UInt8] {
        let header =
            "\(delimiter)\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"cat.jpg\"\r\n"
            + "Content-Type: image/jpeg\r\n\(blankLine)"
        return Array(header.utf8) + content + Array("\r\n".utf8)
    }

    private static let end = Array("--b--\r\n".utf8)

    private static let mistakes = [
        Mistake(
            testDescription: "no final boundary", code: "missing-close-delimiter", body: field() + file(picture())),
        Mistake(
            testDescription: "LF instead of CRLF", code: "bare-line-break",
            body: Array(String(decoding: field() + field("a"), as: UTF8.self).replacing("\r\n", with: "\n").utf8)
                + Array("--b--\n".utf8)),
        Mistake(
            testDescription: "no blank line before a JPEG", code: "missing-blank-line",
            body: field() + file(picture(), blankLine: "") + end),
        Mistake(
            testDescription: "another Content-Type", code: "not-form-data", contentType: "application/json",
            body: field() + file(picture()) + end),
        Mistake(
            testDescription: "a boundary that was made twice", code: "boundary-mismatch",
            contentType: "multipart/form-data; boundary=other", body: field() + file(picture()) + end),
        Mistake(
            testDescription: "quotes in a name", code: "unescaped-quote",
            body: field("my \"pet\"") + file(picture()) + end),
        Mistake(
            testDescription: "a delimiter of another case", code: "boundary-case",
            body: Array(String(decoding: field(), as: UTF8.self).replacing("--b", with: "--B").utf8)
                + Array("--B--\r\n".utf8)),
        // The cause is far from both ends of the body.
        Mistake(
            testDescription: "one dash too few before the third of three photos", code: "part-in-content",
            body: file(picture(300_000)) + file(picture(300_000)) + file(picture(300_000), delimiter: "-b")),
    ]

    @Test(arguments: mistakes)
    func `the answer, the page and the explanation of a request begin with the same cause`(
        mistake: Mistake
    ) async throws {
        let finding = try #require(Explanation(request: mistake.request).findings.first)
        #expect(finding.code.rawValue == mistake.code)
        try await withReceiver { receiver in
            let answer = try #require(try await receiver.exchange(mistake.request).problem)
            #expect(answer.code == mistake.code)
            let response = try await receiver.curl("\(receiver.url)/requests/1?values=shown").output
            let described = try #require(try JSONSerialization.jsonObject(with: response) as? [String: Any])
            #expect(described["code"] as? String == mistake.code)
            let problems = try #require(described["problems"] as? [[String: Any]])
            #expect(problems.filter { $0["code"] as? String == mistake.code }.count == 1)
            let problem = try #require(problems.first)
            #expect(problem["code"] as? String == mistake.code)
            let counts = try await receiver.curl("\(receiver.url)/status").text
            #expect(counts.contains("\"\(mistake.code)\":1"))
            guard finding.place == .body, answer.status == 400 else { return }
            #expect(answer.offset == finding.offset && answer.part == finding.partIndex)
            #expect(answer.detail == finding.message)
            #expect(problem["offset"] as? Int == Int(finding.offset))
            let around = try #require(problem["around"] as? [String: Any])
            let start = try #require(around["offset"] as? Int)
            let bytes = try #require(Data(base64Encoded: around["base64"] as? String ?? ""))
            #expect(bytes == Data(mistake.body)[start..<(start + bytes.count)])
            #expect(start <= Int(finding.offset) && Int(finding.offset) <= start + bytes.count)
        }
    }

    private static let damaged: [(code: String?, content: [UInt8])] = [
        ("file-decoded-as-text", Array(String(decoding: picture(), as: UTF8.self).utf8)),
        ("file-decoded-as-text", Array(String(decoding: [0xFF, 0xD8] + picture(), as: UTF8.self).utf8)),
        ("base64-content", Array(Data(picture()).base64EncodedString().utf8)),
        ("hexadecimal-content", picture().flatMap { Array(String($0 >> 4, radix: 16).utf8) + Array("8".utf8) }),
        ("escaped-content", Array("[255, 216, 255, 224, 0, 16, 74, 70, 73, 70, 0, 1, 1]".utf8)),
        ("extra-line-break-before-content", Array("\r\n".utf8) + picture()),
        ("content-contradicts-type", Array("1545 bytes, a description".utf8)),
        (nil, picture()), (nil, []), (nil, [0, 1, 2, 3]),
    ]

    @Test(arguments: damaged, [false, true])
    func `a file that was damaged before it was sent is accepted, and the record and the page say so`(
        damaged: (code: String?, content: [UInt8]), isSlow: Bool
    ) async throws {
        let request = Mistake(testDescription: "", code: "", body: Self.field() + Self.file(damaged.content) + Self.end)
        let found = Explanation(request: request.request).findings.map(\.code.rawValue)
        try await withReceiver { receiver in
            let socket = try RawSocket(port: receiver.port)
            var rest = request.request[...]
            let slow = isSlow ? rest.count - request.body.count + 600 : 0
            while !rest.isEmpty {
                let isBeginning = request.request.count - rest.count < slow
                let piece = isBeginning ? rest.prefix(7) : rest
                try await socket.send(Array(piece))
                rest = rest.dropFirst(piece.count)
            }
            let answer = String(decoding: try await socket.receiveAll(), as: UTF8.self)
            #expect(answer.contains(" 201 "))
            #expect(answer.contains("\"damage\"") == (damaged.code != nil))
            if let code = damaged.code {
                #expect(found.contains(code))
                #expect(answer.contains("\"damage\":\"\(code)\""))
            }
            let response = try await receiver.curl("\(receiver.url)/requests/1?values=shown").output
            let described = try #require(try JSONSerialization.jsonObject(with: response) as? [String: Any])
            let problems = try #require(described["problems"] as? [[String: Any]])
            #expect(problems.compactMap { $0["code"] as? String } == [damaged.code].compactMap(\.self))
        }
    }

    @Test func `a limit, a rule and a digest are never replaced by what else is wrong`() async throws {
        let body = Self.field("my \"pet\"") + Self.end
        let digest = "Content-Digest: sha-256=:\(Data(count: 32).base64EncodedString()):"
        let text = String(decoding: body, as: UTF8.self)
        try await withReceiver { receiver in
            let refused = try await receiver.exchange(Form.request(body: text, fields: [digest]))
            #expect(refused.problem?.code == "digest-mismatch")
        }
        try await withReceiver({ $0.uploads.limits.maximumHeaderBytes = 20 }) { receiver in
            let refused = try await receiver.exchange(Form.request(body: text))
            #expect(refused.problem?.code == "header-too-large")
        }
    }
}
