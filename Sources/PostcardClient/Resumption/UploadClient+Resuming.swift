package import HTTPTypes
package import PostcardForm

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

extension UploadClient {
    /// Sends a body that outlives the process, and resumes an upload that an earlier process began, if the client resumes
    /// uploads.
    ///
    /// - Parameters:
    ///   - layout: The body; the same bytes as in the earlier process.
    ///   - url: Where it is sent.
    ///   - method: The request's method.
    ///   - headerFields: Further header fields.
    ///   - resource: Where the server keeps what an earlier process has sent of the same body, if it does.
    ///   - keep: Writes down where the server keeps it, before any of the body is sent there; `nil` when it is no
    ///     longer there. What it throws ends the upload.
    ///   - progress: Called with how far the upload is.
    @discardableResult
    package func upload(
        _ layout: FormLayout, to url: URL, method: HTTPRequest.Method, headerFields: HTTPFields,
        resuming resource: URL?, keepingResource keep: @escaping @Sendable (URL?) throws -> Void,
        progress: @escaping @Sendable (UploadProgress) -> Void
    ) async throws -> UploadResponse {
        try await perform(telling: Self.steps(to: progress)) {
            var order = UploadOrder(
                layout: { () throws(FormError) in layout }, url: url, method: method, headerFields: headerFields)
            order.resource = resource
            order.keepResource = keep
            return order
        }
    }
}
