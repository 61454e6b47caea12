import Foundation
import Hummingbird
import NIOCore
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardServer
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardS3

/// The routes by which an app gets forms, and reports what it has stored with them.
@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct PresignedRouteTests {
    private static let client = UploadClient(transport: AsyncHTTPTransport())

    private static func store(at address: String) async throws -> S3UploadStore {
        try await S3UploadStore.open(try await ObjectStores.makeBucket(at: address))
    }

    private static func withRoutes(
        of store: S3UploadStore, _ change: (inout PresignedFormOptions) -> Void = { _ in },
        stored: (@Sendable (CommittedUpload) throws -> Void)? = nil,
        _ body: (Routes) async throws -> Void
    ) async throws {
        let router = Router()
        var options = PresignedFormOptions()
        options.contentTypes = [.anyImage, "text/plain"]
        options.maximumBytes = 10_000_000
        change(&options)
        var uploads = UploadOptions()
        uploads.access = .all
        router.addUploads(to: store, options: uploads)
        try router.addPresignedForms(of: store, options: options) { upload, _, _ in try stored?(upload) }
        try await PostcardS3Tests.withRoutes(router) { try await body(Routes(address: $0)) }
    }

    struct Answer {
        let status: Int
        let json: [String: Any]
        let text: String
        var code: String? { json["code"] as? String }
    }

    /// The app's side.
    struct Routes: Sendable {
        let address: String

        func post(_ path: String, _ body: String) async throws -> Answer {
            // One argument of a program has at most 128 KiB.
            let folder = try TemporaryFolder()
            defer { withExtendedLifetime(folder) {} }
            let file = try folder.file("body", Data(body.utf8))
            let ending = try await Program.run(
                "curl",
                [
                    "-sS", "--max-time", "60", "-w", "\n%{http_code}", "--data-binary", "@\(file.path)",
                    "\(address)\(path)",
                ])
            let lines = ending.text.split(separator: "\n")
            let text = lines.dropLast().joined(separator: "\n")
            let json = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            return Answer(status: lines.last.flatMap { Int($0) } ?? 0, json: json ?? [:], text: text)
        }

        func form(_ wish: String) async throws -> PresignedForm {
            let answer = try await post("/uploads/forms", wish)
            #expect(answer.status == 200, "\(answer.text)")
            return try JSONDecoder().decode(PresignedForm.self, from: Data(answer.text.utf8))
        }

        func get(_ path: String) async throws -> Data {
            try await Program.run("curl", ["-sS", "--max-time", "60", "\(address)\(path)"]).output
        }
    }

    private static func form(_ content: Data, _ type: PostcardForm.MediaType = .jpeg) -> MultipartForm {
        var form = MultipartForm()
        form.append(content, named: "photo", filename: "초코.jpg", contentType: type)
        return form
    }

    /// More than one request of the receiver reads.
    private static let content =
        Data([0xFF, 0xD8, 0xFF, 0xE0]) + Data((0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })

    @Test(arguments: ObjectStores.addresses, [PresignedFormOptions.Method.post, .put])
    func `a file that an app posts to the bucket becomes one record, however often it is reported`(
        address: String, method: PresignedFormOptions.Method
    ) async throws {
        // moto reads no forms: it keeps neither the type nor the fields.
        guard ObjectStores.isReal(address) || method == .put else { return }
        let store = try await Self.store(at: address)
        try await Self.withRoutes(of: store) {
            $0.method = method
            $0.keyPrefix = "pets/photos"
        } _: { routes in
            let presigned = try await routes.form(
                #"{"filename":"초코 \"1\".jpg","contentType":"image/jpeg","fields":[{"name":"name","value":"초코"}]}"#)
            #expect(presigned.expires.map { $0 > Date() && $0 < Date().addingTimeInterval(601) } == true)
            let object = try await Self.client.upload(Self.form(Self.content), with: presigned)
            let key = try #require(object.key)
            #expect(key.hasPrefix("some/path/arriving/pets/photos/"))
            // Nothing is a record before it is reported.
            #expect(try await store.identifiers(limit: 10, after: nil).isEmpty)
            let report = #"{"key":"\#(key)","etag":"\#(object.etag ?? "")","size":\#(Self.content.count)}"#
            let answers = try await withThrowingTaskGroup(of: (Int, String?, String).self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        let answer = try await routes.post("/uploads/forms/finished", report)
                        return (answer.status, answer.json["id"] as? String, answer.text)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers.allSatisfy { $0.0 == 201 }, "\(answers)")
            #expect(Set(answers.map { $0.1 }).count == 1)
            let id = try #require(answers.first?.1.flatMap { UploadID($0) })
            #expect(try await store.identifiers(limit: 10, after: nil) == [id])
            let record = try #require(try await store.record(id))
            #expect(record.fields == [UploadRecord.Field(name: "name", value: "초코")])
            let file = try #require(record.files.first)
            #expect(file.filename == #"초코 "1".jpg"#)
            #expect(file.contentType == "image/jpeg")
            #expect(file.size == Int64(Self.content.count))
            #expect(file.sha256 == RequestSigner.hash(Self.content))
            #expect(try await routes.get(file.url) == Self.content)
            // The form's own object is gone, and what its holder puts there now changes nothing.
            #expect(try await store.objects.list(ObjectName.arriving).objects.isEmpty)
            try await Self.client.upload(Self.form(Data([0xFF, 0xD8, 0xFF])), with: presigned)
            let again = try await routes.post("/uploads/forms/finished", report)
            #expect(again.status == 201 && again.json["id"] as? String == id.text)
            #expect(try await routes.get(file.url) == Self.content)
            try await store.sweep(SweepTimes(arriving: -60))
            #expect(try await store.objects.list(ObjectName.arriving).objects.isEmpty)
            #expect(try await routes.get(file.url) == Self.content)
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `an event of the store makes records, and ignores what is not of a form`(address: String) async throws {
        let store = try await Self.store(at: address)
        try await Self.withRoutes(of: store, { $0.method = .put }) { routes in
            let object = try await Self.client.upload(
                Self.form(Data([0xFF, 0xD8, 0xFF])), with: try await routes.form(#"{"contentType":"image/jpeg"}"#))
            let bucket = store.objects.bucket.name
            func record(_ key: String, _ name: String = "ObjectCreated:Post", bucket: String = bucket) -> String {
                """
                {"eventName":"\(name)","s3":{"bucket":{"name":"\(bucket)"},"object":{"key":"\(key)","size":3}}}
                """
            }
            let key = try #require(object.key).replacing("/", with: "%2F")
            let event =
                "{\"Records\":["
                + [
                    record(key), record(key), record("some/other"), record(key, "ObjectRemoved:Delete"),
                    record(key, bucket: "other"), record("some/path/arriving/0123456789abcdef"),
                ].joined(separator: ",") + "]}"
            let answer = try await routes.post("/uploads/forms/finished", event)
            #expect(answer.status == 200, "\(answer.text)")
            let ids = try #require(answer.json["uploads"] as? [String])
            #expect(ids.count == 2 && Set(ids).count == 1)
            #expect(try await store.identifiers(limit: 10, after: nil).map(\.text) == [ids[0]])
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `an app is called with each reported file, and its failure can be repeated`(address: String) async throws {
        struct DatabaseFailure: Error {}
        let store = try await Self.store(at: address)
        let calls = Mutex<[CommittedUpload]>([])
        try await Self.withRoutes(of: store, { $0.method = .put }) { upload in
            // It fails twice.
            let count = calls.withLock {
                $0.append(upload)
                return $0.count
            }
            if count == 1 { throw DatabaseFailure() }
            if count == 2 { throw HTTPError(.conflict) }
        } _: { routes in
            let object = try await Self.client.upload(
                Self.form(Data([0xFF, 0xD8, 0xFF])), with: try await routes.form(#"{"contentType":"image/jpeg"}"#))
            let key = try #require(object.key)
            let report = #"{"key":"\#(key)"}"#
            let bucket = store.objects.bucket.name
            let event =
                #"{"Records":[{"eventName":"ObjectCreated:Post","s3":{"bucket":{"name":"\#(bucket)"},"#
                + #""object":{"key":"\#(key)","size":3}}}]}"#
            for (body, status, code) in [(report, 503, "form-not-processed"), (event, 409, "conflict")] {
                let failed = try await routes.post("/uploads/forms/finished", body)
                #expect(failed.status == status && failed.code == code, "\(failed.text)")
            }
            for (body, status) in [(report, 201), (event, 200)] {
                #expect(try await routes.post("/uploads/forms/finished", body).status == status)
            }
            let ids = try await store.identifiers(limit: 10, after: nil)
            #expect(ids.count == 1)
            #expect(calls.withLock { $0.map(\.record.id) } == Array(repeating: try #require(ids.first), count: 4))
            #expect(calls.withLock { $0.map(\.isRepetition) } == [false, true, true, true])
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `what cannot become a record is refused with what to do`(address: String) async throws {
        let store = try await Self.store(at: address)
        try await Self.withRoutes(of: store) {
            $0.method = .put
            $0.maximumBytes = 10
            $0.screen = { $0.filename == "bad.jpg" ? .refused(reason: "It is bad.") : .accepted }
        } _: { routes in
            for (body, code) in [
                ("{", "malformed-request"), ("{}", "malformed-request"), (#"{"key":"other"}"#, "key-of-no-form"),
                (#"{"key":"some/path/records/a"}"#, "key-of-no-form"),
                (#"{"key":"some/path/arriving/0123456789abcdef"}"#, "object-not-found"),
                (String(repeating: " ", count: 1 << 20) + "{}", "body-too-large"),
            ] {
                #expect(try await routes.post("/uploads/forms/finished", body).code == code)
            }
            for (body, code) in [
                ("[", "malformed-request"), (#"{"contentType":"jpeg"}"#, "malformed-request"),
                (#"{"contentType":"video/mp4"}"#, "file-type-not-accepted"), ("", "file-type-not-accepted"),
                (
                    #"{"contentType":"image/png","filename":"\#(String(repeating: "a", count: 1500))"}"#,
                    "presigned-fields-too-long"
                ),
            ] {
                #expect(try await routes.post("/uploads/forms", body).code == code)
            }
            // A PUT does not limit the size: too large a file is removed once it is reported.
            let large = try await routes.form(#"{"contentType":"image/jpeg"}"#)
            let largeKey = try #require(large.key)
            try await Self.client.upload(Self.form(Data(repeating: 1, count: 11)), with: large)
            let answer = try await routes.post("/uploads/forms/finished", #"{"key":"\#(largeKey)"}"#)
            #expect(answer.status == 413 && answer.code == "file-too-large")
            #expect(try await store.objects.list(ObjectName.arriving).objects.isEmpty)
            let bad = try await routes.form(#"{"contentType":"image/jpeg","filename":"bad.jpg"}"#)
            let badKey = try #require(bad.key)
            let object = try await Self.client.upload(Self.form(Data([0xFF, 0xD8, 0xFF])), with: bad)
            for other in [#""etag":"0""#, #""size":4"#] {
                let changed = try await routes.post("/uploads/forms/finished", #"{"key":"\#(badKey)",\#(other)}"#)
                #expect(changed.status == 409 && changed.code == "object-changed")
            }
            let refused = try await routes.post(
                "/uploads/forms/finished", #"{"key":"\#(badKey)","etag":"\"\#(object.etag ?? "")\""}"#)
            #expect(refused.status == 422 && refused.code == "file-refused")
            #expect(try await store.identifiers(limit: 10, after: nil).isEmpty)
            #expect(try await store.objects.list(ObjectName.files).objects.isEmpty)
            let answer405 = String(decoding: try await routes.get("/uploads/forms"), as: UTF8.self)
            #expect(answer405.contains("method-not-allowed"))
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `a POST form allows what the options say, and no more`(address: String) async throws {
        guard ObjectStores.isReal(address) else { return }
        let store = try await Self.store(at: address)
        try await Self.withRoutes(of: store, { $0.maximumBytes = 10 }) { routes in
            let presigned = try await routes.form(#"{"contentType":"image/png"}"#)
            for (form, words) in [
                (Self.form(Data(repeating: 1, count: 11), .png), "accepts 0 to 10"),
                (
                    {
                        var form = Self.form(Data([1]), .png)
                        form.append("public-read", named: "acl")
                        return form
                    }(), #"names the field "acl""#
                ),
            ] {
                let error = try await #require(throws: UploadError.self) {
                    try await Self.client.upload(form, with: presigned)
                }
                #expect(error.code == .brokenPolicy && error.message.contains(words), "\(error)")
            }
            // The store stores it with the type that was signed.
            let object = try await Self.client.upload(Self.form(Data([1]), .jpeg), with: presigned)
            let answer = try await routes.post("/uploads/forms/finished", #"{"key":"\#(object.key ?? "")"}"#)
            #expect(answer.text.contains("image/png"))
        }
    }
}
