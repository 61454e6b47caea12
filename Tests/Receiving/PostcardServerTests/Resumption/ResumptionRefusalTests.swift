import Foundation
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ResumptionRefusalTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var version = ResumptionVersion.newest
        /// What is appended to an upload that has 10 bytes and is to have 30.
        let request: @Sendable (CurlSender, String) async throws -> CurlResponse
        let status: Int
        let code: String
        var type: String?
        /// Whether the upload is there afterwards, with its 10 bytes.
        var isKept = true
    }

    private static let partial = "Content-Type: application/partial-upload"
    private static let registered = "https://iana.org/assignments/http-problem-types#"

    private static func patch(
        _ name: String, _ fields: [String], _ status: Int, _ code: String, in version: ResumptionVersion = .newest
    ) -> Case {
        Case(
            testDescription: name, version: version,
            request: { sender, location in try await sender.request("PATCH", location, fields: fields) },
            status: status, code: code)
    }

    private static let complete = "Upload-Complete: ?1"

    private static let malformed: [Case] = [
        patch("no offset", [partial, complete], 400, "missing-upload-offset"),
        patch("an offset that is none", [partial, complete, "Upload-Offset: ten"], 400, "missing-upload-offset"),
        patch("a negative offset", [partial, complete, "Upload-Offset: -1"], 400, "missing-upload-offset"),
        patch(
            "an offset beyond all", [partial, complete, "Upload-Offset: 1000000000000000"], 400,
            "missing-upload-offset"),
        patch(
            "two offsets", [partial, complete, "Upload-Offset: 10", "Upload-Offset: 10"], 400,
            "missing-upload-offset"),
        patch("no completeness", [partial, "Upload-Offset: 10"], 400, "missing-upload-complete"),
        patch("no boolean", [partial, "Upload-Complete: 1", "Upload-Offset: 10"], 400, "missing-upload-complete"),
        patch("no type", [complete, "Upload-Offset: 10"], 415, "not-partial-upload"),
        patch("the form's type", [Form.contentType, complete, "Upload-Offset: 10"], 415, "not-partial-upload"),
        patch(
            "a content coding", [partial, complete, "Upload-Offset: 10", "Content-Encoding: gzip"], 415,
            "unsupported-content-encoding"),
        patch(
            "a version that is not known",
            [partial, complete, "Upload-Offset: 10", "Upload-Draft-Interop-Version: 2"], 400,
            "unknown-resumption-version"),
        patch("no offset in version 3", [complete], 400, "missing-upload-offset", in: .interop3),
        patch("no offset in version 9", [partial, complete], 400, "missing-upload-offset", in: .interop9),
        patch(
            "no completeness in version 8", [partial, "Upload-Offset: 10"], 400, "missing-upload-complete",
            in: .interop8),
        patch("no type in version 6", [complete, "Upload-Offset: 10"], 415, "not-partial-upload", in: .interop6),
    ]

    private static let wrong: [Case] = [
        Case(
            testDescription: "an offset that is too small",
            request: { try await $0.append("x".utf8, at: 9, isComplete: false, to: $1) },
            status: 409, code: "mismatching-upload-offset", type: registered + "mismatching-upload-offset"),
        Case(
            testDescription: "an offset that is too large",
            request: { try await $0.append("x".utf8, at: 11, isComplete: true, to: $1) },
            status: 409, code: "mismatching-upload-offset", type: registered + "mismatching-upload-offset"),
        Case(
            testDescription: "an end before the length",
            request: { try await $0.append("x".utf8, at: 10, isComplete: true, to: $1) },
            status: 400, code: "inconsistent-upload-length", type: registered + "inconsistent-upload-length"),
        Case(
            testDescription: "another length",
            request: {
                try await $0.append("x".utf8, at: 10, isComplete: false, to: $1, fields: ["Upload-Length: 31"])
            },
            status: 400, code: "inconsistent-upload-length", type: registered + "inconsistent-upload-length"),
        Case(
            testDescription: "more bytes than the length, announced",
            request: { try await $0.append(String(repeating: "x", count: 21).utf8, at: 10, isComplete: false, to: $1) },
            status: 400, code: "inconsistent-upload-length", type: registered + "inconsistent-upload-length"),
        Case(
            testDescription: "more bytes than the length, in chunks",
            request: {
                try await $0.append(
                    String(repeating: "x", count: 21).utf8, at: 10, isComplete: false, to: $1,
                    fields: ["Transfer-Encoding: chunked"])
            },
            status: 400, code: "inconsistent-upload-length", type: registered + "inconsistent-upload-length",
            isKept: false),
        Case(
            testDescription: "a method that is not its own", request: { try await $0.request("PUT", $1) },
            status: 405, code: "method-not-allowed"),
    ]

    @Test(arguments: malformed + wrong)
    func `what is wrong with an append is said, and the upload stays as it was`(_ wrong: Case) async throws {
        try await withCurlSender(wrong.version) { sender, receiver in
            let created = try await sender.create(
                "0123456789".utf8, isComplete: false, fields: ["Upload-Length: 30"])
            let location = try #require(created.head.fields["location"])
            let response = try await wrong.request(sender, location)
            #expect(response.status == wrong.status)
            #expect(response.problem?.code == wrong.code)
            if let type = wrong.type { #expect(response.problem?.type == type) }
            if wrong.status == 409 { #expect(response.offset == 10) }
            if wrong.status != 405 {
                #expect(response.isComplete(in: wrong.version) == false)
                let isUnknown = wrong.code == "unknown-resumption-version"
                let version = isUnknown ? .interop9 : wrong.version
                #expect(response.head.fields["upload-draft-interop-version"] == version.interopNumber.map { "\($0)" })
            }
            let head = try await sender.head(location)
            #expect(head.status == (wrong.isKept ? 204 : 404))
            #expect(head.offset == (wrong.isKept ? 10 : nil))
            #expect(try receiver.records.isEmpty)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test(arguments: [
        (["Upload-Complete: ?0", "Upload-Draft-Interop-Version: 2"], 400, "unknown-resumption-version"),
        (["Upload-Complete: ?0", "Content-Type: text/plain"], 415, "not-form-data"),
        (["Upload-Complete: ?0", Form.contentType, "Upload-Length: 1001"], 413, "body-too-large"),
        (
            ["Upload-Complete: ?1", Form.contentType, "Upload-Length: 9", "Content-Length: 0"], 400,
            "inconsistent-upload-length"
        ),
        (["Upload-Complete: ?0", Form.contentType, "Idempotency-Key: a b"], 400, "malformed-idempotency-key"),
        (["Upload-Complete: ?0", Form.contentType, "Content-Encoding: gzip"], 415, "unsupported-content-encoding"),
    ])
    func `an upload that cannot become a form does not begin`(
        fields: [String], status: Int, code: String
    ) async throws {
        try await withCurlSender(.newest, { $0.uploads.limits.maximumBodyBytes = 1000 }) { sender, receiver in
            let response = try await sender.request("POST", "/uploads", fields: fields)
            #expect(response.status == status)
            #expect(response.problem?.code == code)
            #expect(response.interim.isEmpty)
            // What is wrong with the form is so for good, and what is wrong with the request is not.
            let isFinal = ["not-form-data", "unsupported-content-encoding", "malformed-idempotency-key"].contains(code)
            #expect(response.isComplete(in: .newest) == isFinal)
            let version = code == "unknown-resumption-version" ? "9" : nil
            #expect(response.head.fields["upload-draft-interop-version"] == version)
            if status == 413 { #expect(response.head.fields["upload-limit"] == "max-size=1000, max-age=86400") }
            #expect(receiver.unfinished.isEmpty)
        }
    }

    @Test(arguments: [
        (ResumptionVersion.newest, "inconsistent-upload-length"), (.interop9, "inconsistent-upload-length"),
        (.interop8, "inconsistent-upload-length"),
        (.interop7, "completed-upload"), (.interop3, "completed-upload"),
    ])
    func `what comes behind the end is refused, and the response is there to be read again`(
        version: ResumptionVersion, code: String
    ) async throws {
        try await withCurlSender(version) { sender, receiver in
            let body = Array(Form.small.utf8)
            let created = try await sender.create(body[..<10], isComplete: false)
            let location = try #require(created.head.fields["location"])
            let first = try await sender.append(body[10...], at: 10, isComplete: true, to: location)
            let length = Int64(body.count)
            let more = try await sender.append("x".utf8, at: length, isComplete: true, to: location)
            #expect(more.status == 400)
            #expect(more.problem?.code == code)
            #expect(more.isComplete(in: version) == false)
            for isComplete in [false, true] {
                let empty = try await sender.append([], at: length, isComplete: isComplete, to: location)
                guard !version.has(.replay) else {
                    #expect(empty.status == first.status && empty.body == first.body)
                    #expect(empty.isComplete(in: version) == true)
                    continue
                }
                #expect(empty.status == 400)
                #expect(empty.problem?.code == "completed-upload")
                #expect(empty.isComplete(in: version) == false)
            }
            let early = try await sender.append(body[10...], at: 10, isComplete: true, to: location)
            #expect(early.status == 409)
            #expect(early.offset == length)
            #expect(early.isComplete(in: version) == false)
            let again = try await sender.request("GET", location)
            #expect(again.status == first.status)
            #expect(again.body == first.body)
            #expect(again.isComplete(in: version) == true)
            #expect(try receiver.records.count == 1)
        }
    }

    @Test func `a form that is refused for good is refused in the same words when asked again, also after a restart`()
        async throws
    {
        try await withTemporaryDirectory { directory in
            let body = Array("--b\r\nno form".utf8)
            var first: CurlResponse?
            var location = ""
            try await withReceiver(in: directory) { receiver in
                let sender = try CurlSender(to: receiver)
                defer { sender.removeFiles() }
                location = try #require(try await sender.create(body[..<5], isComplete: false).head.fields["location"])
                first = try await sender.append(body[5...], at: 5, isComplete: true, to: location)
                #expect(first?.status == 400)
                #expect(first?.isComplete(in: .newest) == true)
            }
            try await withReceiver(in: directory) { receiver in
                let sender = try CurlSender(to: receiver)
                defer { sender.removeFiles() }
                let again = try await sender.request("GET", location)
                #expect(again.status == 400)
                #expect(again.body == first?.body)
                #expect(again.head.fields["content-type"] == "application/problem+json")
                #expect(try await sender.head(location).isComplete(in: .newest) == true)
            }
        }
    }

    @Test func `a response whose record is damaged is refused and counted, and is then no longer there`() async throws {
        try await withCurlSender { sender, receiver in
            let body = Form.small.utf8
            let location = try #require(try await sender.create(body, isComplete: false).head.fields["location"])
            let last = try await sender.append([], at: Int64(body.count), isComplete: true, to: location)
            #expect(last.status == 201)
            let id = try #require(try receiver.records.first)
            let record = receiver.directory.appending(id).appending("record.json")
            try Data("{".utf8).write(to: URL(filePath: record.string))
            let damaged = try await sender.request("GET", location)
            #expect(damaged.status == 503)
            #expect(damaged.problem?.code == "store-unavailable")
            #expect(try await sender.request("GET", location).problem?.code == "not-found")
            let metrics = try await receiver.metrics()
            #expect(metrics[#"postcard_store_errors_total{code="damaged",operation="read"}"#] == 1)
        }
    }

    @Test(arguments: [[], ["Transfer-Encoding: chunked"]])
    func `an append beyond the largest form is refused with the limit`(fields: [String]) async throws {
        try await withCurlSender(.newest, { $0.uploads.limits.maximumBodyBytes = 1000 }) { sender, receiver in
            let location = try #require(try await sender.create([], isComplete: false).head.fields["location"])
            let most = String(repeating: "x", count: 1000)
            let taken = try await sender.append(most.utf8, at: 0, isComplete: false, to: location, fields: fields)
            #expect(taken.offset == 1000)
            let refused = try await sender.append("x".utf8, at: 1000, isComplete: false, to: location, fields: fields)
            #expect(refused.status == 413)
            #expect(refused.problem?.code == "body-too-large")
            let limits = refused.head.fields["upload-limit"] ?? ""
            #expect(limits.hasPrefix("max-size=1000, max-age=86"), "\(limits)")
        }
    }

    @Test func `an ordinary form that is too large is refused with the limit too`() async throws {
        try await withCurlSender(.newest, { $0.uploads.limits.maximumBodyBytes = 1000 }) { sender, _ in
            let large = String(repeating: "x", count: 1001)
            for fields in [[], ["Transfer-Encoding: chunked"]] {
                let request = Form.part("Content-Disposition: form-data; name=a", large)
                let refused = try await sender.create(request.utf8, isComplete: nil, fields: fields)
                #expect(refused.status == 413)
                #expect(refused.head.fields["upload-limit"] == "max-size=1000, max-age=86400")
                #expect(refused.head.fields["upload-complete"] == nil)
            }
        }
    }

    @Test(arguments: [("HEAD", 204), ("GET", 204)])
    func `the offset is answered to HEAD, and to GET, which some proxies make of it`(
        method: String, status: Int
    ) async throws {
        try await withCurlSender { sender, _ in
            let created = try await sender.create("0123456789".utf8, isComplete: false)
            let location = try #require(created.head.fields["location"])
            let response =
                method == "HEAD" ? try await sender.head(location) : try await sender.request(method, location)
            #expect(response.status == status)
            #expect(response.offset == 10)
            #expect(response.isComplete(in: .newest) == false)
            #expect(response.body.isEmpty)
        }
    }

    @Test(arguments: [false, true])
    func `an upload whose bytes something else has cut is gone`(isKnownToBeStored: Bool) async throws {
        try await withCurlSender { sender, receiver in
            let created = try await sender.create("0123456789".utf8, isComplete: false)
            let location = try #require(created.head.fields["location"])
            if isKnownToBeStored { #expect(try await sender.head(location).offset == 10) }
            let body = receiver.directory.appending(".unfinished").appending(String(location.suffix(32)))
                .appending("body")
            try Data("0123".utf8).write(to: URL(filePath: body.string))
            #expect(try await sender.head(location).status == 404)
            #expect(try await sender.append("x".utf8, at: 10, isComplete: true, to: location).status == 404)
            #expect(try await sender.append("x".utf8, at: 4, isComplete: true, to: location).status == 404)
        }
    }

    @Test func `a form that breaks a rule is refused at that byte, though more of it is to come`() async throws {
        let rules = try FormRules(json: Data(#"{"fields":{"b":{}}}"#.utf8))
        try await withCurlSender(.newest, { $0.uploads.rules = rules }) { sender, receiver in
            let body = Array(Form.small.utf8)
            let location = try #require(
                try await sender.create(body[..<20], isComplete: false).head.fields["location"])
            let refused = try await sender.append(body[20...60], at: 20, isComplete: false, to: location)
            #expect(refused.status == 422)
            #expect(refused.problem?.code == "unexpected-field")
            #expect(refused.isComplete(in: .newest) == true)
            #expect(try await sender.head(location).status == 404)
            #expect(receiver.unfinished.isEmpty)
        }
    }

    @Test func `a cancelled upload is gone, and so is one whose folder is`() async throws {
        try await withCurlSender { sender, receiver in
            let created = try await sender.create("0123456789".utf8, isComplete: false)
            let location = try #require(created.head.fields["location"])
            #expect(try await sender.request("DELETE", location).status == 204)
            #expect(try await sender.request("DELETE", location).status == 404)
            #expect(try await sender.head(location).status == 404)
            let more = try await sender.append("x".utf8, at: 10, isComplete: true, to: location)
            #expect(more.problem?.code == "upload-not-found")
            #expect(receiver.unfinished.isEmpty)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test(arguments: [
        "/uploads/resumable/..%2f..%2f.lock", "/uploads/resumable/../x", "/uploads/resumable/.", "/uploads/resumable/",
        "/uploads/resumable/0123456789abcdefghjkmnpqrstvwxy", "/uploads/resumable/0123456789ABCDEFGHJKMNPQRSTVWXYZ",
        "/uploads/resumable/0123456789abcdefghjkmnpqrstvwxyz",
    ])
    func `an address that is none leads nowhere`(path: String) async throws {
        try await withCurlSender { sender, receiver in
            var sender = sender
            sender.options = ["--path-as-is"]
            for method in ["PATCH", "DELETE"] {
                let fields = ["Content-Type: application/partial-upload", "Upload-Complete: ?1", "Upload-Offset: 0"]
                let status = try await sender.request(method, path, fields: fields).status
                #expect([404, 405].contains(status))
            }
            #expect(FileManager.default.fileExists(atPath: receiver.directory.appending(".lock").string))
        }
    }

    @Test func `resuming an upload needs a token for posting`() async throws {
        try await withCurlSender(
            .newest,
            { receiver in
                receiver.tokens.posting = ["post"]
                receiver.tokens.reading = ["read"]
            }
        ) { sender, _ in
            let post = "Authorization: Bearer post"
            #expect(try await sender.request("OPTIONS", "/uploads").status == 401)
            #expect(try await sender.request("OPTIONS", "/uploads", fields: [post]).status == 204)
            #expect(try await sender.create([], isComplete: false).status == 401)
            let created = try await sender.create([], isComplete: false, fields: [post])
            let location = try #require(created.head.fields["location"])
            for authorization in ["X-None: 1", "Authorization: Bearer read"] {
                #expect(try await sender.request("DELETE", location, fields: [authorization]).status == 401)
                let append = try await sender.append(
                    Form.small.utf8, at: 0, isComplete: true, to: location, fields: [authorization])
                #expect(append.status == 401)
            }
            let last = try await sender.append(
                Form.small.utf8, at: 0, isComplete: true, to: location, fields: [post])
            #expect(last.status == 201)
        }
    }
}
