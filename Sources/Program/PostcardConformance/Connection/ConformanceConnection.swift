import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// A connection that sends any bytes and returns interim responses.
///
/// HTTP libraries send only well-formed requests, and ignore responses such as 104.
final class ConformanceConnection: Sendable {
    let address: ServerAddress
    private let channel: any Channel
    private let inbox: ResponseInbox

    private init(_ address: ServerAddress, _ channel: any Channel, _ inbox: ResponseInbox) {
        self.address = address
        self.channel = channel
        self.inbox = inbox
    }

    private static let security = Result {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.applicationProtocols = ["http/1.1"]
        return try NIOSSLContext(configuration: configuration)
    }

    /// Opens a connection.
    ///
    /// - Throws: `ConnectionFailure` if no connection is open within the timeout.
    static func open(
        to address: ServerAddress, timeout: Duration
    ) async throws(ConnectionFailure) -> ConformanceConnection {
        let inbox = ResponseInbox()
        do {
            let context = address.isSecure ? try security.get() : nil
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connectTimeout(TimeAmount(timeout))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        if let context {
                            try channel.pipeline.syncOperations.addHandler(handler(context, address.host))
                        }
                        try channel.pipeline.syncOperations.addHandler(InboxHandler(inbox))
                    }
                }
                .connect(host: address.host, port: address.port).get()
            return ConformanceConnection(address, channel, inbox)
        } catch {
            throw ConnectionFailure("no connection to \(address.host), port \(address.port): \(reason(error))")
        }
    }

    /// The part of an error that helps a person.
    private static func reason(_ error: any Error) -> String {
        if let error = error as? NIOConnectionError {
            if let attempt = error.connectionErrors.first { return reason(attempt.error) }
            return error.dnsAError == nil && error.dnsAAAAError == nil ? "it has no address" : "there is no such host"
        }
        // The text of an IOError names functions of SwiftNIO, so only its error code is described.
        return (error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(error)"
    }

    private static func handler(_ context: NIOSSLContext, _ host: String) throws -> NIOSSLClientHandler {
        do {
            return try NIOSSLClientHandler(context: context, serverHostname: host)
        } catch let error as NIOSSLExtraError where error == .cannotUseIPAddressInSNI {
            return try NIOSSLClientHandler(context: context, serverHostname: nil)
        }
    }

    /// Whether the server has not closed the connection.
    var isOpen: Bool { inbox.isOpen }

    /// Sets the method of the request to which the next response belongs.
    func beginRequest(_ method: String) {
        inbox.beginRequest(isHead: method == "HEAD")
    }

    /// Writes bytes without waiting for the server to read them, because it may respond first.
    func send(_ bytes: some Sequence<UInt8>) {
        channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    }

    /// The next response, interim or final; `nil` at the deadline. Throws `ConnectionFailure` if the connection has
    /// ended.
    func next(before deadline: ContinuousClock.Instant) async throws(ConnectionFailure) -> RawResponse? {
        try await inbox.next(before: deadline, on: channel.eventLoop)
    }

    /// Waits until the server has closed the connection. Returns `false` if it is still open at the deadline.
    func waitForEnd(before deadline: ContinuousClock.Instant) async -> Bool {
        await inbox.waitForEnd(before: deadline, on: channel.eventLoop)
    }

    /// Writes bytes and then closes the connection at once.
    func cut(after bytes: [UInt8], before deadline: ContinuousClock.Instant) async {
        channel.writeAndFlush(ByteBuffer(bytes: bytes)).whenComplete { [channel] _ in channel.close(promise: nil) }
        _ = await waitForEnd(before: deadline)
    }

    func close() {
        channel.close(promise: nil)
    }
}

/// Passes the bytes of a connection to its inbox.
private final class InboxHandler: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    private let inbox: ResponseInbox

    init(_ inbox: ResponseInbox) {
        self.inbox = inbox
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        inbox.receive(unwrapInboundIn(data).readableBytesView)
        if !inbox.isOpen { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        inbox.end()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A reset by the server counts as closing the connection. Other errors, such as those of TLS, are failures.
        inbox.end(error is IOError ? .closed : ConnectionFailure("the connection failed: \(error)"))
        context.close(promise: nil)
    }
}

/// Passes the responses of a connection from its event loop to the task that waits for them.
final class ResponseInbox: Sendable {
    private struct State {
        var reader = ResponseReader()
        var responses: [RawResponse] = []
        /// The reason why no responses follow; `nil` while the connection is open.
        var failure: ConnectionFailure?
        var count = 0
        /// The approximate memory of the unread responses, in bytes.
        var bytes = 0
        var waiter: (number: Int, continuation: CheckedContinuation<Void, Never>)?
        var waits = 0
    }

    private let state = Mutex(State())

    /// The maximum number of responses on a connection, against hostile servers that send interim responses forever.
    static let maximumResponses = 10_000
    /// The maximum memory of unread responses, in bytes, against hostile servers that send responses without requests.
    static let maximumBytes = 16 << 20

    /// Whether the connection may have further responses.
    var isOpen: Bool { state.withLock { $0.failure == nil } }

    func beginRequest(isHead: Bool) {
        state.withLock { $0.reader.respondsToHead = isHead }
    }

    // MARK: - From the event loop

    func receive(_ bytes: some Sequence<UInt8>) {
        change { state in
            guard state.failure == nil else { return }
            do throws(ConnectionFailure) {
                let responses = try state.reader.read(bytes)
                state.count += responses.count
                guard state.count <= Self.maximumResponses else { throw ConnectionFailure.tooMany }
                state.bytes += responses.reduce(0) { $0 + $1.memoryBytes }
                guard state.bytes <= Self.maximumBytes else { throw ConnectionFailure.tooManyBytes }
                state.responses += responses
            } catch {
                state.failure = error
            }
        }
    }

    /// Records the end of the connection. The failure defaults to a regular end.
    func end(_ failure: ConnectionFailure = .closed) {
        change { state in
            guard state.failure == nil else { return }
            do throws(ConnectionFailure) {
                if let last = try state.reader.readEnd() {
                    state.bytes += last.memoryBytes
                    state.responses.append(last)
                }
                state.failure = failure
            } catch {
                state.failure = error
            }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiter = state.withLock { state in
            body(&state)
            return state.waiter.take()
        }
        waiter?.continuation.resume()
    }

    // MARK: - To a task

    /// The next response; `nil` at the deadline, or if the task is cancelled. Throws `ConnectionFailure` if no
    /// responses follow.
    func next(
        before deadline: ContinuousClock.Instant, on loop: any EventLoop
    ) async throws(ConnectionFailure) -> RawResponse? {
        while true {
            let result: Result<RawResponse, ConnectionFailure>? = state.withLock { state in
                guard !state.responses.isEmpty else { return state.failure.map { .failure($0) } }
                let response = state.responses.removeFirst()
                state.bytes -= response.memoryBytes
                return .success(response)
            }
            if let result { return try result.get() }
            guard ContinuousClock.now < deadline, !Task.isCancelled else { return nil }
            await wait(until: deadline, on: loop)
        }
    }

    /// Waits for the end of the connection, and discards earlier responses. Returns `false` at the deadline.
    func waitForEnd(before deadline: ContinuousClock.Instant, on loop: any EventLoop) async -> Bool {
        do {
            while try await next(before: deadline, on: loop) != nil {}
            return false
        } catch {
            return true
        }
    }

    private func wait(until deadline: ContinuousClock.Instant, on loop: any EventLoop) async {
        let number = state.withLock { state in
            state.waits += 1
            return state.waits
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if !state.responses.isEmpty || state.failure != nil || Task.isCancelled { return true }
                    state.waiter = (number, continuation)
                    return false
                }
                if isOver { return continuation.resume() }
                loop.scheduleTask(in: TimeAmount(deadline - .now)) { self.endWait(number) }
            }
        } onCancel: {
            endWait(number)
        }
    }

    private func endWait(_ number: Int) {
        let waiter = state.withLock { state in
            state.waiter?.number == number ? state.waiter.take() : nil
        }
        waiter?.continuation.resume()
    }
}
