import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import PostcardReceivingSupport
import PostcardReception
import PostcardServer
import PostcardTestSupport
import PostcardWire
import Synchronization
import SystemPackage
import Testing

private struct Pet: ResponseCodable, Sendable, Equatable {
    let name: String
    let number: Int
}

private struct DatabaseFailure: Error {}

/// Counts the calls of an app's closure, whose responses each have another number.
private final class Calls: Sendable {
    private let calls = Atomic(0)

    var count: Int { calls.load(ordering: .relaxed) }

    func next() -> Int { calls.add(1, ordering: .relaxed).newValue }
}

@Suite(.timeLimit(.minutes(10)))
struct OwnResponseTests {
    private typealias Context = BasicRequestContext

    private static let keyed = Form.request(body: Form.small, fields: ["Idempotency-Key: k"])

    /// Runs an app on a directory that may have been another app's.
    private func withResponses<Output: ResponseGenerator>(
        in directory: FilePath, _ respond: @escaping @Sendable (CommittedUpload, Request) async throws -> Output,
        _ body: (RunningReceiver) async throws -> Void
    ) async throws {
        let router = Router()
        router.addUploads(to: try LocalUploadStore(directory: directory)) { upload, head, _ in
            try await respond(upload, Request(head: head, body: RequestBody(buffer: ByteBuffer())))
        }
        try await withApplication(router: router, body)
    }

    private func withResponses<Output: ResponseGenerator>(
        _ respond: @escaping @Sendable (CommittedUpload, Request) async throws -> Output,
        _ body: (RunningReceiver) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { try await withResponses(in: $0, respond, body) }
    }

    @Test func `a repeated form gets the same response, after a restart too, and the app is called once`() async throws
    {
        try await withTemporaryDirectory { directory in
            let calls = Calls()
            var responses: [String] = []
            for _ in 0..<2 {
                try await withResponses(in: directory) { upload, _ in
                    Pet(name: upload.record.fields[0].value, number: calls.next())
                } _: { receiver in
                    for _ in 0..<2 {
                        let response = try await receiver.exchange(Self.keyed)
                        #expect(response.status == 200)
                        #expect(response.headers["content-type"]?.hasPrefix("application/json") == true)
                        responses.append(response.body)
                    }
                }
            }
            #expect(calls.count == 1)
            let pet = try JSONDecoder().decode(Pet.self, from: Data(responses[0].utf8))
            #expect(pet == Pet(name: "value", number: 1))
            #expect(Set(responses).count == 1 && responses.count == 4)
        }
    }

    @Test func `a form without a key is another one each time`() async throws {
        let calls = Calls()
        try await withResponses { _, _ in
            "\(calls.next())"
        } _: { receiver in
            for number in 1...3 {
                let response = try await receiver.exchange(Form.request(body: Form.small))
                #expect(response.body == "\(number)")
                #expect(response.headers["content-type"]?.hasPrefix("text/plain") == true)
            }
        }
    }

    @Test func `a resumed form gets the same response whenever it is asked for`() async throws {
        let calls = Calls()
        try await withTemporaryDirectory { directory in
            var location = ""
            let form = Array(Form.small.utf8)
            for isFirst in [true, false] {
                try await withResponses(in: directory) { upload, _ in
                    Response(
                        status: .accepted, headers: [.contentType: "text/x-number"],
                        body: ResponseBody(byteBuffer: ByteBuffer(string: "\(upload.record.id) \(calls.next())")))
                } _: { receiver in
                    let sender = try CurlSender(to: receiver)
                    defer { sender.removeFiles() }
                    if isFirst {
                        location = try #require(
                            try await sender.create(form.prefix(20), isComplete: false).head.fields["location"])
                        let last = try await sender.append(
                            form.dropFirst(20), at: 20, isComplete: true, to: location)
                        #expect(last.status == 202 && last.body.hasSuffix(" 1"))
                        #expect(last.isComplete(in: .newest) == true)
                    }
                    for response in [
                        try await sender.request("GET", location),
                        try await sender.append([], at: Int64(form.count), isComplete: true, to: location),
                    ] {
                        #expect(response.status == 202 && response.body.hasSuffix(" 1"), "\(response.body)")
                        #expect(response.head.fields["content-type"] == "text/x-number")
                    }
                }
            }
        }
        #expect(calls.count == 1)
    }

    @Test(arguments: [0, 1, 1000, 512 << 10], [true, false])
    func `a response may have any bytes`(count: Int, isAllOnes: Bool) async throws {
        // In base64, bytes of ones are slashes, which JSON may write with two bytes each.
        let bytes = (0..<count).map { isAllOnes ? 0xFF : UInt8(truncatingIfNeeded: $0 &* 7 &+ 200) }
        let calls = Calls()
        try await withResponses { _, _ in
            _ = calls.next()
            return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
        } _: { receiver in
            let folder = try TemporaryFolder()
            let form = try folder.file("form", Data(Form.small.utf8))
            let file = folder.url.appending(path: "response")
            for _ in 0..<2 {
                let ending = try await receiver.curl(
                    "-f", "-H", "Idempotency-Key: k", "-H", Form.contentType, "--data-binary", "@\(form.path)", "-o",
                    file.path, receiver.url + "/uploads")
                #expect(ending.status == 0, "\(ending.messages)")
                #expect(try Data(contentsOf: file) == Data(bytes))
            }
        }
        #expect(calls.count == 1)
    }

    @Test(arguments: [true, false])
    func `a response that is too large, or that fails, is a 503 until the app has one`(isTooLarge: Bool) async throws {
        let calls = Calls()
        try await withResponses { upload, _ in
            guard calls.next() == 1 else { return Response(status: .ok) }
            #expect(!upload.isRepetition)
            guard isTooLarge else { throw DatabaseFailure() }
            return Response(
                status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(repeating: 7, count: 512 << 10 + 1)))
        } _: { receiver in
            let failed = try await receiver.exchange(Self.keyed)
            #expect(failed.status == 503)
            #expect(failed.problem?.code == "form-not-processed")
            for _ in 0..<2 { #expect(try await receiver.exchange(Self.keyed).status == 200) }
        }
        #expect(calls.count == 2)
    }

    @Test func `what the app throws on purpose is the response, and is not kept`() async throws {
        let calls = Calls()
        try await withResponses { _, _ -> String in
            if calls.next() == 1 { throw HTTPError(.conflict, message: "The album is full.") }
            return "stored"
        } _: { receiver in
            let refused = try await receiver.exchange(Self.keyed)
            #expect(refused.status == 409)
            let stored = try await receiver.exchange(Self.keyed)
            #expect(stored.body == "stored")
        }
        #expect(calls.count == 2)
    }

    @Test func `a damaged response is logged, and the app responds again`() async throws {
        try await withTemporaryDirectory { directory in
            let calls = Calls()
            try await withResponses(in: directory) { _, _ in
                "\(calls.next())"
            } _: { receiver in
                #expect(try await receiver.exchange(Self.keyed).body == "1")
                let id = try #require(
                    try FileManager.default.contentsOfDirectory(atPath: directory.string).first { !$0.hasPrefix(".") })
                try Data("{".utf8).write(to: URL(filePath: directory.appending("\(id)/answer.json").string))
                #expect(try await receiver.exchange(Self.keyed).body == "2")
                #expect(try await receiver.exchange(Self.keyed).body == "2")
            }
        }
    }
}
