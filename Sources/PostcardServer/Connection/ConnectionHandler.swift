import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Ends connections so that every answer reaches its client, and notices clients that are silent.
///
/// It stands between the HTTP codec and Hummingbird's own handlers, of a connection of HTTP/1.1 or of one stream of
/// HTTP/2. What to do is decided by ``ConnectionState``.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let options: ConnectionOptions
    private let onEarlyRefusal: EarlyRefusal.Observer
    private var state: ConnectionState
    private var rate: TransferRate
    /// Whether the channel is one stream of several. It has one request, and no word for the connection's end.
    private var isStream = false

    /// Since when the client is waited for: its last byte, or the time when the next was asked for.
    private var quietSince = ContinuousClock.now
    /// Since when nothing is read of what the client may have sent; `nil` while it is waited for.
    private var pausedSince: ContinuousClock.Instant?
    private var silenceCheck: Scheduled<Void>?
    /// Ends of answers that are not in the socket yet.
    private var unsentEnds = 0
    /// Parts of answers that are not in the socket yet, and since when none of their bytes got there.
    private var unsentParts = 0
    private var stalledSince = ContinuousClock.now
    /// How much of its connection the client has acknowledged, where the system says it, and since when no more.
    private var acknowledgedBytes: UInt64?
    private var unacknowledgedSince = ContinuousClock.now
    /// How long the client may read nothing.
    private var readingPause: Duration
    /// Who wants to know that all parts are in the socket.
    private var flushPromises: [EventLoopPromise<Void>] = []
    private let wire = WireBytes()
    /// Who closes a connection over TLS that asks for nothing.
    private weak var watch: ConnectionWatch?
    /// Why what came is not taken for a request.
    private var refusal = EarlyRefusal(problem: .malformedRequest, bytes: [])
    /// Who wants to know that the connection is closed, where closing has to wait.
    private var closePromises: [EventLoopPromise<Void>] = []

    init(options: ConnectionOptions, onEarlyRefusal: @escaping EarlyRefusal.Observer) {
        self.options = options
        self.onEarlyRefusal = onEarlyRefusal
        readingPause = options.idleTimeout
        state = ConnectionState(maximumDrainBytes: options.maximumDrainBytes)
        rate = TransferRate(
            minimumBytesPerSecond: options.minimumBytesPerSecond, gracePeriod: options.gracePeriod)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        quietSince = .now
        checkSilence(context: context, after: options.idleTimeout)
        let pipeline = context.pipeline.syncOperations
        let decoder = try? pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        isStream = decoder == nil
        beWatched(on: isStream ? context.channel.parent : context.channel)
        if !isStream { SocketProgress.limitUnsentBytes(of: context.channel) }
        guard let decoder else { return }
        do {
            let requestGuard = RequestGuard()
            let requests = RequestDecoder(
                replacing: try pipeline.context(handler: decoder), requestGuard: requestGuard)
            try pipeline.addHandler(wire, position: .before(decoder))
            try pipeline.addHandler(ByteToMessageHandler(requests), position: .before(decoder))
            try pipeline.addHandler(requestGuard, position: .after(decoder))
        } catch {
            context.fireErrorCaught(error)
        }
    }

    private func beWatched(on connection: (any Channel)?) {
        guard let connection, connection.eventLoop.inEventLoop else { return }
        watch = try? connection.pipeline.syncOperations.handler(type: ConnectionWatch.self)
        watch?.served()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        silenceCheck?.cancel()
        watch?.left()
    }

    func channelInactive(context: ChannelHandlerContext) {
        // Whoever reads a body must not take the end of its stream for its own.
        if state.silence == .inBody {
            fail(.disconnected(ChannelError.eof), original: ChannelError.eof, context: context)
        }
        state.closes()
        silenceCheck?.cancel()
        for promise in closePromises { promise.succeed() }
        closePromises.removeAll()
        context.fireChannelInactive()
    }

    // MARK: - What comes in

    func read(context: ChannelHandlerContext) {
        if let since = pausedSince {
            let now = ContinuousClock.now
            // The client is not to blame for that time. Bytes that are no message yet do not end its silence: a head
            // that trickles in is over when the time for one is.
            quietSince = min(quietSince.advanced(by: since.duration(to: now)), now)
            rate.readingGoesOn(at: now)
            pausedSince = nil
        }
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if state.silence != .afterLastAnswer { quietSince = .now }
        let action =
            switch unwrapInboundIn(data) {
            case .head(let head): headRead(head)
            case .body(let bytes): bodyRead(bytes.readableBytes)
            case .end: state.endRead()
            }
        perform(action, context: context) { context.fireChannelRead(data) }
    }

    private func headRead(_ head: HTTPRequest) -> ConnectionState.ReadAction {
        rate.bodyBegins(at: quietSince)
        return state.headRead(isFinal: Self.asksForClose(head.headerFields))
    }

    private func bodyRead(_ count: Int) -> ConnectionState.ReadAction {
        rate.received(count)
        return state.bodyRead(count)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        let now = ContinuousClock.now
        pausedSince = pausedSince ?? now
        rate.readingStops(at: now)
        context.fireChannelReadComplete()
        // Who is behind this handler no longer sees what comes in, and so may not ask for more.
        if state.isDropping { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed? = event as? ChannelEvent else {
            context.fireUserInboundEventTriggered(event)
            return
        }
        let action = state.inputClosed()
        context.fireUserInboundEventTriggered(event)
        perform(action, context: context) {}
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let interruption: RequestInterruption =
            switch error {
            case HTTPParserError.invalidEOFState: .endedEarly
            case is HTTPParserError, is RequestRefusal: .malformed
            default: .disconnected(error)
            }
        // Who serves the connection answers where the decoder fails; the answer is then the refusal.
        let original = error is RequestRefusal ? HTTPParserError.unknown : error
        let early = EarlyRefusal(problem: .decoding(error), bytes: wire.beginning)
        if fail(interruption, original: original, context: context) == .pass { refusal = early }
    }

    /// Whether nothing has come for so long, though it would have been read.
    func isQuiet(for time: Duration) -> Bool {
        pausedSince == nil && quietSince.duration(to: .now) >= time
    }

    @discardableResult
    private func fail(
        _ interruption: RequestInterruption, original: any Error, context: ChannelHandlerContext
    ) -> ConnectionState.FailureAction {
        let action = state.inputFailed()
        switch action {
        case .pass: context.fireErrorCaught(original)
        case .passAsInterruption: context.fireErrorCaught(interruption)
        case .drop: break
        }
        return action
    }

    /// Whether a message is the last one of its connection: `Connection` is a list without case (RFC 9110 §7.6.1).
    private static func asksForClose(_ fields: HTTPFields) -> Bool {
        fields[values: .connection].contains { value in
            value.split(separator: ",").contains { option in
                option.lowercased().split(whereSeparator: { $0 == " " || $0 == "\t" }) == ["close"]
            }
        }
    }

    private func perform(_ action: ConnectionState.ReadAction, context: ChannelHandlerContext, pass: () -> Void) {
        switch action {
        case .pass: pass()
        case .drop: break
        case .close: closeNow(context: context)
        }
    }

    // MARK: - What goes out

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head) where head.status.kind == .informational:
            if state.isWriting { context.write(data, promise: promise) } else { promise?.succeed() }
        case .head(let head):
            writeHead(head, context: context, promise: promise)
        case .body(let bytes) where state.isWriting:
            writeBody(bytes, context: context, promise: promise)
        case .body:
            promise?.succeed()
        case .end:
            writeEnd(data, context: context, promise: promise)
        }
    }

    private func writeHead(_ head: HTTPResponse, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        var head = head
        switch state.answerBegins(isLast: Self.asksForClose(head.headerFields)) {
        case .drop:
            promise?.succeed()
        case .write:
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .writeAsLast:
            if !isStream { head.headerFields[.connection] = "close" }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .writeMalformedRequest:
            onEarlyRefusal(refusal)
            head = refusal.problem.head
            head.headerFields[.connection] = "close"
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(refusal.problem.body)), promise: promise)
        }
    }

    /// Writes a body in slices, so that a slow client is seen to read.
    private func writeBody(_ bytes: ByteBuffer, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        var rest = bytes
        let sliceBytes = options.sliceBytes
        while rest.readableBytes > sliceBytes, let slice = rest.readSlice(length: sliceBytes) {
            context.write(wrapOutboundOut(.body(slice)), promise: watched(nil, context: context))
        }
        context.write(wrapOutboundOut(.body(rest)), promise: watched(promise, context: context))
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is AnswerFlush else {
            context.triggerUserOutboundEvent(event, promise: promise)
            return
        }
        guard let promise else { return }
        if unsentParts == 0 { promise.succeed() } else { flushPromises.append(promise) }
    }

    private func writeEnd(_ data: NIOAny, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        let action = state.answerEnds()
        guard action != .drop else {
            promise?.succeed()
            return
        }
        let sent = watched(promise, context: context)
        unsentEnds += 1
        sent.futureResult.assumeIsolated().whenComplete { [self] _ in
            unsentEnds -= 1
            // Only now the client can be waited for.
            quietSince = .now
            switch action {
            case .writeAndLinger: linger(context: context)
            case .writeAndClose: closeNow(context: context)
            case .write, .drop:
                if unsentEnds == 0, !closePromises.isEmpty { closeNow(context: context) }
            }
        }
        context.write(data, promise: sent)
    }

    /// Notes when a part of an answer is in the socket, which is when the client has made room by reading.
    private func watched(_ promise: EventLoopPromise<Void>?, context: ChannelHandlerContext) -> EventLoopPromise<Void> {
        let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
        if unsentParts == 0 {
            stalledSince = .now
            unacknowledgedSince = stalledSince
            acknowledgedBytes = acknowledgedBytes ?? connectionBytes(context: context)
        }
        unsentParts += 1
        sent.futureResult.assumeIsolated().whenComplete { [self] _ in
            unsentParts -= 1
            stalledSince = .now
            guard unsentParts == 0 else { return }
            let promises = flushPromises
            flushPromises.removeAll()
            for promise in promises { promise.succeed() }
        }
        return sent
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        switch mode {
        case .input:
            context.close(mode: .input, promise: promise)
        case .output:
            switch state.outputCloses() {
            case .linger: linger(context: context)
            case .close: closeNow(context: context)
            case .ignore: break
            }
            promise?.succeed()
        case .all where state.silence == .afterLastAnswer || unsentEnds > 0:
            // The answer is still on its way.
            closePromises.append(promise ?? context.eventLoop.makePromise())
            checkSilence(context: context, after: options.drainTimeout)
        case .all:
            state.closes()
            context.close(mode: .all, promise: promise)
        }
    }

    // MARK: - How it ends

    private func linger(context: ChannelHandlerContext) {
        // A stream's output ends with its answer, and closing it would end all of it.
        if !isStream { context.close(mode: .output, promise: nil) }
        quietSince = .now
        checkSilence(context: context, after: options.drainTimeout)
        context.read()
    }

    private func closeNow(context: ChannelHandlerContext) {
        state.closes()
        context.close(mode: .all, promise: nil)
    }

    private func checkSilence(context: ChannelHandlerContext, after delay: Duration) {
        silenceCheck?.cancel()
        let delay = min(delay, options.gracePeriod)
        silenceCheck = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(delay)) { [self] in
            judgeSilence(context: context)
        }
    }

    /// A client that does not read keeps the answer's file open, and so does not get all the time of the world.
    private func judgeStall(context: ChannelHandlerContext) {
        let now = ContinuousClock.now
        // The system takes large pieces at once, and takes no more until much of them is read.
        if let bytes = connectionBytes(context: context), bytes != acknowledgedBytes {
            readingPause = options.pause(afterReading: bytes - min(acknowledgedBytes ?? 0, bytes))
            acknowledgedBytes = bytes
            unacknowledgedSince = now
        }
        let pause = closePromises.isEmpty ? readingPause : min(options.idleTimeout, options.drainTimeout)
        let stall = AnswerStall(
            answer: stalledSince.duration(to: now), connection: unacknowledgedSince.duration(to: now),
            isStream: isStream)
        let rest = stall.rest(of: pause)
        if rest <= .zero {
            closeNow(context: context)
        } else {
            // Often enough to know when the last byte was read.
            checkSilence(context: context, after: min(rest, pause / 4))
        }
    }

    /// How many bytes of the connection, with all its streams, the client has acknowledged.
    private func connectionBytes(context: ChannelHandlerContext) -> UInt64? {
        (isStream ? context.channel.parent : context.channel).flatMap(SocketProgress.acknowledgedBytes)
    }

    private func judgeSender(quiet: Duration, context: ChannelHandlerContext) {
        var interruption = RequestInterruption.tooSlow(options.idleTimeout)
        if quiet < options.idleTimeout {
            if let pause = rate.judge(at: .now) {
                return checkSilence(context: context, after: min(options.idleTimeout - quiet, pause))
            }
            interruption = .belowMinimumRate(options.minimumBytesPerSecond)
        }
        fail(interruption, original: interruption, context: context)
        checkSilence(context: context, after: options.idleTimeout)
    }

    private func judgeSilence(context: ChannelHandlerContext) {
        guard unsentParts == 0 else { return judgeStall(context: context) }
        let quiet = quietSince.duration(to: .now)
        switch state.silence {
        case .inBody where pausedSince == nil:
            judgeSender(quiet: quiet, context: context)
        case .betweenRequests where quiet >= options.idleTimeout, .afterLastAnswer where quiet >= options.drainTimeout:
            closeNow(context: context)
        case .betweenRequests:
            checkSilence(context: context, after: options.idleTimeout - quiet)
        case .afterLastAnswer:
            checkSilence(context: context, after: options.drainTimeout - quiet)
        case .inBody, .expected:
            if closePromises.isEmpty {
                checkSilence(context: context, after: options.idleTimeout)
            } else {
                closeNow(context: context)
            }
        }
    }
}

@available(*, unavailable)
extension ConnectionHandler: Sendable {}
