#if AsyncHTTP
import NIOCore
import NIOHTTP1

/// Tells the expectation of a connection's request what the server answers: AsyncHTTPClient passes over a
/// 100 (Continue).
final class ExpectationHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    private let expectations: Expectations
    /// That of the request under way, until it is decided.
    private var expectation: Expectation?

    init(_ expectations: Expectations) {
        self.expectations = expectations
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        expectation = expectations.takeExpectation(from: &head.headers)
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if let expectation, case .head(let head) = unwrapInboundIn(data) {
            switch head.status.code {
            case 100: expectation.meet()
            case 200...: expectation.refuse()
            default: break
            }
        }
        context.fireChannelRead(data)
    }
}
#endif
