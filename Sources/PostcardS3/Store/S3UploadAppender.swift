public import NIOCore
public import PostcardServer

/// Appends to an unfinished upload of an ``S3UploadStore``.
///
/// Bytes are gathered up to 8 MiB, or for five seconds, and stored while the next ones are gathered. A receiver that is
/// killed loses those that are not stored.
///
/// A chunk is stored once those before it are, so the chunks of an upload always follow each other.
public struct S3UploadAppender: UploadAppender {
    private let upload: S3UnfinishedUpload
    private let isRevertible: Bool
    /// Tells the chunks of this appender from those of others.
    private let name = ObjectName.random()
    /// Where the gathered bytes begin.
    private var start: Int64
    private var gathered = ByteBuffer()
    private var block: MemoryBudget.Block?
    private var lastSent = ContinuousClock.now
    private var sending: Task<Void, any Error>?
    /// Writes the bytes that may be reverted to an object of their own, if they are many.
    private var held: ObjectWriter?
    /// No bytes may be stored behind some that are missing.
    private var failure: (any Error)?
    public private(set) var offset: Int64

    /// The maximum size of a chunk.
    private static let chunkBytes = 8 << 20
    /// The bytes that are gathered without a block of the memory budget.
    private static let freeBytes = 64 << 10
    /// How long bytes are gathered, at most, while more arrive.
    private static let maximumDelay = Duration.seconds(5)

    init(to upload: S3UnfinishedUpload, isRevertible: Bool) {
        self.upload = upload
        self.isRevertible = isRevertible
        start = upload.offset
        offset = start
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

    private mutating func gather(_ bytes: ByteBuffer) async throws {
        var bytes = bytes
        while bytes.readableBytes > 0 {
            if gathered.readableBytes == Self.chunkBytes { try await send() }
            let count = min(Self.chunkBytes - gathered.readableBytes, bytes.readableBytes)
            if block == nil, gathered.readableBytes + count > Self.freeBytes {
                block = try await upload.store.budget.take()
                gathered.reserveCapacity(Self.chunkBytes)
            }
            if var piece = bytes.readSlice(length: count) { gathered.writeBuffer(&piece) }
        }
        if lastSent.duration(to: .now) > Self.maximumDelay { try await send() }
    }

    /// Stores the gathered bytes, once those before them are.
    private mutating func send() async throws {
        try await sending?.value
        sending = nil
        lastSent = .now
        guard gathered.readableBytes > 0 else { return }
        let (body, taken, offset) = (gathered, block, start)
        start += Int64(body.readableBytes)
        gathered = ByteBuffer()
        block = nil
        // Not a part of the request's task, which is cancelled when its client is gone.
        sending = Task { [upload, name] in
            defer { withExtendedLifetime(taken) {} }
            try await upload.objects.createChunk(at: offset, body, of: name)
            upload.advance(to: offset + Int64(body.readableBytes))
        }
    }

    private mutating func hold(_ bytes: ByteBuffer) async throws {
        var bytes = bytes
        if held == nil {
            guard gathered.readableBytes + bytes.readableBytes > Self.freeBytes else {
                gathered.writeBuffer(&bytes)
                return
            }
            let writer = ObjectWriter(
                upload.store.objects, ObjectName.held(name, ofUnfinished: upload.id.text), metadata: [:],
                upload.store.budget)
            held = writer
            try await writer.write(gathered)
            gathered = ByteBuffer()
        }
        try await held?.write(bytes)
    }

    public mutating func finish() async throws {
        try await sticking { appender in
            try await appender.showHeld()
            try await appender.send()
            try await appender.sending?.value
            appender.sending = nil
        }
    }

    /// Makes the bytes that could be reverted a part of the upload, by an empty chunk that names their object.
    private mutating func showHeld() async throws {
        guard let writer = held else { return }
        held = nil
        let size = try await writer.finish().size
        do {
            try await upload.objects.createChunk(
                at: start, ByteBuffer(), of: name, fields: ["held": name, "held-size": String(size)])
        } catch let error as UploadStoreError where error.code == .overtaken {
            try? await upload.store.objects.delete(ObjectName.held(name, ofUnfinished: upload.id.text))
            throw error
        }
        start += size
        upload.advance(to: start)
    }

    public mutating func revert() async throws {
        await held?.cancel()
        held = nil
        gathered = ByteBuffer()
        offset = start
    }

    private mutating func sticking(_ body: (inout Self) async throws -> Void) async throws {
        if let failure { throw failure }
        do {
            try await storing { try await body(&self) }
        } catch {
            failure = error
            throw error
        }
    }
}
