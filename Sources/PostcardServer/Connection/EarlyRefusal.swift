import NIOCore

/// A request that was refused where it was taken apart, so that nobody behind the connection has seen it.
package struct EarlyRefusal: Sendable {
    package let problem: UploadProblem
    /// The first bytes of what came last on the connection: as a rule those of the request.
    package let bytes: [UInt8]

    /// Told of each such request, on the connection's event loop.
    package typealias Observer = @Sendable (EarlyRefusal) -> Void
}

/// Holds what comes on a connection for as long as it is taken apart, and not a moment longer.
final class WireBytes: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private var latest: ByteBuffer?

    /// As long as the heads of usual requests are.
    private static let maximumBytes = 8 << 10

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        latest = unwrapInboundIn(data)
        context.fireChannelRead(data)
        latest = nil
    }

    /// The beginning of what is being taken apart.
    var beginning: [UInt8] { latest.map { Array($0.readableBytesView.prefix(Self.maximumBytes)) } ?? [] }
}

@available(*, unavailable)
extension WireBytes: Sendable {}
