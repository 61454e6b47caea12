import Foundation
import NIOCore
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardS3

/// `postcard serve --store`, as it was built.
@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct ServeBucketTests {
    private static func environment(_ keys: (id: String, secret: String)?) -> [String: String] {
        // Nothing of this machine: no profile, and no credentials of a container.
        let nothing = ["HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"]
        guard let keys else { return nothing }
        return nothing.merging(["AWS_ACCESS_KEY_ID": keys.id, "AWS_SECRET_ACCESS_KEY": keys.secret]) { $1 }
    }

    private static func keys(of bucket: S3Bucket) throws -> (id: String, secret: String) {
        guard case .fixed(let credentials) = bucket.credentials.kind else { throw ProgramFailure("No credentials") }
        return (credentials.accessKeyID, credentials.secretAccessKey)
    }

    private static func arguments(_ bucket: S3Bucket, endpoint: String? = nil) -> [String] {
        [
            "serve", "--port", "0", "--store", "s3://\(bucket.name)/\(bucket.prefix)", "--s3-region", "us-east-1",
            "--s3-endpoint", endpoint ?? bucket.endpoint ?? "",
        ]
    }

    private static func serve(_ bucket: S3Bucket, endpoint: String? = nil) async throws -> RunningServer {
        try await RunningServer(arguments(bucket, endpoint: endpoint), environment: environment(keys(of: bucket)))
    }

    private static func curl(_ arguments: String...) async throws -> Program.Ending {
        try await Program.run("curl", ["-sS", "--max-time", "120"] + arguments)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a form that one receiver stores is read from another, also after both are killed`(
        address: String
    ) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let servers = [try await Self.serve(bucket), try await Self.serve(bucket)]
        let folder = try TemporaryFolder()
        let content = Data((0..<9_000_000).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8)) })
        let file = try folder.file("초코.bin", content).path
        let record = try await Self.curl("-F", "이름=초코", "-F", "f=@\(file)", "\(servers[0].address)/uploads").json()
        let url = try #require((record["files"] as? [[String: Any]])?.first?["url"] as? String)
        #expect(try await Self.curl("\(servers[1].address)\(url)").output == content)
        #expect(try await Self.curl("\(servers[1].address)/health").text == "ok")
        #expect(try await Self.curl("\(servers[1].address)/status").json()["freeBytes"] == nil)
        let page = try await Self.curl("\(servers[1].address)/")
        #expect(page.text.contains(#""hasThumbnails":false"#))
        for server in servers { server.kill() }
        let server = try await Self.serve(bucket)
        let list = try await Self.curl("\(server.address)/uploads").json()
        let id = try #require(record["id"] as? String)
        #expect((list["uploads"] as? [[String: Any]])?.compactMap { $0["id"] as? String } == [id])
        #expect(try await Self.curl("\(server.address)\(url)").output == content)
        #expect(await server.terminate() == 0)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a form that begins at one receiver ends at another`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let servers = [try await Self.serve(bucket), try await Self.serve(bucket)]
        let body = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\ncontent\r\n--b--\r\n"
        let first = String(decoding: body.utf8.prefix(20), as: UTF8.self)
        let rest = String(decoding: body.utf8.dropFirst(20), as: UTF8.self)
        let type = "Content-Type: multipart/form-data; boundary=b"
        let created = try await Self.curl(
            "-i", "-H", type, "-H", "Upload-Complete: ?0", "-H", "Upload-Draft-Interop-Version: 8", "--data-binary",
            first, "\(servers[0].address)/uploads")
        let path = try #require(created.text.firstMatch(of: /(?i)location: (\/uploads\/resumable\/\S+)/)?.1)
        let fields = ["-H", "Upload-Draft-Interop-Version: 8"]
        func head(_ server: RunningServer) async throws -> String {
            try await Program.run("curl", ["-sSI"] + fields + [server.address + path]).text.lowercased()
        }
        for server in servers { #expect(try await head(server).contains("upload-offset: 20\r\n")) }
        func append(_ bytes: String, at offset: Int, _ fields: String...) async throws -> Program.Ending {
            try await Program.run(
                "curl",
                [
                    "-sSi", "-X", "PATCH", "-H", "Upload-Draft-Interop-Version: 8", "-H", "Upload-Complete: ?1", "-H",
                    "Content-Type: application/partial-upload", "-H", "Upload-Offset: \(offset)", "--data-binary",
                    bytes,
                ] + fields.flatMap { ["-H", $0] } + [servers[1].address + path])
        }
        // Bytes that were changed on the way count nowhere.
        let digest = "Content-Digest: sha-256=:\(Data(repeating: 1, count: 32).base64EncodedString()):"
        #expect(try await append(rest, at: 20, digest).text.contains("digest-mismatch"))
        for server in servers { #expect(try await head(server).contains("upload-offset: 20\r\n")) }
        let last = try await append(rest, at: 20)
        #expect(last.text.hasPrefix("HTTP/1.1 201"))
        let location = try #require(last.text.firstMatch(of: /(?i)location: (\/uploads\/\w+)/)?.1)
        for server in servers {
            #expect(try await head(server).contains("upload-complete: ?1"))
            let record = try await Self.curl(server.address + location).json()
            #expect(record["fields"] as? [[String: String]] == [["name": "a", "value": "content"]])
            let again = try await Program.run("curl", ["-sS"] + fields + [server.address + path]).json()
            #expect(again["id"] as? String == record["id"] as? String)
        }
        #expect(try await append("", at: body.utf8.count).text.contains("completed-upload"))
    }

    @Test(arguments: ObjectStores.addresses)
    func `health is bad, and forms are refused, while the object store does not answer`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let isDown = Atomic(false)
        try await FaultProxy.run(before: try #require(bucket.endpoint.flatMap { URL(string: $0) })) { _ in
            isDown.load(ordering: .relaxed) ? .response(Fault.Response(503)) : .none
        } while: { proxy in
            let server = try await Self.serve(bucket, endpoint: "http://127.0.0.1:\(proxy.port)")
            #expect(try await Self.curl("\(server.address)/health").text == "ok")
            isDown.store(true, ordering: .relaxed)
            // An answer is good for a second.
            try await eventually { try await Self.curl("\(server.address)/health").text != "ok" }
            let health = try await Self.curl("\(server.address)/health").json()
            #expect(health["status"] as? Int == 503)
            #expect(health["code"] as? String == "store-unavailable")
            #expect((health["detail"] as? String)?.hasPrefix("The object store") == true)
            let refused = try await Self.curl("-i", "-F", "a=b", "\(server.address)/uploads")
            #expect(refused.text.hasPrefix("HTTP/1.1 503") && refused.text.lowercased().contains("retry-after:"))
            isDown.store(false, ordering: .relaxed)
            try await eventually { try await Self.curl("\(server.address)/health").text == "ok" }
            #expect(try await Self.curl("-F", "a=b", "\(server.address)/uploads").json()["id"] != nil)
            #expect(await server.terminate() == 0)
        }
    }

    /// Why a bucket cannot be used, and what the program says.
    private static func refusal(
        _ bucket: S3Bucket, _ keys: (id: String, secret: String)?, endpoint: String? = nil
    ) async throws -> (status: Int32, messages: String) {
        let ending = try await Program.run(
            arguments(bucket, endpoint: endpoint), environment: environment(keys))
        #expect(ending.text.isEmpty)
        return (ending.status, ending.messages)
    }

    @Test(arguments: ObjectStores.addresses)
    func `what is wrong with a bucket ends the program with what to do`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let keys = try Self.keys(of: bucket)
        var missing = try S3Bucket("s3://postcard-missing-\(UUID().uuidString.lowercased())")
        missing.endpoint = bucket.endpoint
        var cases = [
            (try await Self.refusal(missing, keys), "NoSuchBucket", "Make the bucket, or correct its name."),
            (try await Self.refusal(bucket, nil), "no credentials", "Set AWS_ACCESS_KEY_ID"),
            (
                try await Self.refusal(bucket, keys, endpoint: "http://127.0.0.1:1"), "does not answer",
                "Check the address"
            ),
        ]
        if ObjectStores.isReal(address) {
            cases.append((try await Self.refusal(bucket, (keys.id, "x")), "SignatureDoesNotMatch", "Check AWS_SECRET"))
            cases.append((try await Self.refusal(bucket, ("A", "x")), "InvalidAccessKeyId", "Check AWS_ACCESS_KEY_ID"))
        }
        for (refusal, what, advice) in cases {
            #expect(refusal.status == 69)
            #expect(refusal.messages.contains(what) && refusal.messages.contains(advice), "\(refusal.messages)")
        }
        // A store that has no create-only PUT, and one that ignores it.
        let server = try #require(bucket.endpoint.flatMap { URL(string: $0) })
        let keysOfBucket = keys
        for (status, what) in [(501, "does not implement"), (200, "in spite of If-None-Match")] {
            try await FaultProxy.run(before: server) { request in
                request.method == "PUT" ? .response(Fault.Response(status)) : .none
            } while: { proxy in
                let refusal = try await Self.refusal(
                    bucket, keysOfBucket, endpoint: "http://127.0.0.1:\(proxy.port)")
                #expect(refusal.status == 69)
                #expect(refusal.messages.contains(what), "\(refusal.messages)")
                #expect(refusal.messages.contains("Use a store that does this"), "\(refusal.messages)")
            }
        }
    }
}
