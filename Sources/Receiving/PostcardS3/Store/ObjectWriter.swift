import Crypto
import NIOCore
import PostcardForm
import Synchronization

/// Writes one file as an object: in one request if it has at most 8 MiB, and else in parts of that size.
///
/// A part cannot be smaller, so bytes that arrive slowly would occupy memory for as long as their client likes. If other
/// uploads wait for memory, such bytes are set aside in objects of their own, and read back once they are a whole part.
final class ObjectWriter {
    /// `nil` if the file is only hashed.
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

    /// The number of parts in flight at once.
    private static let maximumSending = 4
    private static let maximumParts = 10_000
    /// How much is read back at once.
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
                // The bytes set aside come first.
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

    /// Sends the bytes that were set aside as parts, but for the last ones.
    private func readBack() async throws {
        guard let objects else { return }
        // Kept until all bytes are read back, so that `cancel()` removes the objects if that fails.
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
            // The block first: while an upload waits for one, it holds nothing that it has read.
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

    /// Sends the bytes in memory as a part, unless they have been set aside in the meantime.
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

    /// Waits until the object is stored.
    func finish() async throws -> (size: Int64, sha256: String) {
        let result = (size: size, sha256: hash.finalize().hexadecimal)
        guard let objects, size > 0 else { return result }
        // From here on the store is waited for, and not the client.
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

    /// Gives up the object.
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
    /// The bytes of a file that are not a part yet: in memory, and before them in objects of their own. The memory
    /// budget may move them there at any time, also while the upload waits for its client.
    fileprivate final class Gathering: Sendable {
        /// Bytes in an object of their own.
        struct Aside: Sendable {
            let key: String
            let size: Int
            let storing: Task<Void, any Error>
        }

        private struct State {
            var gathered = GatheredBytes()
            var aside: [Aside] = []
            var asideCount = 0
            /// Whether the bytes wait for the store and not for the client, so that they are not set aside.
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

        /// How many bytes are set aside.
        var asideBytes: Int { state.withLock { $0.aside.reduce(0) { $0 + $1.size } } }

        /// Adds the first of the bytes.
        ///
        /// - Parameters:
        ///   - maximum: How many bytes are gathered.
        ///   - free: How many bytes are gathered without a block.
        func add(_ bytes: inout ByteBuffer, upTo maximum: Int, free: Int) -> GatheredBytes.Addition {
            state.withLock { $0.gathered.add(&bytes, upTo: maximum, free: free) }
        }

        /// How many bytes the block has room for; `nil` without a block.
        func room(upTo maximum: Int) -> Int? { state.withLock { $0.gathered.room(upTo: maximum) } }

        func hold(_ block: MemoryBudget.Block) {
            state.withLock { state in
                state.gathered.hold(block)
                if state.isSending { block.isSending() }
            }
        }

        /// Takes the bytes if they are still as many, and follow all that were sent.
        func takeWhole(_ size: Int) -> (ByteBuffer, MemoryBudget.Block?)? {
            state.withLock { state in
                guard state.gathered.count == size, state.aside.isEmpty else { return nil }
                return state.gathered.take()
            }
        }

        func takeAll() -> (ByteBuffer, MemoryBudget.Block?) { state.withLock { $0.gathered.take() } }

        /// Moves the bytes to an object of their own, and gives the block back once they are stored.
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

        /// The store is waited for from now on.
        func beginSending() {
            state.withLock { state in
                state.isSending = true
                state.gathered.isSending()
            }
        }

        /// - Returns: What was set aside, to be gathered again before all that follows.
        func beginReadingBack() -> [Aside] {
            state.withLock { state in
                // They follow those that are set aside.
                setAside(&state)
                state.isReadingBack = true
                defer { state.aside = [] }
                return state.aside
            }
        }

        /// - Parameter aside: The objects to keep; none if all bytes were read back.
        func endReadingBack(keeping aside: [Aside]) {
            state.withLock { state in
                state.isReadingBack = false
                state.aside.insert(contentsOf: aside, at: 0)
            }
        }

        /// - Returns: What was set aside, to be removed.
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
