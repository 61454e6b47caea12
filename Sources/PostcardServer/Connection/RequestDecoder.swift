import HummingbirdCore
import NIOCore
import NIOHTTP1

/// NIO's decoder of requests, without the switch to another protocol.
///
/// NIO reads nothing more behind a request that asks for an upgrade, whether the server agrees or not. This server
/// never does, so the field is to be ignored (RFC 9110 §7.8) and a new decoder reads the next request. It is put
/// before the decoder of Hummingbird's pipeline, which cannot be replaced, and passes the requests over it.
final class RequestDecoder: ByteToMessageDecoder {
    typealias InboundOut = HTTPServerRequestPart

    private let replaced: ChannelHandlerContext
    private let requestGuard: RequestGuard
    private var decoder = RequestDecoder.makeDecoder()

    /// - Parameters:
    ///   - replaced: The decoder that no longer gets any bytes. The requests go to the handler behind it.
    ///   - requestGuard: That handler, which sees where a request with an upgrade ends.
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
