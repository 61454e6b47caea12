import HTTPTypes
import PostcardForm

extension UploadClient {
    /// Sends a request once, and watches that bytes move.
    ///
    /// - Parameters:
    ///   - request: What is sent, and where.
    ///   - times: How long may be waited for what.
    ///   - teller: Who tells how far it is.
    /// - Returns: Whatever the server answers.
    func send(
        _ request: UploadRequest, times: AttemptWatch.Times, telling teller: ProgressTeller
    ) async throws -> UploadResponse {
        let watch = AttemptWatch(request, times: times)
        var response: UploadResponse
        do {
            response = try await carry(request, watchedBy: watch, telling: teller)
        } catch let error as FormError {
            try Task.checkCancellation()
            throw UploadError.form(error)
        } catch var error as UploadError {
            try Task.checkCancellation()
            // A body that did not come to its end is no form to any server.
            if error.delivery == .answerLost, !watch.hasSentWhole { error.delivery = .neverArrived }
            throw error
        } catch {
            try Task.checkCancellation()
            throw error
        }
        response.bytesSent = watch.bytesSent
        response.isEarly = watch.isCutShort
        return response
    }

    /// Has the transport send the request, and ends it where the watch says that its time has run out.
    private func carry(
        _ request: UploadRequest, watchedBy watch: AttemptWatch, telling teller: ProgressTeller
    ) async throws -> UploadResponse {
        // A task apart, because the alarm ends it from outside. It is waited for, and so outlives nobody.
        var request = request
        request.networks = networks
        let task = Task { [transport, request] in
            try await transport.sendMeetingExpectation(request) { teller.note($0, of: request, watchedBy: watch) }
        }
        let look: AttemptAlarm.Look = { now in
            teller.flush()
            let next = watch.look(at: now)
            guard watch.expired == nil else {
                task.cancel()
                return nil
            }
            return [next, teller.flushInterval.map(now.advanced)].compactMap(\.self).min()
        }
        let alarm = look(.now).map { AttemptAlarm.shared.add(at: $0, look) }
        defer {
            if let alarm { AttemptAlarm.shared.remove(alarm) }
            teller.end(watch)
        }
        do {
            return try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
        } catch {
            throw watch.expired ?? error
        }
    }
}
