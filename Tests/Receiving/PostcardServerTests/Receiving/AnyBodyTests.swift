import Foundation
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import PostcardTestSupport
import Testing

/// Bodies that are no forms, as iOS and other clients upload files.
@Suite(.timeLimit(.minutes(10)))
struct AnyBodyTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var method = "POST"
        var path = "/uploads"
        let fields: [String]
        let filename: String
        var contentType = "application/octet-stream"
    }

    private static let cases = [
        Case(
            testDescription: "the name of a Content-Disposition",
            fields: ["Content-Type: image/jpeg", "Content-Disposition: inline; filename=\"a b.jpg\""],
            filename: "a b.jpg", contentType: "image/jpeg"),
        Case(
            testDescription: "the name of a Content-Disposition in UTF-8",
            fields: ["Content-Type: text/plain", "Content-Disposition: attachment; filename*=UTF-8''%EC%B4%88.txt"],
            filename: "초.txt", contentType: "text/plain"),
        Case(
            testDescription: "a Content-Disposition with parameters that name no file",
            fields: [
                "Content-Type: a/b",
                "Content-Disposition: inline; name=\"x\"; filename=\"a;filename=b\"; size=3",
            ], filename: "a;filename=b", contentType: "a/b"),
        Case(
            testDescription: "a Content-Disposition in which something else looks like a name", path: "/uploads/c.bin",
            fields: ["Content-Type: a/b", "Content-Disposition: inline; note=\"filename=a\"; xfilename=b"],
            filename: "c.bin", contentType: "a/b"),
        Case(
            testDescription: "a Content-Disposition without a name", path: "/uploads/c.bin",
            fields: ["Content-Type: a/b", "Content-Disposition: inline"], filename: "c.bin", contentType: "a/b"),
        Case(
            testDescription: "a path that is put to", method: "PUT", path: "/uploads/cat%20%22x%22.jpg",
            fields: ["Content-Type: image/jpeg"], filename: "cat \"x\".jpg", contentType: "image/jpeg"),
        Case(
            testDescription: "a path that is no text", path: "/uploads/%FFa%0D%0A%00%2.jpg",
            fields: ["Content-Type: image/jpeg"], filename: "\u{FFFD}a%2.jpg", contentType: "image/jpeg"),
        Case(
            testDescription: "a path that is posted to", path: "/uploads/d.mov", fields: ["Content-Type:"],
            filename: "d.mov"),
        Case(
            testDescription: "no name at all", fields: ["Content-Type: application/json"], filename: "uploads",
            contentType: "application/json"),
        Case(
            testDescription: "a form of another kind", fields: ["Content-Type: application/x-www-form-urlencoded"],
            filename: "uploads", contentType: "application/x-www-form-urlencoded"),
        Case(
            testDescription: "another multipart type", fields: ["Content-Type: multipart/mixed; boundary=b"],
            filename: "uploads", contentType: "multipart/mixed; boundary=b"),
    ]

    @Test(arguments: cases)
    func `a body becomes a record with one file, named by the request`(row: Case) async throws {
        try await withCurlSender(.newest, { $0.uploads.acceptsAnyBody = true }) { sender, receiver in
            let bytes = Array("--b\r\nno form at all\r\n--b--\r\n".utf8)
            let response = try await sender.send(bytes, row.method, row.path, fields: row.fields)
            #expect(response.status == 201, "\(response.body)")
            let record = try UploadRecord(json: Data(response.body.utf8))
            let file = try #require(record.files.first)
            #expect(record.files.count == 1 && record.fields.isEmpty)
            #expect(file.name == "file" && file.filename == row.filename)
            #expect(file.contentType == row.contentType && file.size == Int64(bytes.count))
            let stored = try await receiver.exchange("GET \(file.url) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(stored.text.hasSuffix(String(decoding: bytes, as: UTF8.self)))
        }
    }

    @Test func `a form stays a form, and other bodies are refused unless they are asked for`() async throws {
        try await withCurlSender(.newest, { $0.uploads.acceptsAnyBody = true }) { sender, _ in
            let response = try await sender.send(Array(Form.small.utf8), "POST", "/uploads", fields: [Form.contentType])
            #expect(try UploadRecord(json: Data(response.body.utf8)).fields.map(\.value) == ["value"])
        }
        try await withCurlSender { sender, receiver in
            let fields = ["Content-Type: image/jpeg"]
            let posted = try await sender.send([1], "POST", "/uploads", fields: fields)
            #expect(posted.status == 415)
            let put = try await sender.send([1], "PUT", "/uploads/a.jpg", fields: fields)
            #expect(put.status == 405)
            #expect(try receiver.records.isEmpty)
        }
    }

    @Test(
        arguments: [
            (["Content-Type: image/jpeg"], 2_000, 413, "file-too-large"), (["Content-Type: text/plain"], 10, 415, nil),
            (["Content-Type: image/jpeg", "Content-Disposition: inline; filename=a b.jpg"], 10, 400, nil),
            (["Content-Type: image/jpeg", "Content-Disposition: inline; filename=a; filename=b"], 10, 400, nil),
            (["Content-Type: image/jpeg", "Content-Encoding: gzip"], 10, 415, "unsupported-content-encoding"),
            (["Content-Type: image/jpeg", "Content-Digest: sha-256=:AAAA:"], 10, 400, "malformed-digest"),
        ] as [([String], Int, Int, String?)])
    func `limits and rules are those of a file in the field 'file'`(
        fields: [String], count: Int, status: Int, code: String?
    ) async throws {
        let rules = try FormRules(json: Data(#"{"files": {"file": {"types": ["image/*"]}}}"#.utf8))
        try await withCurlSender(
            .newest,
            {
                $0.uploads.acceptsAnyBody = true
                $0.uploads.limits.maximumFileBytes = 1_000
                $0.uploads.rules = rules
            }
        ) { sender, receiver in
            let response = try await sender.send(
                // As a picture begins.
                Array(([0xFF, 0xD8, 0xFF, 0xE0] + [UInt8](repeating: 7, count: count)).prefix(count)), "POST",
                "/uploads", fields: fields)
            #expect(response.status == status, "\(response.body)")
            if let code { #expect(response.problem?.code == code) }
            #expect(try receiver.records.isEmpty)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test(arguments: [ResumptionVersion.interop3, .interop6, .interop9, .newest])
    func `a file is resumed as a form is`(version: ResumptionVersion) async throws {
        let content = LargeForm(bytes: 400_000).content
        try await withCurlSender(version, { $0.uploads.acceptsAnyBody = true }) { sender, receiver in
            let created = try await sender.create(
                content[..<100_000], isComplete: false, contentType: "Content-Type: video/mp4",
                fields: ["Content-Disposition: inline; filename=\"film.mp4\""])
            #expect(created.status == 201 && created.offset == 100_000, "\(created.body)")
            let location = try #require(created.head.fields["location"])
            _ = try await sender.append(content[100_000..<200_000], at: 100_000, isComplete: false, to: location)
            let last = try await sender.append(content[200_000...], at: 200_000, isComplete: true, to: location)
            #expect(last.status == 201, "\(last.body)")
            let file = try #require(try UploadRecord(json: Data(last.body.utf8)).files.first)
            #expect(file.filename == "film.mp4" && file.contentType == "video/mp4")
            #expect(file.size == Int64(content.count))
            #expect(try receiver.records.count == 1)
        }
    }

    @Test func `a file that breaks a rule is refused before it is sent`() async throws {
        let rules = try FormRules(json: Data(#"{"files": {"file": {"types": ["image/*"]}}}"#.utf8))
        try await withCurlSender(
            .interop9,
            {
                $0.uploads.acceptsAnyBody = true
                $0.uploads.rules = rules
            }
        ) { sender, receiver in
            let created = try await sender.create([], isComplete: false, contentType: "Content-Type: text/plain")
            #expect(created.status == 415 && created.isComplete(in: .interop9) == true, "\(created.body)")
            #expect(receiver.unfinished.isEmpty)
        }
    }

    @Test func `a file is screened as one of a form, also in pieces`() async throws {
        try await withCurlSender(
            .interop9,
            {
                $0.uploads.acceptsAnyBody = true
                $0.uploads.screen = { file in
                    file.name == "file" && file.filename == "evil.mp4" ? .refused(reason: "It is evil.") : .accepted
                }
            }
        ) { sender, receiver in
            let bytes = Array("a film".utf8)
            for (name, status) in [("evil.mp4", 422), ("good.mp4", 201)] {
                let fields = ["Content-Disposition: inline; filename=\"\(name)\""]
                let whole = try await sender.send(
                    bytes, "PUT", "/uploads/\(name)", fields: ["Content-Type: video/mp4"])
                #expect(whole.status == status)
                let created = try await sender.create(
                    bytes[..<3], isComplete: false, contentType: "Content-Type: video/mp4", fields: fields)
                let location = try #require(created.head.fields["location"])
                let last = try await sender.append(bytes[3...], at: 3, isComplete: true, to: location)
                #expect(last.status == status && last.isComplete(in: .interop9) == true)
                if status == 422 { #expect(last.problem?.code == "file-refused") }
            }
            #expect(try receiver.records.count == 2)
        }
    }

    @Test func `a file needs the token for posting wherever it is sent`() async throws {
        try await withCurlSender(
            .newest,
            {
                $0.uploads.acceptsAnyBody = true
                $0.tokens.posting = ["secret"]
                $0.tokens.reading = ["other"]
            }
        ) { sender, _ in
            for (token, status) in [("other", 401), ("secret", 201)] {
                let fields = ["Content-Type: a/b", "Authorization: Bearer \(token)"]
                for (method, path) in [("POST", "/uploads"), ("PUT", "/uploads/a"), ("POST", "/uploads/a")] {
                    let response = try await sender.send([1], method, path, fields: fields)
                    #expect(response.status == status)
                }
            }
        }
    }

    @Test func `the Location of an upload begins with the origin that was chosen`() async throws {
        try await withCurlSender(.interop9, { $0.uploads.resumption?.locationOrigin = "https://example.org" }) {
            sender, _ in
            let form = LargeForm(bytes: 300_000)
            let created = try await sender.create(form.bytes[..<200_000], isComplete: false)
            let location = try #require(created.head.fields["location"])
            #expect(location.hasPrefix("https://example.org/uploads/resumable/"))
            #expect(created.interim.allSatisfy { $0.fields["location"] == nil || $0.fields["location"] == location })
            let path = String(location.dropFirst("https://example.org".count))
            #expect(try await sender.head(path).offset == 200_000)
        }
    }
}
