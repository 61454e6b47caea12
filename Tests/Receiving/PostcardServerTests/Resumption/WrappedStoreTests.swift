import Foundation
import Hummingbird
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import Testing

/// A store that forwards everything to a local one.
private struct ForwardingStore: ForwardingUploadStore, ResumableUploadStore {
    let base: LocalUploadStore
    /// Called before an upload begins.
    var beforeUpload: @Sendable (UploadKey?) async -> Void = { _ in }

    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending LocalUpload {
        await beforeUpload(key)
        return try await base.beginUpload(under: key, announcedBytes: announcedBytes)
    }

    func createUnfinishedUpload(
        _ id: ResumptionID, of form: UnfinishedForm, expires: Date
    ) async throws -> LocalUnfinishedUpload {
        try await base.createUnfinishedUpload(id, of: form, expires: expires)
    }
    func unfinishedUploads() async throws -> [LocalUnfinishedUpload] { try await base.unfinishedUploads() }
    func unfinishedUpload(_ id: ResumptionID) async throws -> LocalUnfinishedUpload? {
        try await base.unfinishedUpload(id)
    }
}

/// A store that keeps no unfinished uploads.
private struct PlainStore: ForwardingUploadStore {
    let base: LocalUploadStore
}

@Suite(.timeLimit(.minutes(10)))
struct WrappedStoreTests {
    private func withSender(
        to store: (LocalUploadStore) -> any UploadStore, options: UploadOptions = UploadOptions(),
        _ body: (CurlSender, LocalUploadStore) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let local = try LocalUploadStore(directory: directory)
            let router = Router()
            var options = options
            options.access = .all
            router.addUploads(to: store(local), options: options)
            try await withApplication(router: router) { receiver in
                let sender = try CurlSender(to: receiver)
                defer { sender.removeFiles() }
                try await body(sender, local)
            }
        }
    }

    @Test func `a store that forwards to one with resumption offers it too`() async throws {
        try await withSender(to: { ForwardingStore(base: $0) }) { sender, local in
            let form = Array(Form.small.utf8)
            let created = try await sender.create(form.prefix(20), isComplete: false)
            #expect(created.status == 201)
            let location = try #require(created.head.fields["location"])
            #expect(try await sender.head(location).offset == 20)
            let last = try await sender.append(form.dropFirst(20), at: 20, isComplete: true, to: location)
            #expect(last.status == 201)
            let ids = try await local.identifiers(limit: 10, after: nil)
            let record = try #require(last.head.fields["location"]?.split(separator: "/").last)
            #expect(ids.map(\.text) == [String(record)])
            // The response is kept for a client that missed it, until the record is deleted.
            let again = try await sender.request("GET", location)
            #expect(again.status == 201)
            #expect(again.body == last.body)
            #expect(try await local.delete(try #require(ids.first)))
            #expect(try await sender.head(location).status == 404)
        }
    }

    /// Starts an upload that stops after its first byte.
    private static func stalled(at receiver: RunningReceiver) async throws -> RawSocket {
        let socket = try RawSocket(port: receiver.port)
        try await socket.send(Form.head(contentLength: 1000) + "-")
        return socket
    }

    @Test func `a form that is whole while its client has too many uploads in progress is kept`() async throws {
        let (calls, call) = AsyncStream.makeStream(of: Void.self)
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let waiting: (LocalUploadStore) -> any UploadStore = { local in
            ForwardingStore(base: local) { key in
                // The form of an unfinished upload has a key, the others have none.
                guard key != nil else { return }
                call.yield()
                for await _ in gate {}
            }
        }
        // One at a time for each address.
        var options = UploadOptions()
        options.maximumConcurrentUploads = 4
        try await withSender(to: waiting, options: options) { sender, _ in
            let form = Array(Form.small.utf8)
            let location = try #require(try await sender.create(form, isComplete: false).head.fields["location"])
            async let append = sender.append([], at: Int64(form.count), isComplete: true, to: location)
            _ = await calls.first { _ in true }
            var stalled = try await Self.stalled(at: sender.receiver)
            while try await sender.receiver.exchange(Form.request(body: Form.small)).status == 201 {
                // The server may not have read it yet, or has refused it because of the other form.
                if stalled.isReadable { stalled = try await Self.stalled(at: sender.receiver) }
            }
            open.finish()
            let refused = try await append
            #expect(refused.status == 429)
            #expect(refused.isComplete(in: .newest) == false)
            #expect(try await sender.head(location).isComplete(in: .newest) == false)
            stalled.abort()
            var last = refused
            while last.status == 429 {
                last = try await sender.append([], at: Int64(form.count), isComplete: true, to: location)
            }
            #expect(last.status == 201)
        }
    }

    @Test func `with a store that keeps no unfinished uploads the fields of the draft are ignored`() async throws {
        try await withSender(to: PlainStore.init) { sender, local in
            let whole = try await sender.create(Form.small.utf8, isComplete: true)
            #expect(whole.status == 201)
            #expect(whole.interim.isEmpty)
            #expect(whole.head.fields["upload-complete"] == nil)
            let part = try await sender.create(Form.small.utf8.prefix(20), isComplete: false)
            #expect(part.problem?.code == "truncated")
            let other = "/uploads/resumable/\(String(repeating: "0", count: 32))"
            #expect(try await sender.head(other).status == 404)
            #expect(try await sender.request("OPTIONS", "/uploads").status == 405)
            #expect(try await local.identifiers(limit: 10, after: nil).count == 1)
        }
    }
}
