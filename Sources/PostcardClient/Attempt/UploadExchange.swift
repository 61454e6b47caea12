import HTTPTypes
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends the requests of one attempt, and goes where the server points.
struct UploadExchange: Sendable {
    var client: UploadClient
    let times: AttemptWatch.Times
    let attempt: Int
    let log: UploadLog
    let teller: ProgressTeller

    /// Sends a request.
    ///
    /// - Parameters:
    ///   - request: What is sent.
    ///   - acceptedStatuses: The statuses that end it well; all others are redirects or refusals.
    ///   - isSecret: Whether its path is known to nobody else, and not to be logged.
    /// - Returns: The answer, and who gave it.
    func response(
        to request: UploadRequest, accepting acceptedStatuses: Set<Int>, isSecret: Bool = false
    ) async throws -> (response: UploadResponse, url: URL) {
        var route = RedirectRoute(request, policy: client.redirectPolicy)
        var bytesSent: Int64 = 0
        while true {
            log.sending(route.request, attempt: attempt, isSecret: isSecret)
            do {
                var response = try await client.send(route.request, times: times, telling: teller)
                log.answered(response)
                // Behind a 303 the form is not sent again: it says as much as a success.
                let isSuccess = acceptedStatuses.contains(response.status.code) || response.status.code == 303
                if isSuccess, response.isEarly, !client.acceptsEarlyAnswers {
                    throw UploadError.answeredEarly(
                        response, by: route.request.url, of: route.request.body?.contentLength)
                }
                bytesSent = max(bytesSent, response.bytesSent)
                response.bytesSent = bytesSent
                if acceptedStatuses.contains(response.status.code) { return (response, route.request.url) }
                try route.follow(response)
            } catch var error as UploadError {
                // Behind a 303 the server has the form, whatever becomes of the page to which it points.
                if route.isAccepted { error.delivery = .accepted }
                error.hasLeftOrigin = route.hasLeftOrigin
                throw error
            }
        }
    }
}
