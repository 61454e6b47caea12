package import HTTPTypes
package import PostcardFoundation
import PostcardWire

extension UploadClient {
    /// How long a server may take to delete what it has of a cancelled upload.
    static let deletionTimeout = Duration.seconds(5)

    /// Has a server delete what it has of an upload that an earlier process began, within five seconds, also if the
    /// task is cancelled (draft-ietf-httpbis-resumable-upload §4.5).
    ///
    /// - Parameters:
    ///   - resource: The upload resource.
    ///   - url: The URL that the form was sent to.
    ///   - headerFields: The header fields of the form's request.
    /// - Returns: Whether the server has deleted it, or had deleted it before.
    @discardableResult
    package func delete(_ resource: URL, of url: URL, headerFields: HTTPFields) async -> Bool {
        let versions = resumption?.versions ?? ResumptionPolicy().versions
        let limits = RequestTimeouts.Limits(
            idle: nil, connect: nil, total: (Self.deletionTimeout, .now.advanced(by: Self.deletionTimeout)))
        let sender = RequestSender(
            client: self, limits: limits, attempt: 1, acceptsEarly: false,
            log: UploadLog(reporting.logger, id: UUID().uuidString), progress: nil)
        // A separate task, because this one may be cancelled.
        return await Task {
            // The upload began with one of the versions.
            for version in versions {
                do {
                    let form = try UploadRequest(
                        url: url, method: .post, headerFields: headerFields, body: nil,
                        maximumResponseBytes: responses.maximumBytes)
                    let deletion = try UploadRequest(
                        url: resource, method: .delete, headerFields: form.resumptionFields(for: resource, version),
                        body: nil, maximumResponseBytes: responses.maximumBytes)
                    _ = try await sender.response(to: deletion, accepting: Set(200..<300), isSecret: true)
                    return true
                } catch let error as UploadError {
                    guard let status = error.response?.status.code else { return false }
                    if status == 404 || status == 410 { return true }
                } catch {
                    return false
                }
            }
            return false
        }.value
    }
}
