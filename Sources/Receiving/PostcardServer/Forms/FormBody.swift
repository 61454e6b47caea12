public import Hummingbird
import PostcardForm
import PostcardReception

/// The body of a request that is read as a form. It sends `100 Continue` to a client that waits for it, and throws an
/// `UploadProblem` if the body breaks off.
public struct FormBody: AsyncSequence, Sendable {
    private let body: RequestBody
    /// The connection of a client that waits for `100 Continue`.
    private let waiting: UploadConnection?

    init(_ request: Request, on connection: UploadConnection?) {
        body = request.body
        waiting = request.head.expectsContinue ? connection : nil
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(body: body.makeAsyncIterator(), waiting: waiting)
    }

    /// Gives the body's chunks.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var body: RequestBody.AsyncIterator
        fileprivate var waiting: UploadConnection?
        private var bytes: Int64 = 0

        fileprivate init(body: RequestBody.AsyncIterator, waiting: UploadConnection?) {
            self.body = body
            self.waiting = waiting
        }

        /// - Throws: `UploadProblem` if the client stops, is too slow, or sends malformed HTTP.
        public mutating func next() async throws -> ByteBuffer? {
            if let connection = waiting.take() { try await connection.askForBody() }
            do {
                let chunk = try await body.next(isolation: #isolation)
                bytes += Int64(chunk?.readableBytes ?? 0)
                return chunk
            } catch let interruption as RequestInterruption {
                throw interruption.problem(at: bytes) ?? interruption as any Error
            }
        }
    }
}
