import NIOCore

// MARK: - Closing and timeouts

extension ConnectionHandler {
    func linger(context: ChannelHandlerContext) {
        // A stream's output ends with its response. Closing the output would close the whole stream.
        if !isStream { context.close(mode: .output, promise: nil) }
        quietSince = context.eventLoop.now
        checkSilence(context: context, after: options.drainTimeout)
        context.read()
    }

    func closeNow(context: ChannelHandlerContext) {
        endInput(context: context)
        context.close(mode: .all, promise: nil)
    }

    /// Stops passing on bytes. A reader would mistake the end of the connection for the end of the body.
    func endInput(context: ChannelHandlerContext) {
        if state.silence == .inBody {
            fail(.disconnected(ChannelError.eof), original: ChannelError.eof, context: context)
        }
        state.closes()
    }

    func checkSilence(context: ChannelHandlerContext, after delay: Duration) {
        silenceCheck?.cancel()
        // The delay has a minimum, because a timeout of zero would keep the event loop busy.
        let delay = max(
            min(delay, options.gracePeriod, options.idleTimeout, options.keepAliveTimeout), .milliseconds(10))
        silenceCheck = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(delay)) { [self] in
            silenceCheckDue(context: context)
        }
    }

    /// Closes the connection of a client that does not read its response. An unread response keeps a file and memory in
    /// use.
    func checkReading(context: ChannelHandlerContext) {
        let next = progress.check(
            at: context.eventLoop.now, acknowledged: acknowledgedBytes(context: context), isStream: isStream,
            isClosing: !closePromises.isEmpty)
        if let next { checkSilence(context: context, after: next) } else { closeNow(context: context) }
    }

    /// The number of bytes of the whole connection that the client has acknowledged.
    func acknowledgedBytes(context: ChannelHandlerContext) -> UInt64? {
        (isStream ? context.channel.parent : context.channel).flatMap(SocketProgress.acknowledgedBytes)
    }

    func checkSending(quiet: Duration, context: ChannelHandlerContext) {
        var interruption = RequestInterruption.tooSlow(options.idleTimeout)
        if quiet < options.idleTimeout {
            if let next = rate.check(at: context.eventLoop.now) {
                return checkSilence(context: context, after: min(options.idleTimeout - quiet, next))
            }
            interruption = .belowMinimumRate(options.minimumBytesPerSecond)
        }
        fail(interruption, original: interruption, context: context)
        checkSilence(context: context, after: options.idleTimeout)
    }

    func silenceCheckDue(context: ChannelHandlerContext) {
        guard progress.unsentParts == 0 else { return checkReading(context: context) }
        let now = context.eventLoop.now
        let quiet = quietSince.duration(to: now)
        switch state.silence {
        case .inBody where pausedSince == nil:
            checkSending(quiet: quiet, context: context)
        case .beforeRequests:
            closeUnless(options.idleTimeout - quiet, context: context)
        case .betweenRequests:
            closeUnless(timeForRequest(quiet: quiet, at: now), context: context)
        case .afterLastResponse(let drain):
            closeUnless(drain.time(options.drainTimeout) - quiet, context: context)
        case .inBody, .expected:
            if closePromises.isEmpty {
                checkSilence(context: context, after: options.idleTimeout)
            } else {
                closeNow(context: context)
            }
        }
    }

    /// The remaining time until the client must send the next request.
    func timeForRequest(quiet: Duration, at now: NIODeadline) -> Duration {
        // Once a request has begun, its head must be complete within the idle timeout.
        if let since = wire.incompleteSince { return options.idleTimeout - since.duration(to: now) }
        // A stream has a single request, so the keep-alive timeout does not apply.
        return (isStream ? options.idleTimeout : options.keepAliveTimeout) - quiet
    }

    func closeUnless(_ rest: Duration, context: ChannelHandlerContext) {
        if rest > .zero { checkSilence(context: context, after: rest) } else { closeNow(context: context) }
    }
}
