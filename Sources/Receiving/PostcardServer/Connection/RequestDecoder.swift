import HummingbirdCore
import NIOCore
import NIOHTTP1

/// NIO's request decoder, without the switch to another protocol.
///
/// After a request for an upgrade, NIO's decoder reads nothing more, even if the server does not agree to it. This
/// server never agrees, so it has to ignore the field (RFC 9110 §7.8), and a new decoder reads the next request. The
/// decoder of Hummingbird's pipeline cannot be replaced, so this one is before it and passes the requests to the
/// handler after it.
final class RequestDecoder: ByteToMessageDecoder {
    typealias InboundOut = HTTPServerRequestPart

    private let replaced: ChannelHandlerContext
    private let requestGuard: RequestGuard
    private var decoder = RequestDecoder.makeDecoder()

    /// - Parameters:
    ///   - replaced: The decoder that no longer receives any bytes. The requests are passed to the handler after it.
    ///   - requestGuard: The handler after the replaced decoder. It knows where a request for an upgrade ends.
    init(replacing replaced: ChannelHandlerContext, requestGuard: RequestGuard) {
        self.replaced = replaced
        self.requestGuard = requestGuard
    }

    func decoderAdded(context: ChannelHandlerContext) {
        decoder.decoderAdded(context: replaced)
    }

    func decoderRemoved(context: ChannelHandlerContext) {
        decoder.decoderRemoved(context: replaced)
    }

    func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        guard buffer.readableBytes > 0 else { return .needMoreData }
        let state = try decoder.decode(context: replaced, buffer: &buffer)
        guard requestGuard.takeEndOfUpgrade() else { return state }
        decoder.decoderRemoved(context: replaced)
        decoder = Self.makeDecoder()
        decoder.decoderAdded(context: replaced)
        return .continue
    }

    func decodeLast(
        context: ChannelHandlerContext, buffer: inout ByteBuffer, seenEOF: Bool
    ) throws -> DecodingState {
        while try decode(context: context, buffer: &buffer) == .continue {}
        return try decoder.decodeLast(context: replaced, buffer: &buffer, seenEOF: seenEOF)
    }

    private static func makeDecoder() -> HTTPRequestDecoder {
        let limits = HTTP1Channel.Configuration().httpDecoder
        var configuration = NIOHTTPDecoderLimitConfiguration()
        configuration.maxHeaderFieldSize = limits.maxHeaderFieldSize
        configuration.maxHeaderListSize = limits.maxHeaderListSize
        configuration.maxHeaderFieldCount = limits.maxHeaderFieldCount
        return HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: configuration)
    }
}

@available(*, unavailable)
extension RequestDecoder: Sendable {}
