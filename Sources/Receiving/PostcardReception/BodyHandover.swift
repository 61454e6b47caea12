import HTTPTypes
package import NIOCore
import PostcardForm
import PostcardStore
import Synchronization

/// Passes the bytes of a body piece by piece from the task that reads the body to the task that receives the form. If
/// the client is too slow, the form gets an error. The form's task is not cancelled, so that it can store the bytes
/// received so far.
///
/// The body is read only while the form waits for bytes. A form that is refused or needs no body therefore leaves the
/// unread bytes to the server, and the task that reads the connection is never cancelled during a read.
final class BodyHandover: Sendable {
    fileprivate enum State {
        /// The form processes bytes. The reading task waits until the form needs more.
        case busy(CheckedContinuation<Bool, Never>?)
        /// The form waits for bytes, and the reading task reads them.
        case wanted(CheckedContinuation<ByteBuffer?, any Error>)
        case ended((any Error)?)
    }

    fileprivate struct Progress {
        var state = State.busy(nil)
        var rate: TransferRate
        /// The time since which the form has waited for bytes; `nil` while it processes bytes.
        var quietSince: NIODeadline?
        var byteCount: Int64 = 0
    }

    private let progress: Mutex<Progress>
    private let limits: FormReceiver.Timeouts

    /// The Content-Length of the request; `nil` if the request has none.
    private let announced: Int64?

    /// The maximum number of bytes that are passed at once. Larger pieces from a server, such as a whole body, are
    /// split.
    private static let pieceBytes = 256 << 10

    init(announced: Int64?, limits: FormReceiver.Timeouts) {
        self.announced = announced
        self.limits = limits
        var rate = TransferRate(
            minimumBytesPerSecond: limits.minimumBytesPerSecond, gracePeriod: limits.gracePeriod)
        rate.bodyBegins(at: .now())
        rate.readingPauses(at: .now())
        progress = Mutex(Progress(rate: rate))
    }

    // MARK: - The reading task

    /// Reads a body to its end, or until the form needs no more bytes. The body's iterator is made only when bytes are
    /// needed: making it starts the reading in some servers, and fails in others if the request has no body.
    func pump<Body: AsyncSequence>(_ body: Body) async where Body.Element: FormChunk {
        guard await isWanted() else { return }
        if announced == 0 { return end(with: nil) }
        var chunks = body.makeAsyncIterator()
        do {
            while await isWanted() {
                guard let chunk = try await chunks.next(isolation: #isolation) else {
                    // Some sequences end without an error when their task is cancelled.
                    return end(with: Task.isCancelled ? CancellationError() : lengthError())
                }
                var start = 0
                let count = chunk.withFormChunkBytes { $0.byteCount }
                while start < count, await isWanted() {
                    let end = Swift.min(start + Self.pieceBytes, count)
                    pass(Self.buffer(of: chunk, start..<end))
                    start = end
                }
            }
        } catch {
            end(with: error)
        }
    }

    private static func buffer(of chunk: some FormChunk, _ range: Range<Int>) -> ByteBuffer {
        let piece = chunk.formChunkPiece(range)
        return piece as? ByteBuffer
            ?? piece.withFormChunkBytes { bytes in bytes.withUnsafeBytes { ByteBuffer(bytes: $0) } }
    }

    /// The error if an ended body is shorter than its Content-Length; `nil` otherwise.
    private func lengthError() -> (any Error)? {
        let count = byteCount
        guard let announced, count < announced else { return nil }
        return count == 0 ? UploadProblem.bodyNotPassed(of: announced) : RequestInterruption.endedEarly
    }

    /// Waits until the form needs bytes. Returns `false` if the form needs no more bytes.
    private func isWanted() async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let isWanted = progress.withLock { progress -> Bool? in
                    switch progress.state {
                    case .wanted: return true
                    case .ended: return false
                    case .busy where Task.isCancelled: return false
                    case .busy:
                        progress.state = .busy(waiter)
                        return nil
                    }
                }
                if let isWanted { waiter.resume(returning: isWanted) }
            }
        } onCancel: {
            let waiter = progress.withLock { progress -> CheckedContinuation<Bool, Never>? in
                guard case .busy(let waiter) = progress.state else { return nil }
                progress.state = .busy(nil)
                return waiter
            }
            waiter?.resume(returning: false)
        }
    }

    /// Passes a piece to the waiting form, unless the body has ended meanwhile.
    private func pass(_ piece: ByteBuffer) {
        if let announced, Int64(piece.readableBytes) > announced - byteCount {
            return end(with: UploadProblem.bodyTooLong(announced: announced))
        }
        let reader = progress.withLock { progress -> CheckedContinuation<ByteBuffer?, any Error>? in
            guard case .wanted(let reader) = progress.state else { return nil }
            progress.byteCount += Int64(piece.readableBytes)
            progress.rate.received(piece.readableBytes)
            progress.rate.readingPauses(at: .now())
            progress.quietSince = nil
            progress.state = .busy(nil)
            return reader
        }
        reader?.resume(returning: piece)
    }

    // MARK: - The form's task

    /// Returns the next bytes of the body; `nil` at the end.
    func next() async throws -> ByteBuffer? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { reader in
                let (waiter, result) = progress.withLock { $0.wait(reader) }
                waiter?.resume(returning: true)
                if let result { reader.resume(with: result) }
            }
        } onCancel: {
            end(with: CancellationError())
        }
    }

    /// Ends the body for both tasks. `error` is the error that the form gets; `nil` if the body is complete. Does
    /// nothing if the body has already ended.
    func end(with error: (any Error)?) {
        let state = progress.withLock { progress -> State in
            if case .ended = progress.state { return .busy(nil) }
            defer { progress.state = .ended(error) }
            return progress.state
        }
        switch state {
        case .wanted(let reader):
            if let error { reader.resume(throwing: error) } else { reader.resume(returning: nil) }
        case .busy(let waiter): waiter?.resume(returning: false)
        case .ended: break
        }
    }

    /// Reads and drops the unread bytes of the body, unless their announced or actual number exceeds a maximum.
    func discard(atMost maximum: Int64) async {
        guard maximum > 0, (announced ?? 0) - byteCount <= maximum else { return }
        let end = byteCount.addingReportingOverflow(maximum)
        while end.overflow || byteCount < end.partialValue, (try? await next()) != nil {}
    }

    /// Whether the body has been read to its end.
    var isRead: Bool {
        progress.withLock { progress in
            if case .ended(nil) = progress.state { true } else { progress.byteCount == announced }
        }
    }

    /// The number of bytes of the body that were passed to the form.
    var byteCount: Int64 { progress.withLock { $0.byteCount } }

    /// Whether the body has ended with an error.
    var isBroken: Bool {
        progress.withLock { progress in
            if case .ended(_?) = progress.state { true } else { false }
        }
    }

    // MARK: - Time

    /// Interrupts the form if the client is too slow.
    func watch() async {
        while !Task.isCancelled {
            let (rest, interruption) = progress.withLock { $0.check(limits, at: .now()) }
            if let interruption { return end(with: interruption) }
            try? await Task.sleep(for: rest)
        }
    }

    /// How long the form has waited for bytes without receiving any.
    var quietTime: Duration { progress.withLock { $0.quietSince.map { $0.duration(to: .now()) } ?? .zero } }
}

extension BodyHandover.Progress {
    /// Makes the form wait for bytes. Returns the reading task to resume, if that task is waiting. If the body has
    /// ended or the form's task is cancelled, returns the result for the form: the end of the body, or an error.
    fileprivate mutating func wait(
        _ reader: CheckedContinuation<ByteBuffer?, any Error>
    ) -> (waiter: CheckedContinuation<Bool, Never>?, result: Result<ByteBuffer?, any Error>?) {
        switch state {
        case .ended(let error): return (nil, error.map { .failure($0) } ?? .success(nil))
        case .busy(let waiter) where !Task.isCancelled:
            quietSince = .now()
            rate.readingResumes(at: .now())
            state = .wanted(reader)
            return (waiter, nil)
        case .busy, .wanted: return (nil, .failure(CancellationError()))
        }
    }

    /// Returns how long to wait until the next check, and the reason if a slow client's form must be interrupted.
    fileprivate mutating func check(
        _ limits: FormReceiver.Timeouts, at now: NIODeadline
    ) -> (rest: Duration, interruption: RequestInterruption?) {
        let idle = quietSince.map { limits.idle - $0.duration(to: now) } ?? limits.idle
        if idle <= .zero { return (.zero, .tooSlow(limits.idle)) }
        guard let period = rate.check(at: now) else {
            return (.zero, .belowMinimumRate(limits.minimumBytesPerSecond))
        }
        return (Swift.max(Swift.min(idle, period, limits.idle / 4), .milliseconds(1)), nil)
    }
}

extension BodyHandover: AsyncSequence {
    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let body: BodyHandover

        func next() async throws -> ByteBuffer? { try await body.next() }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: self) }
}

/// Represents the connection of a request in ``FormReceiver``, which only gets the head and body from its server.
final class ClientConnection: RequestConnection {
    let peer: PeerAddress?
    let report = UploadReport()
    let body: BodyHandover
    /// The interim response that will be sent after a delay. A request has at most one.
    private let announcement = Mutex<Task<Void, any Error>?>(nil)
    private let send: (@Sendable (HTTPResponse) async throws -> Void)?

    init(from address: String?, _ body: BodyHandover, inform send: (@Sendable (HTTPResponse) async throws -> Void)?) {
        peer = address.flatMap { IPAddress(text: $0) }.map { PeerAddress($0) }
        self.body = body
        self.send = send
    }

    /// `nil`, because the server closes its connections itself.
    var channelToClose: (any Channel)? { nil }

    var informs: Bool { send != nil }

    func inform(_ head: HTTPResponse) async throws { try await send?(head) }

    func inform(_ head: HTTPResponse, after delay: Duration) -> @Sendable () -> Void {
        let task = Task { [send] in
            try await Task.sleep(for: delay)
            try await send?(head)
        }
        announcement.withLock { $0 = task }
        return { task.cancel() }
    }

    /// Waits until a started interim response is sent, because it must not follow the final response.
    func settle() async {
        let task = announcement.withLock { $0 }
        task?.cancel()
        _ = await task?.result
    }

    /// When to interrupt a request that must end: once no bytes have arrived for `quietTime`, or after waiting
    /// `attempts` times for `quietTime`, even if bytes still arrive.
    private static let (quietTime, attempts) = (Duration.milliseconds(50), 4)

    func closeWhenQuiet(while isEnded: @escaping @Sendable () -> Bool) {
        Task { [body] in
            for _ in 0..<Self.attempts where isEnded() && body.quietTime < Self.quietTime {
                try? await Task.sleep(for: Self.quietTime)
            }
            if isEnded() { body.end(with: RequestInterruption.disconnected(CancellationError())) }
        }
    }

    func close() { body.end(with: RequestInterruption.disconnected(CancellationError())) }
}

/// Measures whether a body arrives fast enough.
///
/// The rate is measured for one grace period after the other. Time in which the server does not read is not counted.
package struct TransferRate: Sendable {
    private let minimumBytesPerSecond: Int
    private let gracePeriod: Duration

    private var began: NIODeadline?
    private var bytes = 0
    private var pausedTime = Duration.zero
    private var pausedSince: NIODeadline?

    package init(minimumBytesPerSecond: Int, gracePeriod: Duration) {
        self.minimumBytesPerSecond = minimumBytesPerSecond
        self.gracePeriod = gracePeriod
    }

    package mutating func bodyBegins(at now: NIODeadline) {
        began = now
        bytes = 0
        pausedTime = .zero
        pausedSince = nil
    }

    package mutating func received(_ count: Int) { bytes += count }

    package mutating func readingPauses(at now: NIODeadline) {
        if pausedSince == nil { pausedSince = now }
    }

    package mutating func readingResumes(at now: NIODeadline) {
        guard let since = pausedSince else { return }
        pausedTime += since.duration(to: now)
        pausedSince = nil
    }

    /// Returns how long to wait until the next check; `nil` if the client is too slow.
    package mutating func check(at now: NIODeadline) -> Duration? {
        guard let began, minimumBytesPerSecond > 0 else { return gracePeriod }
        let paused = pausedTime + (pausedSince.map { $0.duration(to: now) } ?? .zero)
        let passed = began.duration(to: now) - paused
        guard passed >= gracePeriod else { return gracePeriod - passed }
        guard Double(bytes) >= Double(minimumBytesPerSecond) * (passed / .seconds(1)) else { return nil }
        bodyBegins(at: now)
        return gracePeriod
    }
}

extension NIODeadline {
    package func advanced(by duration: Duration) -> NIODeadline { self + TimeAmount(duration) }

    package func duration(to end: NIODeadline) -> Duration { Duration(end - self) }
}
