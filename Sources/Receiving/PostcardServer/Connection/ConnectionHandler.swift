import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import PostcardReception
import PostcardWire

/// Ends connections so that every response reaches its client, and detects clients that send or read nothing.
///
/// The handler is between the HTTP codec and Hummingbird's handlers, on an HTTP/1.1 connection or an HTTP/2 stream.
/// ``ConnectionState`` decides what to do. The time is the event loop's, so that tests can advance it.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    let options: ConnectionOptions
    let onEarlyRefusal: EarlyRefusal.Observer
    var state = ConnectionState()
    var rate: TransferRate
    /// Whether the channel is an HTTP/2 stream, which has a single request and no `Connection` header.
    var isStream = false

    /// The start of the client's current silence, moved forward by each pause in which the server did not read.
    var quietSince = NIODeadline.distantPast
    /// The time at which the server stopped reading; `nil` while the server waits for the client.
    var pausedSince: NIODeadline?
    var silenceCheck: Scheduled<Void>?
    /// The number of complete responses whose ends are not in the socket yet.
    var unsentEnds = 0
    var progress: ResponseProgress
    /// Promises that succeed once all parts of responses are in the socket.
    var flushPromises: [EventLoopPromise<Void>] = []
    let wire = WireBytes()
    /// Closes a TLS connection that has no requests.
    weak var watch: ConnectionWatch?
    /// Whether the connection ends with the next final response, whatever its head says.
    var endsWithResponse = false
    /// The refusal to send if the bytes received last are not a valid request.
    var refusal = EarlyRefusal(problem: .malformedRequest, bytes: [])
    /// Promises of delayed closing, which succeed once the connection is closed.
    var closePromises: [EventLoopPromise<Void>] = []

    init(options: ConnectionOptions, onEarlyRefusal: @escaping EarlyRefusal.Observer) {
        self.options = options
        self.onEarlyRefusal = onEarlyRefusal
        progress = ResponseProgress(options: options)
        rate = TransferRate(
            minimumBytesPerSecond: options.minimumBytesPerSecond, gracePeriod: options.gracePeriod)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        quietSince = context.eventLoop.now
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
        endInput(context: context)
        silenceCheck?.cancel()
        for promise in closePromises { promise.succeed() }
        closePromises.removeAll()
        context.fireChannelInactive()
    }

    // MARK: - Requests

    func read(context: ChannelHandlerContext) {
        if let since = pausedSince {
            let now = context.eventLoop.now
            // Time in which the server did not read does not count. Bytes of an incomplete message do not reset the
            // timeout: a head that arrives byte by byte must be complete within the idle timeout.
            quietSince = min(quietSince.advanced(by: since.duration(to: now)), now)
            rate.readingResumes(at: now)
            pausedSince = nil
        }
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if !state.isLingering { quietSince = context.eventLoop.now }
        let part = unwrapInboundIn(data)
        if case .end = part { wire.partRead(isEnd: true) } else { wire.partRead(isEnd: false) }
        let action =
            switch part {
            case .head(let head): headRead(head)
            case .body(let bytes): bodyRead(bytes.readableBytes)
            case .end: state.endRead()
            }
        perform(action, context: context) { context.fireChannelRead(data) }
    }

    private func headRead(_ head: HTTPRequest) -> ConnectionState.ReadAction {
        rate.bodyBegins(at: quietSince)
        return state.headRead(
            isFinal: head.headerFields.askForClose, hasLength: head.headerFields.contains(.contentLength))
    }

    private func bodyRead(_ count: Int) -> ConnectionState.ReadAction {
        rate.received(count)
        return state.bodyRead(count)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        let now = context.eventLoop.now
        pausedSince = pausedSince ?? now
        rate.readingPauses(at: now)
        context.fireChannelReadComplete()
        // Dropped bytes do not reach later handlers, which therefore ask for no more. This handler must continue to
        // read.
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
        // Hummingbird responds when the decoder fails. Its response is then replaced with the refusal.
        let original = error is RequestRefusal ? HTTPParserError.unknown : error
        let connection = isStream ? context.channel.parent : context.channel
        let early = EarlyRefusal(
            problem: .decoding(error), bytes: wire.beginning,
            client: connection.flatMap(ProxyHeaderHandler.clientNow))
        if fail(interruption, original: original, context: context) == .pass { refusal = early }
    }

    /// Whether the server has been ready to read, and has received nothing, for at least the given time. `now` is the
    /// time of the channel's event loop.
    func isQuiet(for time: Duration, at now: NIODeadline) -> Bool {
        pausedSince == nil && quietSince.duration(to: now) >= time
    }

    @discardableResult
    func fail(
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

    private func perform(_ action: ConnectionState.ReadAction, context: ChannelHandlerContext, pass: () -> Void) {
        switch action {
        case .pass: pass()
        case .drop: break
        case .close: closeNow(context: context)
        }
    }

    // MARK: - Responses

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head) where head.status.kind == .informational:
            guard state.isWriting else {
                promise?.succeed()
                return
            }
            // A proxy that mistakes a 104 for the final response waits until the connection ends.
            if head.status == .uploadResumptionSupported, !isStream { endsWithResponse = true }
            context.write(data, promise: promise)
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
        // Hummingbird adds `Content-Length: 0` to every response without a body. A 204 must not have the field, and a
        // 304 would need the length of the file (RFC 9110 §8.6).
        if head.status == .noContent || head.status == .notModified { head.headerFields[.contentLength] = nil }
        if head.status.kind != .informational { head.headerFields.dateIfMissing() }
        switch state.responseBegins(isLast: endsWithResponse || head.headerFields.askForClose) {
        case .drop:
            promise?.succeed()
        case .write:
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .writeAsLast:
            if !isStream { head.headerFields[.connection] = "close" }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .writeMalformedRequest:
            onEarlyRefusal(refusal)
            let body = refusal.problem.body
            head = refusal.problem.head
            head.headerFields[.contentLength] = String(body.readableBytes)
            head.headerFields[.connection] = "close"
            head.headerFields.dateIfMissing()
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(body)), promise: promise)
        }
    }

    /// Writes a body in slices, so that the progress of a slow client is visible.
    private func writeBody(_ bytes: ByteBuffer, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        var rest = bytes
        let sliceBytes = options.sliceBytes
        while rest.readableBytes > sliceBytes, let slice = rest.readSlice(length: sliceBytes) {
            context.write(wrapOutboundOut(.body(slice)), promise: watched(nil, context: context))
        }
        context.write(wrapOutboundOut(.body(rest)), promise: watched(promise, context: context))
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is ResponseFlush else {
            context.triggerUserOutboundEvent(event, promise: promise)
            return
        }
        guard let promise else { return }
        if progress.unsentParts == 0 { promise.succeed() } else { flushPromises.append(promise) }
    }

    private func writeEnd(_ data: NIOAny, context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        let action = state.responseEnds()
        guard action != .drop else {
            promise?.succeed()
            return
        }
        let sent = watched(promise, context: context)
        unsentEnds += 1
        sent.futureResult.assumeIsolated().whenComplete { [self] _ in
            unsentEnds -= 1
            // The client's silence is counted from now on, because the end of the response was not in the socket
            // before.
            quietSince = context.eventLoop.now
            switch action {
            case .writeAndLinger: linger(context: context)
            case .writeAndClose: closeNow(context: context)
            case .write, .drop:
                if unsentEnds == 0, !closePromises.isEmpty { closeNow(context: context) }
            }
        }
        context.write(data, promise: sent)
    }

    /// Returns a promise that tracks when a part of a response is in the socket, which happens as the client reads.
    private func watched(_ promise: EventLoopPromise<Void>?, context: ChannelHandlerContext) -> EventLoopPromise<Void> {
        let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
        progress.partWritten(at: context.eventLoop.now, acknowledged: acknowledgedBytes(context: context))
        sent.futureResult.assumeIsolated().whenComplete { [self] _ in
            progress.partSent(at: context.eventLoop.now)
            guard progress.unsentParts == 0 else { return }
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
        case .all where state.isLingering || unsentEnds > 0:
            // A response is still in flight, so closing waits.
            closePromises.append(promise ?? context.eventLoop.makePromise())
            checkSilence(context: context, after: options.drainTimeout)
        case .all:
            endInput(context: context)
            context.close(mode: .all, promise: promise)
        }
    }
}

@available(*, unavailable)
extension ConnectionHandler: Sendable {}
