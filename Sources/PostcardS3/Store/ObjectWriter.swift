import Crypto
import NIOCore
import PostcardForm

/// Writes one file as an object: in one request if it has at most 8 MiB, and else in parts of that size.
final class ObjectWriter {
    /// `nil` if the file is only hashed.
    private let objects: ObjectStore?
    private let key: String
    private let metadata: [String: String]
    private let budget: MemoryBudget
    private var hash = SHA256()
    private var size: Int64 = 0
    private var gathered = ByteBuffer()
    private var block: MemoryBudget.Block?
    private var parts: String?
    private var tags: [String] = []
    private var sending: [Task<String, any Error>] = []

    /// The size of a part.
    static let partBytes = 8 << 20
    /// The bytes that an upload gathers before it takes a block of the budget. Most forms have no more.
    private static let freeBytes = 64 << 10
    /// The number of parts in flight at once.
    private static let maximumSending = 4
    private static let maximumParts = 10_000

    init(_ objects: ObjectStore?, _ key: String, metadata: [String: String], _ budget: MemoryBudget) {
        self.objects = objects
        self.key = key
        self.metadata = metadata
        self.budget = budget
    }

    deinit {
        for task in sending { task.cancel() }
    }

    func write(_ bytes: ByteBuffer) async throws {
        bytes.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
        size += Int64(bytes.readableBytes)
        guard objects != nil else { return }
        var bytes = bytes
        while bytes.readableBytes > 0 {
            if gathered.readableBytes == Self.partBytes { try await sendPart() }
            let count = min(Self.partBytes - gathered.readableBytes, bytes.readableBytes)
            if block == nil, gathered.readableBytes + count > Self.freeBytes {
                block = try await budget.take()
                gathered.reserveCapacity(Self.partBytes)
            }
            if var piece = bytes.readSlice(length: count) { gathered.writeBuffer(&piece) }
        }
    }

    private func sendPart() async throws {
        guard let objects else { return }
        let upload = if let parts { parts } else { try await objects.beginParts(key, metadata: metadata) }
        parts = upload
        if sending.count >= Self.maximumSending { tags.append(try await sending.removeFirst().value) }
        let number = tags.count + sending.count + 1
        guard number <= Self.maximumParts else {
            throw S3Error(
                "file-too-large", "A file has more than \(Self.maximumParts) parts of 8 MiB, which no store accepts.")
        }
        let (body, held) = (gathered, block)
        gathered = ByteBuffer()
        block = nil
        sending.append(
            Task { [key] in
                defer { withExtendedLifetime(held) {} }
                return try await objects.putPart(number, of: key, upload, body)
            })
    }

    /// Waits until the object is stored.
    func finish() async throws -> (size: Int64, sha256: String) {
        let result = (size: size, sha256: hash.finalize().hexadecimal)
        guard let objects, size > 0 else { return result }
        if parts == nil {
            try await objects.put(key, gathered, metadata: metadata, payloadHash: result.sha256)
        } else {
            if gathered.readableBytes > 0 { try await sendPart() }
            while !sending.isEmpty { tags.append(try await sending.removeFirst().value) }
            if let parts { try await objects.completeParts(of: key, parts, tags, size: size) }
        }
        parts = nil
        gathered = ByteBuffer()
        block = nil
        return result
    }

    /// Gives up the object.
    func cancel() async {
        for task in sending { task.cancel() }
        for task in sending { _ = try? await task.value }
        sending = []
        if let parts { try? await objects?.abortParts(of: key, parts) }
        parts = nil
        gathered = ByteBuffer()
        block = nil
    }
}
