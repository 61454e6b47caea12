package import HTTPTypes
package import Hummingbird
import Logging

/// The app's handler for a stored form, called before the response. The head and the context are those of the request
/// with the form's last bytes.
package typealias StoredFormHandler<Context> =
    @Sendable (CommittedUpload, HTTPRequest, Context) async throws -> Void

extension CommittedUpload {
    /// Passes the upload to an app.
    ///
    /// - Throws: The ``UploadProblem`` or `HTTPError` of the app, as a problem. A 503 if the app throws another error.
    package func pass<Context: RequestContext>(
        to handler: StoredFormHandler<Context>?, _ head: HTTPRequest, _ context: Context
    ) async throws(UploadProblem) {
        do {
            try await handler?(self, head, context)
        } catch let problem as UploadProblem {
            throw problem
        } catch let error as HTTPError {
            throw UploadProblem(error)
        } catch is CancellationError {
            throw .notProcessed
        } catch {
            context.logger.error(
                "The app could not process a stored form", metadata: ["upload": "\(record.id)", "error": "\(error)"])
            throw .notProcessed
        }
    }
}
