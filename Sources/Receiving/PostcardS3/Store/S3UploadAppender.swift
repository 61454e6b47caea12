public import NIOCore
public import PostcardStore
import Synchronization

/// Appends to an unfinished upload of an ``S3UploadStore``.
///
/// Bytes are gathered in memory, up to 8 MiB or for five seconds, and then stored as an object: a chunk. Meanwhile, the
/// next bytes are gathered. If the receiver is killed, bytes that are not stored yet are lost.
///
/// A chunk is stored after all chunks before it, so that an upload never has gaps.
public struct S3UploadAppender: UploadAppender {
    private let upload: S3UnfinishedUpload
    private let isRevertible: Bool
    /// A random name that marks the chunks of this appender.
    private let name: String
    private let chunks: ChunkGathering
    /// Writes bytes to a separate object, if there are many of them and they may still be reverted.
    private var held: ObjectWriter?
    /// The first failure. Afterwards, no bytes may be stored, because earlier bytes are missing.
    private var failure: (any Error)?
    public private(set) var offset: Int64

    init(to upload: S3UnfinishedUpload, isRevertible: Bool) {
        self.upload = upload
        self.isRevertible = isRevertible
        name = ObjectName.random(upload.store.objects.surroundings)
        offset = upload.offset
        chunks = ChunkGathering(upload, name, at: offset)
    }

    public mutating func append(_ bytes: ByteBuffer) async throws {
        try await sticking { appender in
            appender.offset += Int64(bytes.readableBytes)
            if appender.isRevertible {
                try await appender.hold(bytes)
            } else {
                try await appender.gather(bytes)
            }
        }
    }

    private func gather(_ bytes: ByteBuffer) async throws {
        var bytes = bytes
        while bytes.readableBytes > 0 {
            switch chunks.add(&bytes, free: upload.store.objects.surroundings.freeBytes) {
            case .added: break
            case .needsBlock:
                chunks.hold(try await upload.store.budget.take { [weak chunks] in chunks?.send() })
            case .isFull:
                // At most one chunk is stored while the next is gathered.
                try await chunks.stored()
                chunks.send()
            }
        }
        if chunks.isLate { chunks.send() }
    }

    private mutating func hold(_ bytes: ByteBuffer) async throws {
        guard held == nil else {
            try await held?.write(bytes)
            return
        }
        guard !chunks.addSmall(bytes, free: upload.store.objects.surroundings.freeBytes) else { return }
        let writer = ObjectWriter(
            upload.store.objects, ObjectName.held(name, ofUnfinished: upload.id.text), metadata: [:],
            upload.store.budget)
        held = writer
        try await writer.write(chunks.removeGathered())
        try await writer.write(bytes)
    }

    public mutating func finish() async throws {
        do {
            try await sticking { appender in
                try await appender.showHeld()
                appender.chunks.send()
                try await appender.chunks.stored()
            }
        } catch {
            // The next request asks for the offset, so no chunk of this request may still be in flight.
            try? await chunks.stored()
            throw error
        }
    }

    /// Adds the bytes in the object of `held` to the upload: stores an empty chunk whose metadata names that object.
    private mutating func showHeld() async throws {
        guard let writer = held else { return }
        let size = try await writer.finish().size
        held = nil
        do {
            try await upload.objects.createChunk(
                at: chunks.start, ByteBuffer(), of: name, fields: ["held": name, "held-size": String(size)])
        } catch let error as UploadStoreError where error.code == .overtaken {
            try? await upload.store.objects.delete(ObjectName.held(name, ofUnfinished: upload.id.text))
            throw error
        }
        upload.advance(to: chunks.skip(size))
    }

    public mutating func revert() async throws {
        await held?.cancel()
        held = nil
        _ = chunks.removeGathered()
        offset = chunks.start
    }

    private mutating func sticking(_ body: (inout Self) async throws -> Void) async throws {
        if let failure { throw failure }
        do {
            try await storing { try await body(&self) }
        } catch {
            failure = error
            // No later request can continue with these bytes, so they are removed.
            await held?.cancel()
            held = nil
            throw error
        }
    }
}

/// The bytes that are not stored yet. The memory budget may store them at any time, even while the client is slow.
private final class ChunkGathering: Sendable {
    private struct State {
        /// The offset of the gathered bytes in the upload.
        var start: Int64
        var gathered = GatheredBytes()
        var lastSent: ContinuousClock.Instant
        /// The task that stores the latest chunk, after all earlier chunks.
        var sending: Task<Void, any Error>?
    }

    private let upload: S3UnfinishedUpload
    private let name: String
    private let state: Mutex<State>

    private let surroundings: Surroundings
    /// The maximum size of a chunk, in bytes.
    private var chunkBytes: Int { surroundings.partBytes }
    /// The maximum time for which bytes are gathered before they are stored.
    private static let maximumDelay = Duration.seconds(5)

    init(_ upload: S3UnfinishedUpload, _ name: String, at offset: Int64) {
        self.upload = upload
        self.name = name
        let surroundings = upload.store.objects.surroundings
        self.surroundings = surroundings
        state = Mutex(State(start: offset, lastSent: surroundings.now()))
    }

    var start: Int64 { state.withLock { $0.start } }

    /// Whether the bytes have been gathered for longer than the maximum time.
    var isLate: Bool { state.withLock { $0.lastSent.duration(to: surroundings.now()) > Self.maximumDelay } }

    /// Adds as many of the bytes as fit. More than `free` gathered bytes need a block of the memory budget.
    func add(_ bytes: inout ByteBuffer, free: Int) -> GatheredBytes.Addition {
        state.withLock { $0.gathered.add(&bytes, upTo: chunkBytes, free: free) }
    }

    /// Adds all of the bytes if no more than `free` are then gathered. Returns whether the bytes were added.
    func addSmall(_ bytes: ByteBuffer, free: Int) -> Bool {
        state.withLock { state in
            guard state.gathered.count + bytes.readableBytes <= free else { return false }
            var bytes = bytes
            _ = state.gathered.add(&bytes, upTo: chunkBytes, free: free)
            return true
        }
    }

    func removeGathered() -> ByteBuffer {
        // The block need not be kept, because revertible bytes never use one.
        state.withLock { $0.gathered.take().bytes }
    }

    func hold(_ block: MemoryBudget.Block) {
        state.withLock { $0.gathered.hold(block) }
    }

    /// Advances the start past bytes that are stored in a separate object. Returns the new start.
    func skip(_ count: Int64) -> Int64 {
        state.withLock { state in
            state.start += count
            return state.start
        }
    }

    /// Begins to store the gathered bytes.
    func send() {
        state.withLock { state in
            state.lastSent = surroundings.now()
            guard state.gathered.count > 0 else { return }
            let (offset, earlier) = (state.start, state.sending)
            let (body, block) = state.gathered.take()
            state.start += Int64(body.readableBytes)
            // A child of the request's task would be cancelled when the client disconnects.
            state.sending = Task(executorPreference: surroundings.executor) { [upload, name] in
                defer { withExtendedLifetime(block) {} }
                try await earlier?.value
                try await upload.objects.createChunk(at: offset, body, of: name)
                upload.advance(to: offset + Int64(body.readableBytes))
            }
        }
    }

    /// Waits until all sent chunks are stored.
    func stored() async throws { try await state.withLock { $0.sending }?.value }
}
