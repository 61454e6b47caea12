import HTTPTypes
package import Hummingbird
import Logging
package import PostcardReception
import PostcardStore

/// The app's handler for a stored form, called before the response. The request and the context are those of the request
/// with the form's last bytes. It returns the app's own answer; `nil` shows the record.
package typealias StoredFormHandler<Context> =
    @Sendable (CommittedUpload, Request, Context) async throws -> Response?

extension CommittedUpload {
    /// The handler of one request for a reception, which knows no context.
    static func handler<Context: RequestContext>(
        _ handler: StoredFormHandler<Context>?, _ request: Request, _ context: Context
    ) -> (@Sendable (CommittedUpload) async throws -> FormResponse?)? {
        guard let handler else { return nil }
        return { upload in try await upload.pass(to: handler, request, context) }
    }

    /// The largest body that an app may answer with, in bytes.
    private static var maximumAnswerBytes: Int { 512 << 10 }

    /// Passes the upload to an app, and collects its answer.
    ///
    /// - Throws: The `UploadProblem` or `HTTPError` of the app, as a problem. A 503 if the app throws another error.
    package func pass<Context: RequestContext>(
        to handler: StoredFormHandler<Context>, _ request: Request, _ context: Context
    ) async throws(UploadProblem) -> FormResponse? {
        do {
            guard let answer = try await handler(self, request, context) else { return nil }
            let collector = BodyCollector(maximumBytes: Self.maximumAnswerBytes)
            try await answer.body.write(collector)
            return FormResponse(status: answer.status, headers: answer.headers, body: .bytes(collector.bytes, nil))
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

/// Collects an answer in memory, where it can be kept.
private final class BodyCollector: ResponseBodyWriter {
    private(set) var bytes = ByteBuffer()
    private let maximumBytes: Int

    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
    }

    func write(_ buffer: ByteBuffer) async throws {
        guard bytes.readableBytes + buffer.readableBytes <= maximumBytes else { throw AnswerTooLarge() }
        bytes.writeImmutableBuffer(buffer)
    }

    func finish(_ trailingHeaders: HTTPFields?) async throws {}

    /// An error of the app, which is logged as the app's other errors are.
    private struct AnswerTooLarge: Error, CustomStringConvertible {
        let description = "The app's answer has more than 512 KiB, which are too many to be kept."
    }
}
