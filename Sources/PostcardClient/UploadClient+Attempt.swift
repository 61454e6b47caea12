import HTTPTypes
import PostcardForm

extension UploadClient {
    /// Sends a request once, watches that bytes move, and holds the answer to a status of 2xx.
    func send(
        _ request: UploadRequest, attempt: Int, telling tell: (@Sendable (UploadEvent) -> Void)?
    ) async throws -> UploadResponse {
        let watch = AttemptWatch(request.url, timeout: idleTimeout, totalBytes: request.body?.contentLength)
        let teller = ProgressTeller(tell, attempt: attempt, interval: progressInterval, of: request.body)
        var response: UploadResponse
        do {
            response = try await carry(request, watchedBy: watch, telling: teller)
        } catch {
            try Task.checkCancellation()
            throw (error as? FormError).map(UploadError.form) ?? error
        }
        response.attempts = attempt
        response.bytesSent = watch.bytesSent
        guard response.status.kind == .successful else { throw UploadError.refused(response, by: request.url) }
        try verification?.verify(response, to: request)
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
            group.addTask { try await transport.send(request) { teller.note($0, of: request, watchedBy: watch) } }
            group.addTask { try await watch.expire(flushing: teller) }
            guard let response = try await group.next() else { throw CancellationError() }
            return response
        }
    }
}
