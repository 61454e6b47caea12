import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import PostcardCLibrary
import PostcardClient

/// Sends the bodies of a connection's requests, and reports interim responses. AsyncHTTPClient gets the requests
/// without their bodies, and drops interim responses.
///
/// The handler takes the blocks of a body on the event loop that writes them. So the head and a small body are sent
/// together, and a large body needs no task switch for each block. A response that arrives before the end of the body
/// ends the body and the connection, because the rest of the body would be missing (RFC 9112 §9.6).
final class BodyHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    /// The maximum number of bytes to write at a time. Progress is reported after each such write.
    private static let chunkSize = 64 << 10

    /// The maximum number of bytes to write before checking for a response, if the socket accepts all bytes at once.
    private static let longestRun: Int64 = 2 << 20

    private let requests: OutgoingRequests
    /// How long to wait for a 100 (Continue) before the body is sent anyway.
    private let patience: TimeAmount
    private var state = State.idle
    /// The latest request on the connection. Responses belong to this request.
    private var request: OutgoingRequest?
    /// The socket of the channel; `nil` for a channel without its own socket, such as an HTTP/2 stream.
    private var socket: (any SocketOptionProvider)?

    private enum State {
        /// No body is in progress.
        case idle
        /// The head of a request was written, but not its end.
        case begun(OutgoingBody)
        /// The server is asked whether it wants the body (RFC 9110 §10.1.1).
        case asking(OutgoingBody, Scheduled<Void>)
        /// The body is being sent.
        case sending(Transfer)
        /// The body was cut short. No other body is sent on this connection.
        case over
    }

    /// A body that is being sent.
    private final class Transfer {
        let body: OutgoingBody
        var bytesSent: Int64 = 0
        var bytesInFlight = 0
        var isEnded = false
        /// Whether blocks are being written. A nested call, made when the socket accepts bytes at once, does nothing.
        var isWriting = false
        /// The number of bytes sent when the event loop last checked for a response.
        var lastPause: Int64 = 0

        init(_ body: OutgoingBody) {
            self.body = body
        }
    }

    init(_ requests: OutgoingRequests, patience: TimeAmount) {
        self.requests = requests
        self.patience = patience
    }

    func handlerAdded(context: ChannelHandlerContext) {
        socket = context.channel as? any SocketOptionProvider
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        socket = nil
        end()
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    /// Stops sending and reading the body.
    private func end() {
        switch state {
        case .idle, .over: break
        case .begun(let body): body.blocks.close()
        case .asking(let body, let timer):
            timer.cancel()
            body.blocks.close()
        case .sending(let transfer): transfer.body.blocks.close()
        }
        state = .over
    }
}

// MARK: - The request

extension BodyHandler {
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch (unwrapOutboundIn(data), state) {
        case (.head(var head), .idle):
            switch requests.takeRequest(from: &head.headers) {
            case .none:
                context.write(data, promise: promise)
            case .request(let request):
                guard self.request == nil || !isClosedByServer() else { return refuse(promise, context) }
                self.request = request
                if let body = request.body {
                    body.frame(&head.headers)
                    state = .begun(body)
                }
                let written = promise ?? context.eventLoop.makePromise(of: Void.self)
                written.futureResult.whenSuccess { [beginning = request.beginning] in beginning.noteSent() }
                context.write(wrapOutboundOut(.head(head)), promise: written)
                request.body?.report(.sent(bytes: 0))
            case .removed:
                // The upload was cancelled before its head was written, so its body is gone.
                refuse(promise, context)
            }
        case (.end, .begun(let body)):
            promise?.succeed()
            if body.expectsContinue {
                state = .asking(body, scheduleSending(context))
            } else {
                send(body, context: context)
            }
        case (.head, .over):
            // The server may still expect the rest of another body.
            refuse(promise, context)
        default:
            context.write(data, promise: promise)
        }
    }

    /// Closes the connection instead of sending a request.
    private func refuse(_ promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext) {
        state = .over
        promise?.fail(ChannelError.ioOnClosedChannel)
        context.close(promise: nil)
    }

    /// Whether the server has closed its side of the connection, even if the event loop has not noticed it yet. A
    /// request on such a connection is lost, and the client cannot know whether the server has read the request.
    private func isClosedByServer() -> Bool {
        #if canImport(Glibc)
        // For a channel without its own socket, such as an HTTP/2 stream, the state is unknown.
        guard let socket else { return false }
        let established: UInt8 = 1
        var isClosed = false
        // On the channel's event loop, the result is available at once.
        socket.getTCPInfo().assumeIsolated().whenSuccess { isClosed = $0.tcpi_state != established }
        return isClosed
        #else
        return false
        #endif
    }

    private func scheduleSending(_ context: ChannelHandlerContext) -> Scheduled<Void> {
        context.eventLoop.assumeIsolated().scheduleTask(in: patience) {
            if case .asking(let body, _) = self.state { self.send(body, context: context) }
        }
    }

    private func send(_ body: OutgoingBody, context: ChannelHandlerContext) {
        let transfer = Transfer(body)
        state = .sending(transfer)
        write(transfer, context: context)
    }

    /// Writes the blocks that are ready, up to the maximum in flight.
    private func write(_ transfer: Transfer, context: ChannelHandlerContext) {
        guard case .sending(let current) = state, current === transfer, !transfer.isWriting else { return }
        let loop = context.eventLoop
        let bound = NIOLoopBound((handler: self, transfer: transfer, context: context), eventLoop: loop)
        let writeMore: @Sendable () -> Void = {
            loop.execute { bound.value.handler.write(bound.value.transfer, context: bound.value.context) }
        }
        transfer.isWriting = true
        defer { transfer.isWriting = false }
        taking: while !transfer.isEnded, transfer.bytesInFlight < OutgoingBody.maximumBytesInFlight {
            switch transfer.body.blocks.take(orCall: writeMore) {
            case .block(let block):
                write(block, of: transfer, context: context)
                if block.isLast { writeEnd(of: transfer, context: context) }
            case .end:
                writeEnd(of: transfer, context: context)
            case .later:
                break taking
            case .broken:
                // The connection is closed, because any regular end would make the body look complete.
                context.close(promise: nil)
                return
            }
        }
        let bytesBefore = transfer.bytesInFlight
        context.flush()
        // If the socket accepted bytes at once, it can accept more. The next bytes follow the event loop's other work.
        guard !transfer.isEnded, bytesBefore >= OutgoingBody.maximumBytesInFlight, transfer.bytesInFlight < bytesBefore
        else { return }
        if transfer.bytesSent - transfer.lastPause < Self.longestRun {
            writeMore()
        } else {
            // The event loop checks its sockets only if it has no tasks. So another thread schedules the next write.
            transfer.lastPause = transfer.bytesSent
            NIOThreadPool.singleton.submit { _ in writeMore() }
        }
    }

    private func write(_ block: BodyBlock, of transfer: Transfer, context: ChannelHandlerContext) {
        var bytes = block.bytes
        var end = block.end - Int64(bytes.readableBytes)
        while let chunk = bytes.readSlice(length: min(bytes.readableBytes, Self.chunkSize)), chunk.readableBytes > 0 {
            end += Int64(chunk.readableBytes)
            transfer.bytesInFlight += chunk.readableBytes
            let promise = context.eventLoop.makePromise(of: Void.self)
            promise.futureResult.assumeIsolated().whenSuccess { [end] in
                self.wasWritten(chunk.readableBytes, upTo: end, of: transfer, context: context)
            }
            context.write(wrapOutboundOut(.body(.byteBuffer(chunk))), promise: promise)
        }
    }

    private func wasWritten(
        _ count: Int, upTo end: Int64, of transfer: Transfer, context: ChannelHandlerContext
    ) {
        transfer.bytesInFlight -= count
        transfer.bytesSent = end
        transfer.body.report(.sent(bytes: end))
        write(transfer, context: context)
    }

    private func writeEnd(of transfer: Transfer, context: ChannelHandlerContext) {
        transfer.isEnded = true
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenSuccess {
            transfer.body.report(.sent(bytes: transfer.bytesSent))
            if case .sending(let current) = self.state, current === transfer { self.state = .idle }
        }
        context.write(wrapOutboundOut(.end(nil)), promise: promise)
    }
}

// MARK: - The response

extension BodyHandler {
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head) where head.status.code >= 200:
            context.fireChannelRead(wrapInboundOut(.head(endingBody(head))))
        case .head(let head):
            request?.report(
                .informed(
                    status: HTTPResponse.Status(code: Int(head.status.code), reasonPhrase: head.status.reasonPhrase),
                    headerFields: HTTPFields(head.headers)))
            if head.status == .continue, case .asking(let body, let timer) = state {
                timer.cancel()
                send(body, context: context)
            }
            context.fireChannelRead(data)
        case .body:
            context.fireChannelRead(data)
        case .end:
            let isEarly = if case .idle = state { false } else { true }
            context.fireChannelRead(data)
            if isEarly { context.close(promise: nil) }
        }
    }

    /// Adds a field to the head of a response that arrives while the body is still being sent. The field keeps the
    /// connection from being reused.
    private func endingBody(_ head: HTTPResponseHead) -> HTTPResponseHead {
        switch state {
        case .idle, .over: return head
        // After a successful head, the body is sent until the response ends.
        case .sending where head.status.code < 300: break
        case .begun, .asking, .sending: end()
        }
        var head = head
        head.headers.replaceOrAdd(name: "Connection", value: "close")
        return head
    }
}

extension HTTPClient.Configuration {
    /// Adds the transport's handlers to every connection, next to the HTTP codec.
    ///
    /// The streamed bodies of AsyncHTTPClient have three drawbacks. They drop the 100 (Continue). After an early
    /// success they end a request only when the whole body was sent. They flush the head, the body and the end
    /// separately. Only the debug initializers can add handlers, so `Package.swift` pins the minor version.
    mutating func addHandlers(sending requests: OutgoingRequests, patience: TimeAmount) {
        http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.submit {
                let pipeline = channel.pipeline.syncOperations
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                let handlers: [any ChannelHandler] = [StatusCheck(), BodyHandler(requests, patience: patience)]
                try pipeline.addHandlers(handlers, position: .after(decoder))
            }
        }
        http2StreamChannelDebugInitializer = { channel in
            channel.eventLoop.submit {
                let pipeline = channel.pipeline.syncOperations
                let codec = try pipeline.handler(type: HTTP2FramePayloadToHTTP1ClientCodec.self)
                try pipeline.addHandler(BodyHandler(requests, patience: patience), position: .after(codec))
            }
        }
    }
}

/// Closes a connection whose server responds with a status below 100, which is invalid (RFC 9110 §15).
///
/// NIO accepts such a status. AsyncHTTPClient takes it for an interim response, and crashes at the end of the response.
final class StatusCheck: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private enum State {
        case valid
        case invalid
    }

    private var state = State.valid

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Bytes after an invalid head belong to no response.
        guard state == .valid else { return }
        if case .head(let head) = unwrapInboundIn(data), head.status.code < 100 {
            state = .invalid
            context.fireErrorCaught(HTTPParserError.invalidStatus)
            context.close(promise: nil)
        } else {
            context.fireChannelRead(data)
        }
    }
}
