import HTTPTypes
package import Hummingbird
package import NIOCore
import Synchronization

/// Limits the memory of all responses whose bytes are not yet in their clients' sockets.
///
/// A stored file is read in pieces: each is read once the previous one has been sent and there is room for it. A client
/// that does not read holds one piece until its connection is closed. ``ResponseRoom`` divides the memory.
///
/// The budget also limits how many files uploads and responses have open together, divided by ``FileRoom``.
package final class ResponseBudget: Sendable {
    private struct State {
        var room: ResponseRoom
        var files: FileRoom
        var lastNumber = 0
        /// The waiting responses, by number.
        var waiting: [Int: CheckedContinuation<Int, any Error>] = [:]
        /// The connections on which a response has waited, each with the last such response. Each has one callback for
        /// its end: one per response would add up while a connection is kept alive.
        var connections: [ObjectIdentifier: Int] = [:]
    }

    /// What happens to a response if there is no room for it.
    enum Priority {
        /// It waits.
        case ordinary
        /// It is sent in the smallest pieces, which do not count: its client has sent a form, and should not wait for
        /// clients that do not read. A small record is in memory without being counted, too.
        case immediate
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - bytes: The maximum of all responses together, in bytes.
    ///   - files: How many files uploads and responses may have open at once. Defaults to any number.
    ///   - clientShare: The part of both that the requests of one address may use, from 0 to 1. Defaults to 1.
    package init(bytes: Int, files: Int = .max, clientShare: Double = 1) {
        state = Mutex(
            State(
                room: ResponseRoom(total: bytes, share: clientShare),
                files: FileRoom(total: files, share: clientShare)))
    }

    /// Sends a part of a stored file.
    ///
    /// - Parameter peer: The client that the response counts for. Defaults to that of the current connection.
    /// - Throws: `CancellationError` if the task is cancelled, `ChannelError` if the client is gone, and
    ///   ``UploadStoreError`` if the file is shorter than it was.
    @concurrent func send(
        _ content: some StoredFile, _ range: Range<Int64>, to writer: inout any ResponseBodyWriter,
        priority: Priority = .ordinary, for peer: PeerAddress? = UploadConnection.current?.peer
    ) async throws {
        if let length = writer as? BodyLength { return length.add(range.upperBound - range.lowerBound) }
        let number = state.withLock { state in
            state.room.responseBegins(for: peer)
            state.lastNumber += 1
            return state.lastNumber
        }
        defer { state.withLock { $0.room.responseEnds(for: peer) } }
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

    /// A response body that is a stored file, which has its room until it is sent or the response is dropped.
    func body(of content: any StoredFile, _ file: HeldFile, priority: Priority = .ordinary) -> ResponseBody {
        ResponseBody(contentLength: Int(content.size)) { [self] writer in
            try await send(content, 0..<content.size, to: &writer, priority: priority)
            withExtendedLifetime(file) {}
            try await writer.finish(nil)
        }
    }

    /// A response body that is already in memory. Its bytes count until they are sent or the response is dropped.
    ///
    /// - Parameter peer: The client that the response counts for. Defaults to that of the current connection.
    /// - Throws: ``UploadProblem`` if the responses in progress leave no room for it.
    package func body(
        of bytes: ByteBuffer, for peer: PeerAddress? = UploadConnection.current?.peer
    ) throws(UploadProblem) -> ResponseBody {
        guard bytes.readableBytes > ResponseRoom.minimumPieceBytes else { return ResponseBody(byteBuffer: bytes) }
        let room = try HeldRoom(for: bytes.readableBytes, of: peer, in: self)
        return ResponseBody(contentLength: bytes.readableBytes) { writer in
            try await writer.write(bytes)
            try await UploadConnection.current?.flushed()
            withExtendedLifetime(room) {}
            try await writer.finish(nil)
        }
    }

    /// Room that is released with the object.
    private final class HeldRoom: Sendable {
        private let count: Int
        private let peer: PeerAddress?
        private let budget: ResponseBudget

        init(for count: Int, of peer: PeerAddress?, in budget: ResponseBudget) throws(UploadProblem) {
            let (admission, total, share) = budget.state.withLock { state in
                (state.room.take(all: count, for: peer), state.room.total, state.room.share)
            }
            switch admission {
            case .taken: break
            case .full: throw .tooManyResponses(maximum: total)
            case .fullForPeer: throw .tooManyResponsesOfClient(share)
            }
            self.count = count
            self.peer = peer
            self.budget = budget
        }

        deinit { budget.giveBack(count, for: peer) }
    }

    // MARK: - Files

    /// Room for an open file, released with the object.
    final class HeldFile: Sendable {
        private let peer: PeerAddress?
        private let budget: ResponseBudget

        fileprivate init(of peer: PeerAddress?, in budget: ResponseBudget) {
            self.peer = peer
            self.budget = budget
        }

        deinit { budget.state.withLock { $0.files.giveBack(for: peer) } }
    }

    /// Takes room for the file of an upload.
    ///
    /// - Throws: ``UploadProblem`` if there is none.
    func holdUploadedFile(for peer: PeerAddress?) throws(UploadProblem) -> HeldFile {
        try holdFile(for: peer, isReserved: false, code: "too-many-uploads")
    }

    /// Takes room for the file of a response, before it is opened. The response to a form gets it in any case: the
    /// form had room until now.
    ///
    /// - Throws: ``UploadProblem`` if there is none.
    func holdFile(
        for peer: PeerAddress? = UploadConnection.current?.peer, priority: Priority = .ordinary
    ) throws(UploadProblem) -> HeldFile {
        try holdFile(for: peer, isReserved: priority == .immediate, code: "too-many-answers")
    }

    private func holdFile(
        for peer: PeerAddress?, isReserved: Bool, code: String
    ) throws(UploadProblem) -> HeldFile {
        let (admission, total, share) = state.withLock { state in
            (state.files.take(for: peer, isReserved: isReserved), state.files.total, state.files.share)
        }
        switch admission {
        case .taken: return HeldFile(of: peer, in: self)
        case .full: throw .tooManyOpenFiles(total, code: code)
        case .fullForPeer: throw .tooManyOpenFilesOfClient(share, code: code + "-of-client")
        }
    }

    /// How many files uploads and responses have open.
    var openFileCount: Int { state.withLock { $0.files.count } }

    // MARK: - Room

    /// Takes room for a piece.
    ///
    /// - Returns: How many bytes the piece may have, and how many of them have to be released.
    private func take(
        upTo wanted: Int, _ number: Int, _ priority: Priority, _ peer: PeerAddress?
    ) async throws -> (count: Int, held: Int) {
        if let count = state.withLock({ $0.room.take(upTo: wanted, for: peer) }) { return (count, count) }
        switch priority {
        case .immediate: return (min(wanted, ResponseRoom.minimumPieceBytes), 0)
        case .ordinary:
            let count = try await wait(for: wanted, number, peer)
            return (count, count)
        }
    }

    /// Waits for room for a piece, after the responses to the same address that already wait.
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
                // A client that is gone leaves the queue.
                if let channel, isNew { channel.closeFuture.whenComplete { [self] _ in closed(channel) } }
                if Task.isCancelled || channel?.isActive == false { leave(number) }
                serveWaiting()
            }
        } onCancel: {
            leave(number)
        }
    }

    /// - Parameter channel: Retained until now, so that no other connection can have had its identifier.
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

    /// The bytes that no response holds.
    var freeBytes: Int { state.withLock { $0.room.free } }

    /// How many responses wait for room.
    var waitingCount: Int { state.withLock { $0.room.waitingCount } }
}

extension UploadProblem {
    fileprivate static func tooManyOpenFiles(_ maximum: Int, code: String) -> UploadProblem {
        var problem = UploadProblem(
            status: 503, code: code, detail: "Requests of other clients use all files that the receiver may open.",
            fix: "Send the request again in a moment.")
        problem.limit = Limit(name: "openFiles", value: Int64(maximum))
        problem.retryAfterSeconds = 5
        return problem
    }

    fileprivate static func tooManyOpenFilesOfClient(_ share: Int, code: String) -> UploadProblem {
        var problem = UploadProblem(
            status: 429, code: code,
            detail: "The receiver opens \(share) files at once for one address, and has as many open for yours.",
            fix: "Send fewer requests at once. Behind a proxy, start the receiver with --client-share 100.")
        problem.limit = Limit(name: "clientShare", value: Int64(share))
        problem.retryAfterSeconds = 5
        return problem
    }

    fileprivate static func tooManyResponses(maximum: Int) -> UploadProblem {
        var problem = UploadProblem(
            status: 503, code: "too-many-answers",
            detail: "Responses that other clients have not read yet use all memory for responses.",
            fix: "Send the request again in a moment.")
        problem.limit = Limit(name: "maximumHeldResponseBytes", value: Int64(maximum))
        problem.retryAfterSeconds = 5
        return problem
    }

    fileprivate static func tooManyResponsesOfClient(_ share: Int) -> UploadProblem {
        var problem = UploadProblem(
            status: 429, code: "too-many-answers-of-client",
            detail:
                "The receiver holds \(share) bytes of responses for one address, and yours has not read that many.",
            fix: "Read the responses before you send more requests. "
                + "Behind a proxy, start the receiver with --client-share 100.")
        problem.limit = Limit(name: "clientShare", value: Int64(share))
        problem.retryAfterSeconds = 5
        return problem
    }
}
