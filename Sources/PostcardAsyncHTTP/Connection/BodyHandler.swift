import NIOCore
import NIOHTTP1
import PostcardClient

/// Sends the bodies of a connection's requests, which AsyncHTTPClient takes to have none.
///
/// It takes the blocks where they are written, on the connection's event loop, so that the head and a small body go
/// out together, a large one costs no turn of a task for each piece, and nobody waits for a connection that takes no
/// more. An answer that overtakes the body ends it, and the connection with it: what was left out would be missed
/// (RFC 9112 §9.6).
final class BodyHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    /// The most bytes that were handed to the connection and not yet taken by it.
    static let maximumBytesInFlight = 512 << 10

    /// A slow connection is seen to move by this much.
    private static let chunkSize = 64 << 10

    private let bodies: OutgoingBodies
    /// How long a server has to say that it wants the body, before it gets it anyway.
    private let patience: TimeAmount
    private var state = State.idle

    private enum State {
        /// No body is on its way.
        case idle
        /// The head of a request was written, and its end not.
        case begun(OutgoingBody)
        /// The server is asked whether it wants the body (RFC 9110 §10.1.1).
        case asking(OutgoingBody, Scheduled<Void>)
        /// The body is going out.
        case sending(Transfer)
        /// Its request was answered, or is lost; no other body goes out on this connection.
        case over
    }

    /// A body that is going out.
    private final class Transfer {
        let body: OutgoingBody
        var progress = BodyProgress(bytesSent: 0, contentRanges: [])
        var bytesInFlight = 0
        var isEnded = false
        /// Whether it is being written in this moment, in which the connection can take what it has been given.
        var isWriting = false

        init(_ body: OutgoingBody) {
            self.body = body
        }
    }

    init(_ bodies: OutgoingBodies, patience: TimeAmount) {
        self.bodies = bodies
        self.patience = patience
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end()
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    /// Lets go of the body, and of whoever reads it.
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
            guard let body = bodies.takeBody(from: &head.headers) else { return context.write(data, promise: promise) }
            body.frame(&head.headers)
            state = .begun(body)
            context.write(wrapOutboundOut(.head(head)), promise: promise)
            body.report(.sent(BodyProgress(bytesSent: 0, contentRanges: [])))
        case (.end, .begun(let body)):
            promise?.succeed()
            if body.expectsContinue {
                state = .asking(body, waitForLeave(context))
            } else {
                send(body, context: context)
            }
        case (.head, .over):
            // The rest of another body may have been promised to the server.
            promise?.fail(ChannelError.ioOnClosedChannel)
            context.close(promise: nil)
        default:
            context.write(data, promise: promise)
        }
    }

    private func waitForLeave(_ context: ChannelHandlerContext) -> Scheduled<Void> {
        context.eventLoop.assumeIsolated().scheduleTask(in: patience) {
            if case .asking(let body, _) = self.state { self.send(body, context: context) }
        }
    }

    private func send(_ body: OutgoingBody, context: ChannelHandlerContext) {
        let transfer = Transfer(body)
        state = .sending(transfer)
        write(transfer, context: context)
    }

    /// Writes what is there, as far as the connection has taken what it was given before.
    private func write(_ transfer: Transfer, context: ChannelHandlerContext) {
        guard case .sending(let current) = state, current === transfer, !transfer.isWriting else { return }
        let loop = context.eventLoop
        let bound = NIOLoopBound((handler: self, transfer: transfer, context: context), eventLoop: loop)
        let goOn: @Sendable () -> Void = {
            loop.execute { bound.value.handler.write(bound.value.transfer, context: bound.value.context) }
        }
        transfer.isWriting = true
        defer { transfer.isWriting = false }
        taking: while !transfer.isEnded, transfer.bytesInFlight < Self.maximumBytesInFlight {
            switch transfer.body.blocks.take(orCall: goOn) {
            case .block(let block):
                write(block, of: transfer, context: context)
                if block.isLast { writeEnd(of: transfer, context: context) }
            case .end:
                writeEnd(of: transfer, context: context)
            case .later:
                break taking
            case .broken:
                // An end, of whatever kind, would make the body look whole.
                context.close(promise: nil)
                return
            }
        }
        let bytesBefore = transfer.bytesInFlight
        context.flush()
        // What the connection took at once leaves room; others on this event loop have their turn before.
        if !transfer.isEnded, bytesBefore >= Self.maximumBytesInFlight, transfer.bytesInFlight < bytesBefore { goOn() }
    }

    private func write(_ block: BodyBlock, of transfer: Transfer, context: ChannelHandlerContext) {
        var bytes = block.bytes
        var end = block.end
        end.bytesSent -= Int64(bytes.readableBytes)
        while let chunk = bytes.readSlice(length: min(bytes.readableBytes, Self.chunkSize)), chunk.readableBytes > 0 {
            end.bytesSent += Int64(chunk.readableBytes)
            // The end of a body of unknown length is written behind it, and a server may answer before it comes.
            end.isWhole = block.isLast && bytes.readableBytes == 0
            transfer.bytesInFlight += chunk.readableBytes
            let promise = context.eventLoop.makePromise(of: Void.self)
            promise.futureResult.assumeIsolated().whenSuccess { [end] in
                self.wasWritten(chunk.readableBytes, upTo: end, of: transfer, context: context)
            }
            context.write(wrapOutboundOut(.body(.byteBuffer(chunk))), promise: promise)
        }
    }

    private func wasWritten(
        _ count: Int, upTo progress: BodyProgress, of transfer: Transfer, context: ChannelHandlerContext
    ) {
        transfer.bytesInFlight -= count
        transfer.progress = progress
        transfer.body.report(.sent(progress))
        write(transfer, context: context)
    }

    private func writeEnd(of transfer: Transfer, context: ChannelHandlerContext) {
        transfer.isEnded = true
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenSuccess {
            transfer.progress.isWhole = true
            transfer.body.report(.sent(transfer.progress))
            if case .sending(let current) = self.state, current === transfer { self.state = .idle }
        }
        context.write(wrapOutboundOut(.end(nil)), promise: promise)
    }
}

// MARK: - The answer

extension BodyHandler {
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head) where head.status.code >= 200:
            context.fireChannelRead(wrapInboundOut(.head(overtaking(head))))
        case .head(let head):
            if head.status == .continue, case .asking(let body, let timer) = state {
                timer.cancel()
                send(body, context: context)
            }
            context.fireChannelRead(data)
        case .body:
            context.fireChannelRead(data)
        case .end:
            let isOvertaken = if case .idle = state { false } else { true }
            context.fireChannelRead(data)
            if isOvertaken { context.close(promise: nil) }
        }
    }

    /// The head of an answer; where the body is still on its way, one that keeps the connection from being used again.
    private func overtaking(_ head: HTTPResponseHead) -> HTTPResponseHead {
        switch state {
        case .idle, .over: return head
        // Behind a success the body goes on as long as the answer does.
        case .sending where head.status.code < 300: break
        case .begun, .asking, .sending: end()
        }
        var head = head
        head.headers.replaceOrAdd(name: "Connection", value: "close")
        return head
    }
}
