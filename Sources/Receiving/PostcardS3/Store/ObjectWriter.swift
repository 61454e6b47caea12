import Crypto
import NIOCore
import PostcardForm
import Synchronization

/// Writes a file as an object: in one request up to 8 MiB, or else in parts of 8 MiB.
///
/// Parts have a minimum size, so the bytes of a slow client would stay in memory for long. If other uploads wait for
/// memory, such bytes are set aside: stored in separate objects, and read back when there are enough for a part.
final class ObjectWriter {
    /// The object store; `nil` if only the digest is computed.
    private let objects: ObjectStore?
    private let key: String
    private let metadata: [String: String]
    private let budget: MemoryBudget
    private var hash = SHA256()
    private var size: Int64 = 0
    private let gathering: Gathering
    private var parts: String?
    private var tags: [String] = []
    private var sending: [Task<String, any Error>] = []

    /// The maximum number of parts in flight.
    private static let maximumSending = 4
    private static let maximumParts = 10_000
    /// The maximum number of bytes read back in one request.
    private static let readBytes = 1 << 20

    init(_ objects: ObjectStore?, _ key: String, metadata: [String: String], _ budget: MemoryBudget) {
        self.objects = objects
        self.key = key
        self.metadata = metadata
        self.budget = budget
        gathering = Gathering(objects, key)
    }

    deinit {
        for task in sending { task.cancel() }
    }

    func write(_ bytes: ByteBuffer) async throws {
        bytes.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
        size += Int64(bytes.readableBytes)
        guard let objects else { return }
        try await gather(bytes, for: objects)
        if gathering.asideBytes >= objects.surroundings.partBytes { try await readBack() }
    }

    private func gather(_ bytes: ByteBuffer, for objects: ObjectStore) async throws {
        let (partBytes, freeBytes) = (objects.surroundings.partBytes, objects.surroundings.freeBytes)
        var bytes = bytes
        while bytes.readableBytes > 0 {
            switch gathering.add(&bytes, upTo: partBytes, free: freeBytes) {
            case .added: break
            case .needsBlock:
                try await takeBlock()
            case .isFull:
                // Bytes that were set aside come before those in memory.
                if gathering.asideBytes > 0 {
                    gathering.setAside()
                } else {
                    try await sendPart { $0.takeWhole(partBytes) }
                }
            }
        }
    }

    private func takeBlock() async throws {
        gathering.hold(try await budget.take { [weak gathering] in gathering?.setAside() })
    }

    /// Reads bytes back from separate objects, and sends them as parts. The last bytes stay in memory.
    private func readBack() async throws {
        guard let objects else { return }
        // The set-aside objects are remembered until all bytes are read back, so that `cancel()` can remove them.
        var aside = gathering.beginReadingBack()
        defer { gathering.endReadingBack(keeping: aside) }
        var pieces: [ObjectFile.Piece] = []
        for piece in aside {
            try await piece.storing.value
            let offset = pieces.last?.end ?? 0
            pieces.append(ObjectFile.Piece(key: piece.key, offset: offset, size: Int64(piece.size)))
        }
        let file = ObjectFile(objects, pieces)
        let partBytes = objects.surroundings.partBytes
        var offset: Int64 = 0
        while offset < file.size {
            // The block is taken before bytes are read, so that no read bytes are in memory while waiting for it.
            guard let room = gathering.room(upTo: partBytes) else {
                try await takeBlock()
                continue
            }
            guard room > 0 else {
                try await sendPart { $0.takeWhole(partBytes) }
                continue
            }
            let bytes = try await file.read(at: offset, count: min(room, Self.readBytes))
            offset += Int64(bytes.readableBytes)
            try await gather(bytes, for: objects)
        }
        aside = []
        for piece in pieces { try? await objects.delete(piece.key) }
    }

    /// Sends the gathered bytes as a part, unless they were set aside meanwhile.
    private func sendPart(_ take: (Gathering) -> (ByteBuffer, MemoryBudget.Block?)?) async throws {
        guard let objects else { return }
        let upload = if let parts { parts } else { try await objects.beginParts(key, metadata: metadata) }
        parts = upload
        if sending.count >= Self.maximumSending { tags.append(try await sending.removeFirst().value) }
        let number = tags.count + sending.count + 1
        guard number <= Self.maximumParts else {
            throw S3Error(
                .fileTooLarge, "A file has more than \(Self.maximumParts) parts of 8 MiB, which no store accepts.")
        }
        guard let (body, block) = take(gathering), body.readableBytes > 0 else { return }
        sending.append(
            Task(executorPreference: objects.surroundings.executor) { [key] in
                defer { withExtendedLifetime(block) {} }
                return try await objects.putPart(number, of: key, upload, body)
            })
    }

    /// Waits until the whole object is stored.
    func finish() async throws -> (size: Int64, sha256: String) {
        let result = (size: size, sha256: hash.finalize().hexadecimal)
        guard let objects, size > 0 else { return result }
        // From now on, the upload waits for the store and not for the client.
        gathering.beginSending()
        while gathering.asideBytes > 0 { try await readBack() }
        if let upload = parts {
            try await sendPart { $0.takeAll() }
            while !sending.isEmpty { tags.append(try await sending.removeFirst().value) }
            try await objects.completeParts(of: key, upload, tags, size: size)
        } else {
            let (body, block) = gathering.takeAll()
            defer { withExtendedLifetime(block) {} }
            try await objects.put(key, body, metadata: metadata, payloadHash: result.sha256)
        }
        parts = nil
        return result
    }

    /// Removes everything that was stored of the object.
    func cancel() async {
        for task in sending { task.cancel() }
        for task in sending { _ = try? await task.value }
        sending = []
        let (parts, aside) = (self.parts, gathering.giveUp())
        self.parts = nil
        guard let objects, parts != nil || !aside.isEmpty else { return }
        await objects.surroundings.evenIfCancelled { [key] in
            if let parts { try? await objects.abortParts(of: key, parts) }
            for piece in aside {
                piece.storing.cancel()
                _ = try? await piece.storing.value
            }
            try? await objects.delete(aside.map(\.key))
        }
    }
}

extension ObjectWriter {
    /// The bytes of a file that are not in a part yet: the latest in memory, and earlier ones in separate objects. The
    /// memory budget may set bytes aside in such objects at any time, even while the upload waits for its client.
    fileprivate final class Gathering: Sendable {
        /// An object with bytes that were set aside to free memory.
        struct Aside: Sendable {
            let key: String
            let size: Int
            let storing: Task<Void, any Error>
        }

        private struct State {
            var gathered = GatheredBytes()
            var aside: [Aside] = []
            var asideCount = 0
            /// Whether the bytes wait for the store and not for the client. Such bytes are not set aside.
            var isSending = false
            var isReadingBack = false
        }

        private let objects: ObjectStore?
        private let key: String
        private let state = Mutex(State())

        init(_ objects: ObjectStore?, _ key: String) {
            self.objects = objects
            self.key = key
        }

        /// The number of bytes that were set aside in separate objects.
        var asideBytes: Int { state.withLock { $0.aside.reduce(0) { $0 + $1.size } } }

        /// Adds as many of the bytes as fit. At most `maximum` bytes are gathered, and more than `free` need a block of
        /// the memory budget.
        func add(_ bytes: inout ByteBuffer, upTo maximum: Int, free: Int) -> GatheredBytes.Addition {
            state.withLock { $0.gathered.add(&bytes, upTo: maximum, free: free) }
        }

        /// The number of further bytes that fit in the block; `nil` without a block.
        func room(upTo maximum: Int) -> Int? { state.withLock { $0.gathered.room(upTo: maximum) } }

        func hold(_ block: MemoryBudget.Block) {
            state.withLock { state in
                state.gathered.hold(block)
                if state.isSending { block.isSending() }
            }
        }

        /// Removes and returns the bytes if they have the expected size and no earlier bytes were set aside.
        func takeWhole(_ size: Int) -> (ByteBuffer, MemoryBudget.Block?)? {
            state.withLock { state in
                guard state.gathered.count == size, state.aside.isEmpty else { return nil }
                return state.gathered.take()
            }
        }

        func takeAll() -> (ByteBuffer, MemoryBudget.Block?) { state.withLock { $0.gathered.take() } }

        /// Sets the bytes aside: stores them in a separate object, and then gives their block back.
        func setAside() {
            state.withLock { state in
                guard !state.isSending, !state.isReadingBack else { return }
                setAside(&state)
            }
        }

        private func setAside(_ state: inout State) {
            guard let objects, state.gathered.count > 0 else { return }
            let (bytes, block) = state.gathered.take()
            let name = ObjectName.aside(state.asideCount, ofFile: key)
            state.asideCount += 1
            let storing = Task(executorPreference: objects.surroundings.executor) {
                defer { withExtendedLifetime(block) {} }
                try await objects.put(name, bytes)
            }
            state.aside.append(Aside(key: name, size: bytes.readableBytes, storing: storing))
        }

        /// Notes that the upload now waits for the store and not for the client.
        func beginSending() {
            state.withLock { state in
                state.isSending = true
                state.gathered.isSending()
            }
        }

        /// Begins to read bytes back. Returns the set-aside objects, whose bytes must be gathered before later bytes.
        func beginReadingBack() -> [Aside] {
            state.withLock { state in
                // The bytes in memory come after those that were already set aside.
                setAside(&state)
                state.isReadingBack = true
                defer { state.aside = [] }
                return state.aside
            }
        }

        /// - Parameter aside: The set-aside objects that were not read back.
        func endReadingBack(keeping aside: [Aside]) {
            state.withLock { state in
                state.isReadingBack = false
                state.aside.insert(contentsOf: aside, at: 0)
            }
        }

        /// Stops gathering bytes. Returns the set-aside objects, which must be removed.
        func giveUp() -> [Aside] {
            state.withLock { state in
                state.isSending = true
                _ = state.gathered.take()
                defer { state.aside = [] }
                return state.aside
            }
        }
    }
}
