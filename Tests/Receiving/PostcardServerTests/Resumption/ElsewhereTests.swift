import Foundation
import Hummingbird
import NIOCore
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import Synchronization
import Testing

/// What other processes do to the unfinished uploads of a store.
private final class Elsewhere: Sendable {
    private struct State {
        var ended: Set<ResumptionID> = []
        var late: [UInt8] = []
    }

    private let state = Mutex(State())

    func end(_ id: ResumptionID) { state.withLock { _ = $0.ended.insert(id) } }
    func hasEnded(_ id: ResumptionID) -> Bool { state.withLock { $0.ended.contains(id) } }

    /// Bytes of an earlier request that are stored after the next request has compared its offset.
    func appendLate(_ bytes: [UInt8]) { state.withLock { $0.late = bytes } }

    func takeLate() -> [UInt8] {
        state.withLock { state in
            defer { state.late = [] }
            return state.late
        }
    }
}

/// An upload that other processes have too.
private struct SharedUpload: UnfinishedUpload {
    let base: LocalUnfinishedUpload
    let elsewhere: Elsewhere

    var id: ResumptionID { base.id }
    var form: UnfinishedForm { base.form }
    var expires: Date { base.expires }
    var lock: UploadLock { base.lock }
    var progress: UnfinishedUploadProgress { base.progress }

    func durableProgress() async throws -> UnfinishedUploadProgress {
        elsewhere.hasEnded(id) ? .gone : try await base.durableProgress()
    }

    func setLength(_ length: Int64) async throws { try await base.setLength(length) }

    func makeAppender(isRevertible: Bool) async throws -> LocalUnfinishedUpload.Appender {
        let late = elsewhere.takeLate()
        if !late.isEmpty {
            var earlier = try await base.makeAppender(isRevertible: false)
            try await earlier.append(ByteBuffer(bytes: late))
            try await earlier.finish()
        }
        return try await base.makeAppender(isRevertible: isRevertible)
    }

    func openContent() async throws -> any StoredFile { try await base.openContent() }
    func finish(with response: FinalResponse, options: UnfinishedUploadOptions) async throws {
        try await base.finish(with: response, options: options)
    }
    func response() async throws -> FinalResponse { try await base.response() }
    func discard() async throws { try await base.discard() }
}

private struct SharedStore: ForwardingUploadStore, ResumableUploadStore {
    let base: LocalUploadStore
    let elsewhere: Elsewhere

    func createUnfinishedUpload(
        _ id: ResumptionID, of form: UnfinishedForm, expires: Date
    ) async throws -> SharedUpload {
        SharedUpload(
            base: try await base.createUnfinishedUpload(id, of: form, expires: expires), elsewhere: elsewhere)
    }
    func unfinishedUploads() async throws -> [SharedUpload] {
        try await base.unfinishedUploads().map { SharedUpload(base: $0, elsewhere: elsewhere) }
    }
    func unfinishedUpload(_ id: ResumptionID) async throws -> SharedUpload? {
        try await base.unfinishedUpload(id).map { SharedUpload(base: $0, elsewhere: elsewhere) }
    }
}

/// Several processes share the unfinished uploads of a store.
@Suite(.timeLimit(.minutes(10)))
struct ElsewhereTests {
    private func withSender(
        _ options: UploadOptions = UploadOptions(), _ body: (CurlSender, Elsewhere) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let elsewhere = Elsewhere()
            let router = Router()
            var options = options
            options.access = .all
            router.addUploads(
                to: SharedStore(base: try LocalUploadStore(directory: directory), elsewhere: elsewhere),
                options: options)
            try await withApplication(router: router) { receiver in
                let sender = try CurlSender(to: receiver)
                defer { sender.removeFiles() }
                try await body(sender, elsewhere)
            }
        }
    }

    private static func location(of response: CurlResponse) throws -> String {
        try #require(response.head.fields["location"], "\(response)")
    }

    @Test func `an upload that another process has finished keeps no room from others`() async throws {
        var options = UploadOptions()
        options.resumption?.maximumUnfinished = 2
        options.clientShare = 1
        // Worth keeping for longer than the test takes.
        let valuable = LargeForm(bytes: 2_000_000).bytes.prefix(1_000_000)
        try await withSender(options) { sender, elsewhere in
            let first = try Self.location(of: try await sender.create(valuable, isComplete: false))
            _ = try await sender.create(valuable, isComplete: false)
            let id = try #require(first.split(separator: "/").last.flatMap { ResumptionID($0) })
            elsewhere.end(id)
            #expect(try await sender.create(valuable, isComplete: false).status == 201)
            #expect(try await sender.create(valuable, isComplete: false).status == 503)
        }
    }

    @Test func `an append does not begin where bytes of an earlier request have been stored meanwhile`() async throws {
        try await withSender { sender, elsewhere in
            let form = Array(Form.small.utf8)
            let location = try Self.location(of: try await sender.create(form.prefix(20), isComplete: false))
            elsewhere.appendLate(Array(form[20..<25]))
            let append = try await sender.append(form.dropFirst(20), at: 20, isComplete: true, to: location)
            #expect(append.status == 409)
            #expect(append.offset == 25)
            #expect(try await sender.append(form.dropFirst(25), at: 25, isComplete: true, to: location).status == 201)
        }
    }
}
