import HTTPTypes
package import Hummingbird
package import NIOCore
import Synchronization

/// The memory that answers may take together, while their bytes are not yet in their clients' sockets.
///
/// A stored file is read in pieces, each once the piece before has been sent and there is room for the next. A client
/// that does not read holds one piece until its connection is closed. ``AnswerRoom`` decides who gets how much.
package final class AnswerBudget: Sendable {
    private struct State {
        var room: AnswerRoom
        var lastNumber = 0
        /// Those that wait, by their answers' numbers.
        var waiting: [Int: CheckedContinuation<Int, any Error>] = [:]
        /// The connections on which an answer has waited, each with the last such answer. They are watched until they
        /// are closed: a callback for each answer would stay for as long as its connection is kept alive.
        var connections: [ObjectIdentifier: Int] = [:]
    }

    /// What happens to an answer for which there is no room.
    enum Priority {
        /// It waits.
        case ordinary
        /// It is sent in pieces as small as they can be, which then do not count: its client has sent a form and is not
        /// to wait for those that do not read. As many bytes of a small record are in memory uncounted too.
        case immediate
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - bytes: The bytes of all answers together.
    ///   - clientShare: The part of them that the answers to one address may hold.
    package init(bytes: Int, clientShare: Double = 1) {
        state = Mutex(State(room: AnswerRoom(total: bytes, share: clientShare)))
    }

    /// Sends a part of a stored file.
    ///
    /// - Parameter peer: The client that the answer counts for.
    /// - Throws: `CancellationError` where the task is cancelled, `ChannelError` where the client is gone, and
    ///   ``UploadStoreError`` where the file is not as long as it was.
    @concurrent func send(
        _ content: some StoredFile, _ range: Range<Int64>, to writer: inout any ResponseBodyWriter,
        priority: Priority = .ordinary, for peer: PeerAddress? = UploadConnection.current?.peer
    ) async throws {
        if let length = writer as? BodyLength { return length.add(range.upperBound - range.lowerBound) }
        let number = state.withLock { state in
            state.room.answerBegins(for: peer)
            state.lastNumber += 1
            return state.lastNumber
        }
        defer { state.withLock { $0.room.answerEnds(for: peer) } }
        var offset = range.lowerBound
        while offset < range.upperBound {
            try Task.checkCancellation()
            let wanted = Int(clamping: range.upperBound - offset)
            let (count, held) = try await take(upTo: wanted, number, priority, peer)
            defer { if held > 0 { giveBack(held, for: peer) } }
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
    func body(of content: any StoredFile, priority: Priority = .ordinary) -> ResponseBody {
        ResponseBody(contentLength: Int(content.size)) { [self] writer in
            try await send(content, 0..<content.size, to: &writer, priority: priority)
            try await writer.finish(nil)
        }
    }

    /// A body of bytes that were made for the answer. They count until they are sent, or the answer is dropped.
    ///
    /// - Parameter peer: The client that the answer counts for. Defaults to that of the current connection.
    /// - Throws: ``UploadProblem`` where the answers in progress leave no room for it.
    package func body(
        of bytes: ByteBuffer, for peer: PeerAddress? = UploadConnection.current?.peer
    ) throws(UploadProblem) -> ResponseBody {
        guard bytes.readableBytes > AnswerRoom.minimumPieceBytes else { return ResponseBody(byteBuffer: bytes) }
        let room = try HeldRoom(for: bytes.readableBytes, of: peer, in: self)
        return ResponseBody(contentLength: bytes.readableBytes) { writer in
            try await writer.write(bytes)
            try await UploadConnection.current?.flushed()
            withExtendedLifetime(room) {}
            try await writer.finish(nil)
        }
    }

    /// Room that is given back with the object.
    private final class HeldRoom: Sendable {
        private let count: Int
        private let peer: PeerAddress?
        private let budget: AnswerBudget

        init(for count: Int, of peer: PeerAddress?, in budget: AnswerBudget) throws(UploadProblem) {
            let (admission, total, share) = budget.state.withLock { state in
                (state.room.take(all: count, for: peer), state.room.total, state.room.share)
            }
            switch admission {
            case .taken: break
            case .full: throw .tooManyAnswers(maximum: total)
            case .fullForPeer: throw .tooManyAnswersOfClient(share)
            }
            self.count = count
            self.peer = peer
            self.budget = budget
        }

        deinit { budget.giveBack(count, for: peer) }
    }

    // MARK: - Room

    /// Takes room for a piece.
    ///
    /// - Returns: How many bytes the piece may have, and how many of them are to be given back.
    private func take(
        upTo wanted: Int, _ number: Int, _ priority: Priority, _ peer: PeerAddress?
    ) async throws -> (count: Int, held: Int) {
        if let count = state.withLock({ $0.room.take(upTo: wanted, for: peer) }) { return (count, count) }
        switch priority {
        case .immediate: return (min(wanted, AnswerRoom.minimumPieceBytes), 0)
        case .ordinary:
            let count = try await wait(for: wanted, number, peer)
            return (count, count)
        }
    }

    /// Waits for room for a piece, behind the others of the address that wait already.
    private func wait(for wanted: Int, _ number: Int, _ peer: PeerAddress?) async throws -> Int {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let channel = UploadConnection.current?.channel
                let isNew = state.withLock { state in
                    state.waiting[number] = continuation
                    state.room.wait(number, for: wanted, peer: peer)
                    guard let channel else { return false }
                    return state.connections.updateValue(number, forKey: ObjectIdentifier(channel)) == nil
                }
                // A client that is gone does not stay in line.
                if let channel, isNew { channel.closeFuture.whenComplete { [self] _ in closed(channel) } }
                if Task.isCancelled || channel?.isActive == false { leave(number) }
                serveWaiting()
            }
        } onCancel: {
            leave(number)
        }
    }

    /// - Parameter channel: Kept until now, so that its identifier was no other connection's.
    private func closed(_ channel: any Channel) {
        let number = state.withLock { $0.connections.removeValue(forKey: ObjectIdentifier(channel)) }
        if let number { leave(number) }
    }

    private func leave(_ number: Int) {
        let continuation = state.withLock { state in
            state.room.leave(number)
            return state.waiting.removeValue(forKey: number)
        }
        continuation?.resume(throwing: CancellationError())
        serveWaiting()
    }

    private func giveBack(_ count: Int, for peer: PeerAddress?) {
        state.withLock { $0.room.giveBack(count, for: peer) }
        serveWaiting()
    }

    private func serveWaiting() {
        let served = state.withLock { state in
            state.room.serve().map { number, count in (state.waiting.removeValue(forKey: number), count) }
        }
        for (continuation, count) in served { continuation?.resume(returning: count) }
    }

    /// The bytes that no answer holds.
    var freeBytes: Int { state.withLock { $0.room.free } }

    /// How many answers wait for room.
    var waitingCount: Int { state.withLock { $0.room.waitingCount } }
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

    fileprivate static func tooManyAnswersOfClient(_ share: Int) -> UploadProblem {
        var problem = UploadProblem(
            status: 429, code: "too-many-answers-of-client",
            detail:
                "The receiver holds \(share) bytes of answers for one address, and as many are not read from yours.",
            fix: "Read the answers before you ask for more. "
                + "Behind a proxy, start the receiver with --client-share 100.")
        problem.limit = Limit(name: "clientShare", value: Int64(share))
        problem.retryAfterSeconds = 5
        return problem
    }
}
