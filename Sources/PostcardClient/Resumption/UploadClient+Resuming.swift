package import HTTPTypes
package import PostcardForm

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

extension UploadClient {
    /// Sends a form, and goes on where an earlier process stopped, if the client resumes uploads.
    ///
    /// - Parameters:
    ///   - form: The form; with an earlier one's boundary and files.
    ///   - url: Where it goes.
    ///   - method: The request's method.
    ///   - headerFields: Further header fields.
    ///   - resource: Where the server keeps what an earlier process has sent of the same form; nowhere unless given.
    ///   - keep: Writes down where the server keeps it, before any of the form is sent there; `nil` when it is no
    ///     longer there. What it throws ends the upload.
    ///   - progress: Told how far the upload is.
    @discardableResult
    package func upload(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method, headerFields: HTTPFields,
        resuming resource: URL?, keepingResource keep: @escaping @Sendable (URL?) throws -> Void,
        progress: @escaping @Sendable (UploadProgress) -> Void
    ) async throws -> UploadResponse {
        try await perform(telling: Self.steps(to: progress)) {
            UploadOrder(
                form: form, url: url, method: method, headerFields: headerFields, resource: resource,
                keepResource: keep)
        }
    }
}
