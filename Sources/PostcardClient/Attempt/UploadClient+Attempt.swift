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
        return response
    }

    /// Lets the transport and the watch run against each other; whichever ends first ends the other.
    private func carry(
        _ request: UploadRequest, watchedBy watch: AttemptWatch, telling teller: ProgressTeller
    ) async throws -> UploadResponse {
        try await withThrowingTaskGroup(of: UploadResponse.self) { group in
            defer {
                teller.end(watch)
                group.cancelAll()
            }
            group.addTask {
                try await transport.sendMeetingExpectation(request) { teller.note($0, of: request, watchedBy: watch) }
            }
            group.addTask { try await watch.expire(flushing: teller) }
            guard let response = try await group.next() else { throw CancellationError() }
            return response
        }
    }
}
