import HTTPTypes
package import Hummingbird
import Synchronization

/// The memory that answers may take together, while their bytes are not yet in their clients' sockets.
///
/// A stored file is read in pieces, each once the piece before has been sent and there is room for the next. A client
/// that does not read holds one piece until its connection is closed; the more answers are under way, the smaller the
/// pieces are.
package final class AnswerBudget: Sendable {
    private struct State {
        var free: Int
        var answers = 0
        /// Those that wait for a piece, in their order.
        var waiting: [Waiter] = []
        var lastNumber = 0
    }

    private struct Waiter {
        /// Its answer's number.
        let number: Int
        let wanted: Int
        let continuation: CheckedContinuation<Int, any Error>
    }

    private let total: Int
    private let state: Mutex<State>

    private static let maximumPieceBytes = 64 << 10
    private static let minimumPieceBytes = 4 << 10

    /// - Parameter bytes: The bytes of all answers together.
    package init(bytes: Int) {
        total = max(bytes, 1)
        state = Mutex(State(free: total))
    }

    /// Sends a part of a stored file.
    ///
    /// - Throws: `CancellationError` where the task is cancelled, `ChannelError` where the client is gone, and
    ///   ``UploadStoreError`` where the file is not as long as it was.
    @concurrent func send(
        _ content: some StoredFile, _ range: Range<Int64>, to writer: inout any ResponseBodyWriter
    ) async throws {
        if let length = writer as? BodyLength { return length.add(range.upperBound - range.lowerBound) }
        let number = state.withLock { state in
            state.answers += 1
            state.lastNumber += 1
            return state.lastNumber
        }
        defer { state.withLock { $0.answers -= 1 } }
        var hasWaited = false
        var offset = range.lowerBound
        while offset < range.upperBound {
            try Task.checkCancellation()
            let wanted = Int(clamping: range.upperBound - offset)
            let taken = take(upTo: wanted)
            if taken == nil, !hasWaited {
                hasWaited = true
                // A client that is gone does not stay in line.
                UploadConnection.current?.channel.closeFuture.whenComplete { [weak self] _ in self?.leave(number) }
            }
            let count = if let taken { taken } else { try await wait(for: wanted, number) }
            defer { giveBack(count) }
            let piece = try await content.read(at: offset, count: count)
            guard piece.readableBytes == count else {
                throw UploadStoreError(.unavailable, "A stored file is shorter than its record says.")
            }
            try await writer.write(piece)
            try await UploadConnection.current?.flushed()
            offset += Int64(count)
        }
    }

    /// A body that is a stored file.
    func body(of content: any StoredFile) -> ResponseBody {
        ResponseBody(contentLength: Int(content.size)) { [self] writer in
            try await send(content, 0..<content.size, to: &writer)
            try await writer.finish(nil)
        }
    }

    /// A body of bytes that were made for the answer. They count until they are sent, or the answer is dropped.
    ///
    /// - Throws: ``UploadProblem`` where the answers under way leave no room for it.
    package func body(of bytes: ByteBuffer) throws(UploadProblem) -> ResponseBody {
        guard bytes.readableBytes > Self.minimumPieceBytes else { return ResponseBody(byteBuffer: bytes) }
        let room = try Room(for: bytes.readableBytes, in: self)
        return ResponseBody(contentLength: bytes.readableBytes) { writer in
            try await writer.write(bytes)
            try await UploadConnection.current?.flushed()
            withExtendedLifetime(room) {}
            try await writer.finish(nil)
        }
    }

    /// Room that is given back with the object.
    private final class Room: Sendable {
        private let count: Int
        private let budget: AnswerBudget

        init(for count: Int, in budget: AnswerBudget) throws(UploadProblem) {
            let isTaken = budget.state.withLock { state in
                guard state.waiting.isEmpty, state.free >= count else { return false }
                state.free -= count
                return true
            }
            guard isTaken else { throw .tooManyAnswers(maximum: budget.total) }
            self.count = count
            self.budget = budget
        }

        deinit { budget.giveBack(count) }
    }

    // MARK: - Room

    /// How many bytes the next piece may have.
    private func share(_ wanted: Int, _ state: State) -> Int {
        let share = min(max(total / 4 / max(state.answers, 1), Self.minimumPieceBytes), Self.maximumPieceBytes)
        return min(wanted, share, total)
    }

    /// Takes room for a piece, where there is some and no one waits for it.
    private func take(upTo wanted: Int) -> Int? {
        state.withLock { state in
            let share = share(wanted, state)
            guard state.waiting.isEmpty, state.free >= share else { return nil }
            state.free -= share
            return share
        }
    }

    /// Waits for room for a piece, behind those that wait already.
    private func wait(for wanted: Int, _ number: Int) async throws -> Int {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                state.withLock { state in
                    state.waiting.append(Waiter(number: number, wanted: wanted, continuation: continuation))
                }
                if Task.isCancelled || UploadConnection.current?.channel.isActive == false { leave(number) }
                serveWaiting()
            }
        } onCancel: {
            leave(number)
        }
    }

    private func leave(_ number: Int) {
        let waiter: Waiter? = state.withLock { state in
            guard let position = state.waiting.firstIndex(where: { $0.number == number }) else { return nil }
            return state.waiting.remove(at: position)
        }
        waiter?.continuation.resume(throwing: CancellationError())
        serveWaiting()
    }

    private func giveBack(_ count: Int) {
        state.withLock { $0.free += count }
        serveWaiting()
    }

    private func serveWaiting() {
        let served: [(Waiter, Int)] = state.withLock { state in
            var served: [(Waiter, Int)] = []
            while let first = state.waiting.first {
                let share = share(first.wanted, state)
                guard state.free >= share else { break }
                state.free -= share
                served.append((first, share))
                state.waiting.removeFirst()
            }
            return served
        }
        for (waiter, count) in served { waiter.continuation.resume(returning: count) }
    }

    /// The bytes that no answer holds.
    var freeBytes: Int { state.withLock { $0.free } }

    /// How many answers wait for room.
    var waitingCount: Int { state.withLock { $0.waiting.count } }
}

extension UploadProblem {
    fileprivate static func tooManyAnswers(maximum: Int) -> UploadProblem {
        var problem = UploadProblem(
            status: 503, code: "too-many-answers",
            detail: "The answers that other clients have not read yet take all memory for answers.",
            fix: "Send the request again in a moment.")
        problem.limit = Limit(name: "maximumAnswerBytes", value: Int64(maximum))
        problem.retryAfterSeconds = 5
        return problem
    }
}
