import Foundation
import HTTPTypes
import NIOHTTP1
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardS3

/// Forms as real stores see them.
@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct PresignedFormStoreTests {
    private static let client = UploadClient(transport: AsyncHTTPTransport())
    private static let content = Data("a picture of 초코".utf8)

    private static func form(_ fields: (String, String)...) -> MultipartForm {
        var form = MultipartForm()
        form.append(content, named: "photo", filename: "초코.jpg", contentType: .jpeg)
        for (name, value) in fields { form.append(value, named: name) }
        return form
    }

    // MARK: - Accepted

    @Test(arguments: ObjectStores.addresses, [201, 204, 200])
    func `a file is stored, and 201 gives its key and ETag`(address: String, status: Int) async throws {
        let forms = try BucketForms(try await ObjectStores.makeBucket(at: address))
        let presigned = try await forms.sign(
            forms.policy(
                fields: [("key", "photos/1"), ("success_action_status", "\(status)")],
                beginnings: [("Content-Type", "image/"), ("x-amz-meta-pet", "")], bytes: 1...1000))
        let object = try await Self.client.upload(Self.form(("x-amz-meta-pet", "choco")), with: presigned)
        #expect(object.response.status.code == status)
        #expect(object.key == "photos/1")
        let isReal = ObjectStores.isReal(address)
        if status == 201, isReal { #expect(object.etag != nil) }
        let stored = try await forms.object("photos/1")
        #expect(stored.bytes == Array(Self.content))
        if isReal { #expect(stored.type == "image/jpeg") }
        if let etag = object.etag {
            let head = try await forms.connection.response(to: S3Request(method: .HEAD, key: "photos/1"))
            #expect(head.headers.first(name: "etag") == "\"\(etag)\"")
            #expect(head.headers.first(name: "x-amz-meta-pet") == "choco")
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `the store puts the filename into the key`(address: String) async throws {
        let forms = try BucketForms(try await ObjectStores.makeBucket(at: address))
        var policy = forms.policy(fields: [("success_action_status", "201")])
        policy.beginnings = [("key", "photos/"), ("Content-Type", "")]
        var form = MultipartForm()
        form.append(Self.content, named: "photo", filename: "sea.jpg", contentType: .jpeg)
        form.append("photos/${filename}", named: "key")
        let object = try await Self.client.upload(form, with: try await forms.sign(policy))
        #expect(object.key == "photos/sea.jpg")
        #expect(try await forms.object("photos/sea.jpg").bytes == Array(Self.content))
    }

    @Test(arguments: ObjectStores.addresses)
    func `a PUT is stored with the header fields that were signed`(address: String) async throws {
        let forms = try BucketForms(try await ObjectStores.makeBucket(at: address))
        let presigned = try await forms.signPut(
            "some/a b", headers: [("content-type", "image/png"), ("x-amz-meta-pet", "choco")])
        let object = try await Self.client.upload(Self.form(), with: presigned)
        #expect(object.etag != nil)
        let stored = try await forms.object("some/a b")
        #expect(stored.bytes == Array(Self.content))
        #expect(stored.type == "image/png")
    }

    // MARK: - Refused

    /// A form that a store refuses which checks forms, as moto does not. It is sent as it is, past the client's own checks.
    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// What the store may answer.
        let codes: Set<String>
        let advice: String
        /// Whether the client finds out before it sends anything.
        var isFoundBefore = true
        /// Whether every store refuses it.
        var isForAll = false
        let make: @Sendable (BucketForms) async throws -> (PresignedForm, MultipartForm)
    }

    private static func signed(
        _ forms: BucketForms, lifetime: TimeInterval = 600, fields: [(name: String, value: String)] = [],
        beginnings: [(name: String, beginning: String)] = [], bytes: ClosedRange<Int64>? = nil, at date: Date = Date()
    ) async throws -> PresignedForm {
        try await forms.sign(
            forms.policy(
                lifetime: lifetime, fields: [("key", "photos/1")] + fields, beginnings: beginnings, bytes: bytes),
            at: date)
    }

    private static func changed(_ form: PresignedForm, _ name: String, _ value: String?) -> PresignedForm {
        guard case .post(var fields) = form.kind else { return form }
        fields[name] = value
        return PresignedForm(url: form.url, fields: fields)
    }

    private static func elsewhere(_ form: PresignedForm) -> PresignedForm {
        let path = "/postcard-missing-\(UUID().uuidString.lowercased())"
        guard let url = URL(string: path, relativeTo: form.url)?.absoluteURL, case .post(let fields) = form.kind else {
            return form
        }
        return PresignedForm(url: url, fields: fields)
    }

    static let refusals: [Refusal] = [
        Refusal(
            testDescription: "a policy that has ended", codes: ["AccessDenied"], advice: "The form has expired.",
            make: { (try await signed($0, lifetime: -60), form()) }),
        Refusal(
            testDescription: "a file that is too large", codes: ["EntityTooLarge"], advice: "Send a smaller one",
            make: { (try await signed($0, bytes: 1...2), form()) }),
        Refusal(
            testDescription: "a file that is too small", codes: ["EntityTooSmall"], advice: "Check that it is whole",
            make: { (try await signed($0, bytes: 1000...2000), form()) }),
        Refusal(
            testDescription: "a field that no condition names", codes: ["AccessDenied"],
            advice: "No condition of the policy",
            make: { (changed(try await signed($0), "acl", "private"), form()) }),
        Refusal(
            testDescription: "a field that is missing", codes: ["AccessDenied"], advice: "breaks a condition",
            make: { (try await signed($0, beginnings: [("x-amz-meta-pet", "choco")]), form()) }),
        Refusal(
            testDescription: "another value", codes: ["AccessDenied"], advice: "breaks a condition",
            make: {
                let form = try await signed($0, fields: [("x-amz-meta-pet", "choco")])
                return (changed(form, "x-amz-meta-pet", "coco"), Self.form())
            }),
        Refusal(
            testDescription: "a key in another folder", codes: ["AccessDenied"], advice: "breaks a condition",
            make: {
                var policy = $0.policy(fields: [])
                policy.beginnings = [("key", "photos/")]
                return (changed(try await $0.sign(policy), "key", "pets/1"), form())
            }),
        Refusal(
            testDescription: "a signature of something else", codes: ["SignatureDoesNotMatch", "AccessDenied"],
            advice: "signature", isFoundBefore: false,
            make: {
                let signature = String(repeating: "0", count: 64)
                return (changed(try await signed($0), "x-amz-signature", signature), form())
            }),
        Refusal(
            testDescription: "a key of no one", codes: ["InvalidAccessKeyId", "AccessDenied"], advice: "know",
            isFoundBefore: false,
            make: {
                var bucket = $0.bucket
                bucket.credentials = .fixed(S3Credentials(accessKeyID: "AKIANOBODY", secretAccessKey: "secret"))
                return (try await signed(try BucketForms(bucket)), form())
            }),
        Refusal(
            testDescription: "a policy that is none",
            codes: ["InvalidPolicyDocument", "InvalidArgument"], advice: "The store says which",
            make: {
                let text = Data("{}".utf8).base64EncodedString()
                var form = try await signed($0)
                // Signed, so that it is read.
                let signer = RequestSigner(
                    credentials: S3Credentials(accessKeyID: "AKIATEST", secretAccessKey: "secretsecret"),
                    region: "us-east-1")
                form = changed(form, "policy", text)
                return (changed(form, "x-amz-signature", signer.signature(ofPolicy: text, at: Date())), Self.form())
            }),
        Refusal(
            testDescription: "a bucket that is missing", codes: ["NoSuchBucket"], advice: "no such bucket",
            isFoundBefore: false, isForAll: true, make: { (elsewhere(try await signed($0)), form()) }),
        Refusal(
            testDescription: "no key", codes: ["UserKeyMustBeSpecified", "InvalidArgument"],
            advice: "The store says which",
            make: { (changed(try await signed($0), "key", nil), form()) }),
        Refusal(
            testDescription: "a PUT that has ended", codes: ["AccessDenied"], advice: "expired",
            make: { (try await $0.signPut(lifetime: 60, at: Date().addingTimeInterval(-120)), form()) }),
        Refusal(
            testDescription: "a PUT of another type", codes: ["SignatureDoesNotMatch"],
            advice: "exactly as they were signed", isFoundBefore: false,
            make: {
                let put = try await $0.signPut(headers: [("content-type", "image/png")])
                return (PresignedForm(putting: put.url), form())
            }),
        Refusal(
            testDescription: "a PUT without a field that was signed", codes: ["SignatureDoesNotMatch"],
            advice: "exactly as they were signed",
            make: {
                let put = try await $0.signPut(headers: [("x-amz-meta-pet", "choco")])
                return (PresignedForm(putting: put.url), form())
            }),
        Refusal(
            testDescription: "a PUT to a bucket that is missing", codes: ["NoSuchBucket"], advice: "no such bucket",
            isFoundBefore: false, isForAll: true,
            make: {
                var bucket = try S3Bucket("s3://postcard-missing-\(UUID().uuidString.lowercased())")
                bucket.endpoint = $0.bucket.endpoint
                bucket.region = $0.bucket.region
                bucket.credentials = $0.bucket.credentials
                return (try await BucketForms(bucket).signPut(), form())
            }),
    ]

    @Test(arguments: ObjectStores.addresses, refusals)
    func `each refusal of a store has its own advice, and most are found before anything is sent`(
        address: String, refusal: Refusal
    ) async throws {
        guard ObjectStores.isReal(address) || refusal.isForAll else { return }
        let forms = try BucketForms(try await ObjectStores.makeBucket(at: address))
        let (presigned, form) = try await refusal.make(forms)
        if refusal.isFoundBefore {
            let error = try await #require(throws: UploadError.self) {
                try await Self.client.upload(form, with: presigned)
            }
            #expect([.brokenPolicy, .formExpired].contains(error.code), "\(error)")
            #expect(error.delivery == .neverArrived)
        }
        let error = try await #require(throws: UploadError.self) { try await Self.send(form, presigned) }
        let problem = try #require(error.objectStoreProblem, "\(error) \(error.response?.text ?? "")")
        #expect(refusal.codes.contains(problem.code), "\(error)")
        #expect(error.advice?.contains(refusal.advice) == true, "\(error) \(error.advice ?? "no advice")")
    }

    /// Sends a form without comparing it with its policy.
    private static func send(_ form: MultipartForm, _ presigned: PresignedForm) async throws {
        guard case .post(let fields) = presigned.kind else {
            let folder = try TemporaryFolder()
            defer { withExtendedLifetime(folder) {} }
            let file = try folder.file("photo", content)
            let answer = try await Program.run(
                "curl",
                [
                    "-sS", "-w", "\n%{http_code}", "-H", "Content-Type: image/jpeg", "-T", file.path,
                    presigned.url.absoluteString,
                ]
            ).text
            let status = answer.split(separator: "\n").last.flatMap { Int($0) } ?? 0
            guard status < 300 else {
                throw UploadError.refused(
                    UploadResponse(
                        status: HTTPResponse.Status(code: status), headerFields: [:],
                        body: Data(answer.split(separator: "\n").dropLast().joined(separator: "\n").utf8)),
                    by: presigned.url)
            }
            return
        }
        var raw = MultipartForm()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { raw.append(value, named: name) }
        for part in form.parts {
            var part = part
            if part.filename != nil { part.name = "file" }
            raw.append(part)
        }
        try await client.upload(raw, to: presigned.url)
    }

    // MARK: - Refreshed

    @Test(arguments: ObjectStores.addresses)
    func `a form that has expired is replaced once`(address: String) async throws {
        let forms = try BucketForms(try await ObjectStores.makeBucket(at: address))
        let old = try await forms.sign(forms.policy(lifetime: -60, fields: [("key", "photos/1")]))
        let new = try await forms.sign(
            forms.policy(fields: [("key", "photos/2"), ("success_action_status", "201")]))
        let object = try await Self.client.upload(Self.form(), with: old) { new }
        #expect(object.key == "photos/2")
    }

    // MARK: - boto3

    /// What boto3 signs, as JSON.
    private static func boto(_ bucket: S3Bucket, _ call: String) async throws -> Data {
        guard case .fixed(let credentials) = bucket.credentials.kind else { throw CancellationError() }
        let script = """
            import boto3, botocore.client, json
            s3 = boto3.client("s3", endpoint_url="\(bucket.endpoint ?? "")", region_name="us-east-1",
                aws_access_key_id="\(credentials.accessKeyID)", aws_secret_access_key="\(credentials.secretAccessKey)",
                config=botocore.client.Config(signature_version="s3v4", s3={"addressing_style": "path"}))
            print(json.dumps(\(call)))
            """
        let local = FileManager.default.currentDirectoryPath + "/.build/object-store/bin/python"
        let python = FileManager.default.isExecutableFile(atPath: local) ? local : "python3"
        return try await Program.run(python, ["-c", script]).output
    }

    @Test(arguments: ObjectStores.addresses)
    func `forms that boto3 signs are decoded and used`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let forms = try BucketForms(bucket)
        let post = try await Self.boto(
            bucket,
            """
            s3.generate_presigned_post("\(bucket.name)", "photos/${filename}", \
            Fields={"success_action_status": "201"}, Conditions=[{"success_action_status": "201"}, \
            ["starts-with", "$Content-Type", "image/"], ["content-length-range", 1, 1000]], ExpiresIn=600)
            """)
        let presigned = try JSONDecoder().decode(PresignedForm.self, from: post)
        #expect(presigned.expires.map { $0 > Date() } == true)
        var form = MultipartForm()
        form.append(Self.content, named: "photo", filename: "boto.jpg", contentType: .jpeg)
        let object = try await Self.client.upload(form, with: presigned)
        #expect(object.key == "photos/boto.jpg")
        if ObjectStores.isReal(address) { #expect(object.etag != nil) }
        #expect(try await forms.object("photos/boto.jpg").bytes == Array(Self.content))

        let put = try await Self.boto(
            bucket,
            """
            {"url": s3.generate_presigned_url("put_object", Params={"Bucket": "\(bucket.name)", "Key": "photos/a b", \
            "ContentType": "image/jpeg"}, ExpiresIn=600), "headers": {"Content-Type": "image/jpeg"}}
            """)
        let decoded = try JSONDecoder().decode(PresignedForm.self, from: put)
        #expect(decoded.expires.map { $0 > Date() } == true)
        try await Self.client.upload(form, with: decoded)
        #expect(try await forms.object("photos/a b").bytes == Array(Self.content))
    }
}
