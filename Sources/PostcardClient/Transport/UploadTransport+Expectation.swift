import HTTPTypes
import PostcardForm

extension UploadTransport {
    /// Sends a request, and once more without its `Expect` where the server answers that it cannot meet that
    /// (RFC 9110 §10.1.1 and §15.5.18).
    func sendMeetingExpectation(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        let response = try await send(request, reporting: report)
        guard response.status == .expectationFailed, request.headerFields[.expect] != nil,
            request.body?.isReplayable ?? true
        else { return response }
        var unquestioned = request
        unquestioned.headerFields[.expect] = nil
        return try await send(unquestioned, reporting: report)
    }
}
