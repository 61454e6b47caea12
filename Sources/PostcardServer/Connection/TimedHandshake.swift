#if Server
import HummingbirdCore
import Logging
import NIOCore
import NIOSSL

/// Closes connections that do not get through their TLS handshake. What judges a silent client otherwise is in
/// place only behind it, once it is known which HTTP is spoken.
struct TimedHandshake<Base: ServerChildChannel>: ServerChildChannel {
    let base: Base
    let timeout: Duration

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
        let check = channel.eventLoop.scheduleTask(in: TimeAmount(timeout)) {
            guard try channel.pipeline.syncOperations.nioSSL_tlsVersion() == nil else { return }
            channel.close(promise: nil)
        }
        channel.closeFuture.whenComplete { _ in check.cancel() }
        return base.setup(channel: channel, logger: logger)
    }

    func handle(value: Base.Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}
#endif
