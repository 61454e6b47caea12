import Foundation
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing
import Tracing

@testable import PostcardS3

/// One trace from the app to the bucket.
@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct SharedTraceTests {
    /// Runs a receiver on a bucket, with a proxy before each of them.
    private static func run(
        _ address: String,
        _ body: @escaping @Sendable (_ toReceiver: FaultProxy, _ toStore: FaultProxy) async throws -> Void
    ) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let store = try #require(bucket.endpoint.flatMap { URL(string: $0) })
        try await FaultProxy.run([], before: store) { toStore in
            var bucket = bucket
            bucket.endpoint = "http://127.0.0.1:\(toStore.port)"
            try await withReceiver(on: try await S3UploadStore.open(bucket)) { address in
                let receiver = try #require(URL(string: address))
                try await FaultProxy.run([], before: receiver) { try await body($0, toStore) }
            }
        }
    }

    /// Sends a form as a part of what an app does.
    private static func upload(to url: URL) async throws {
        var form = MultipartForm()
        form.append(Data("a picture".utf8), named: "photo", filename: "sea.jpg", contentType: .jpeg)
        let client = UploadClient(transport: AsyncHTTPTransport())
        try await withSpan("app") { [form] _ in
            _ = try await client.upload(form, to: url)
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `the client, the receiver and its requests to the store share a trace`(address: String) async throws {
        let tracer = RecordingTracer()
        try await withTracer(tracer) {
            try await Self.run(address) { toReceiver, toStore in
                try await Self.upload(to: toReceiver.uploads)
                try await eventually { tracer.spans.contains { $0.kind == .server } }

                let app = try #require(tracer.spans.first { $0.name == "app" })
                let sent = try #require(tracer.spans.first { $0.name == "POST" })
                let received = try #require(tracer.spans.first { $0.kind == .server })
                let stored = tracer.spans.filter { $0.parent == received.identity }
                #expect(sent.parent == app.identity)
                #expect(received.parent == sent.identity)
                #expect(stored.count { $0.name == "S3 PUT" } >= 2)
                #expect(Set([app, sent, received].map(\.identity.trace) + stored.map(\.identity.trace)).count == 1)

                // What was on the wire.
                let request = try #require(toReceiver.seen.first { $0.method == "POST" })
                #expect(request["traceparent"] == sent.identity.text)
                let own = toStore.seen.filter { $0["traceparent"]?.contains(app.identity.trace) == true }
                #expect(own.map { $0["traceparent"] } == stored.map { $0.identity.text })
                for span in stored {
                    var texts: [String] = []
                    span.attributes.forEach { name, value in texts.append("\(name)=\(value)") }
                    #expect(!texts.joined().contains("files/"))
                }
            }
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `what is read while the response is sent belongs to its request`(address: String) async throws {
        let tracer = RecordingTracer()
        try await withTracer(tracer) {
            try await Self.run(address) { toReceiver, toStore in
                let folder = try TemporaryFolder()
                let file = try folder.file("large", size: 5_000_000)
                let record = try await Program.run("curl", ["-sS", "-F", "f=@\(file.path)", "\(toReceiver.uploads)"])
                let url = try #require((record.json()["files"] as? [[String: Any]])?.first?["url"] as? String)
                let before = toStore.seen.count
                let parent = TraceParent(trace: TraceParent.random(32), span: TraceParent.random(16))
                let content = try await Program.run(
                    "curl", ["-sS", "-H", "traceparent: \(parent.text)", "\(toReceiver.url.absoluteString)\(url)"])
                #expect(content.output == (try Data(contentsOf: file)))
                try await eventually { tracer.spans.contains { $0.parent == parent } }
                let received = try #require(tracer.spans.first { $0.parent == parent })
                let reads = toStore.seen.dropFirst(before).filter { $0.path.contains("/files/") }
                #expect(reads.count > 1)
                let spans = Set(tracer.spans.filter { $0.parent == received.identity }.map(\.identity.text))
                #expect(reads.allSatisfy { $0["traceparent"].map(spans.contains) == true })
            }
        }
    }
}
