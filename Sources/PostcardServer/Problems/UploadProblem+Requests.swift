import HTTPTypes
import NIOHTTP1

/// Requests that are refused before anybody looks at what they ask for.
extension UploadProblem {
    static let malformedRequest = UploadProblem(
        status: 400, code: "malformed-request", detail: "This is no HTTP request as RFC 9112 has it.",
        fix: "Look for a wrong Content-Length, a broken chunk, or a header field that is no field.")

    static let unknownMethod = UploadProblem(
        status: 400, code: "malformed-request", detail: "The request line's method is none that HTTP has.",
        fix: "Begin the request with a method in capital letters, such as POST.")

    static let headTooLarge = UploadProblem(
        status: 431, code: "request-head-too-large",
        detail: "The request's address or its header fields are too long, or there are too many fields.",
        fix: "Send fewer and shorter header fields.")

    package static let missingHost = UploadProblem(
        status: 400, code: "malformed-request", detail: "The request has no Host.",
        fix: "Send a Host header field with the server's name.")

    package static let severalHosts = UploadProblem(
        status: 400, code: "malformed-request", detail: "The request has several Hosts.",
        fix: "Send one Host header field.")

    static let trailerFields = UploadProblem(
        status: 400, code: "malformed-request", detail: "Fields follow the body, where nobody heeds them.",
        fix: "Send all header fields before the body.")

    static let unknownTransferEncoding = UploadProblem(
        status: 501, code: "unsupported-transfer-encoding", detail: "The body has a Transfer-Encoding beside chunked.",
        fix: "Send the body as it is, with a Content-Length or in chunks.")

    static let transferEncodingInOldRequest = UploadProblem(
        status: 400, code: "malformed-request", detail: "A request of HTTP/1.0 has a Transfer-Encoding.",
        fix: "Send the body with a Content-Length, or use HTTP/1.1.")

    static let malformedKey = UploadProblem(
        status: 400, code: "malformed-idempotency-key",
        detail: "The request has no or several keys in Idempotency-Key, or one that is none.",
        fix: "Send one key of 1 to 255 visible ASCII characters, such as \"8e03978e-40d5-43e8-bc93-6894a57f9324\".")

    static let keyReused = UploadProblem(
        status: 422, code: "idempotency-key-reused",
        detail: "The Idempotency-Key belongs to an upload with other fields or files.",
        fix: "Use a new key for each upload, and the same key only to send the same form again.")

    /// What an error of the decoder is to who sent the request.
    static func decoding(_ error: any Error) -> UploadProblem {
        switch error {
        case let refusal as RequestRefusal: refusal.problem
        case HTTPParserError.headerOverflow: .headTooLarge
        case HTTPParserError.invalidMethod: .unknownMethod
        default: .malformedRequest
        }
    }
}
