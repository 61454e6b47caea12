import HTTPTypes
import NIOCore
import PostcardFoundation
import PostcardStore

extension FinalResponse {
    /// The response to a form that became a record.
    ///
    /// - Parameter isAnswer: Whether the response is the app's own answer, and does not show the record.
    init(_ response: FormResponse, isAnswer: Bool, showing record: UploadID, length: Int64) {
        self.init(
            status: response.status, fields: response.headers, body: isAnswer ? response.bytes : nil, length: length,
            record: record)
    }

    /// The response to a form that was refused with no way to continue.
    init(_ problem: UploadProblem, length: Int64) {
        self.init(
            status: problem.status, fields: problem.head.headerFields, body: Data(problem.body.readableBytesView),
            length: length, record: nil)
    }

    /// The same response again.
    ///
    /// - Parameter recordBody: Makes the body that shows a record.
    func response(recordBody: (UploadID) async throws -> FormResponse.Body) async rethrows -> FormResponse {
        var content = FormResponse.Body.bytes(ByteBuffer(), nil)
        if let body {
            content = .bytes(ByteBuffer(bytes: body), nil)
        } else if let record {
            content = try await recordBody(record)
        }
        return FormResponse(status: HTTPResponse.Status(code: status), headers: headerFields, body: content)
    }
}
