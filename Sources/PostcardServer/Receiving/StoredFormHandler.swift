package import HTTPTypes
package import Hummingbird
import Logging

/// What an app does with a stored form before its response is sent. The head and the context are those of the request
/// with the form's last bytes.
package typealias StoredFormHandler<Context> =
    @Sendable (CommittedUpload, HTTPRequest, Context) async throws -> Void

extension CommittedUpload {
    /// Passes the upload to an app. An error that is not a response becomes a 503.
    package func pass<Context: RequestContext>(
        to handler: StoredFormHandler<Context>?, _ head: HTTPRequest, _ context: Context
    ) async throws {
        do {
            try await handler?(self, head, context)
        } catch let error as any HTTPResponseError {
            throw error
        } catch {
            context.logger.error(
                "The app could not process a stored form", metadata: ["upload": "\(record.id)", "error": "\(error)"])
            throw UploadProblem.notProcessed
        }
    }
}
