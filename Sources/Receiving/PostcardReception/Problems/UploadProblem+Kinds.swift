import HTTPTypes
import PostcardForm
package import PostcardStore

extension UploadProblem {
    init(_ code: FormProblem.Code, message: String, advice: String, offset: Int64? = nil, limit: Limit? = nil) {
        self.init(
            status: code.status, code: Code(code), message: message, advice: advice, offset: offset, limit: limit)
    }

    static func bodyTooLarge(announced: String, limits: FormLimits) -> UploadProblem {
        UploadProblem(
            .bodyTooLarge,
            message: "The body has \(announced) bytes, and \(limits.maximumBodyBytes) are allowed.",
            advice: "Send fewer or smaller files, or several forms.", offset: 0,
            limit: Limit(name: "maximumBodyBytes", value: limits.maximumBodyBytes))
    }

    package static func recordTooLarge(maximum: Int, partIndex: Int) -> UploadProblem {
        UploadProblem(
            status: 413, code: "record-too-large",
            message: "The text fields and all names have more than \(maximum) bytes together.",
            advice: "Send long texts as files.", partIndex: partIndex,
            limit: Limit(name: "maximumRecordBytes", value: Int64(maximum)))
    }

    static func contradictedType(_ type: String, detected: String, partIndex: Int, offset: Int64) -> UploadProblem {
        UploadProblem(
            status: 415, code: "content-contradicts-type",
            message: "The file is sent as \(type), and its first bytes are those of \(detected).",
            advice: "Send the file with Content-Type: \(detected).", offset: offset, partIndex: partIndex)
    }

    static let repeatedContentType = UploadProblem(
        .malformedContentType,
        message: "The request has more than one Content-Type.", advice: "Send one Content-Type.")

    static let encodedContent = UploadProblem(
        status: 415, code: "unsupported-content-encoding", message: "The body has a Content-Encoding.",
        advice: "Send the body as it is, without compressing it.")

    static func tooSlow(_ timeout: Duration) -> UploadProblem {
        UploadProblem(
            status: 408, code: "too-slow", message: "No bytes of the body arrived for \(timeout).",
            advice: "Send the form again.",
            limit: Limit(name: "idleMilliseconds", value: Int64(timeout / .milliseconds(1))))
    }

    static func belowMinimumRate(_ minimum: Int) -> UploadProblem {
        UploadProblem(
            status: 408, code: "below-minimum-rate",
            message: "The body arrived slower than \(minimum) bytes a second.",
            advice: "Send the form again over a faster connection, or with smaller files.",
            limit: Limit(name: "minimumBytesPerSecond", value: Int64(minimum)))
    }

    static func fileRefused(_ index: Int, reason: String) -> UploadProblem {
        UploadProblem(
            status: 422, code: "file-refused",
            message: "The form's file \(index), counted from 0, is refused: \(reason)",
            advice: "Send the form without this file.")
    }

    static let notScreened = unavailable(
        "screening-failed", message: "A file could not be screened.",
        advice: "Send the form again later; the receiver's log says why.", retryAfterSeconds: 30)

    package static let notProcessed = unavailable(
        "form-not-processed", message: "The form is stored, but the app could not process it.",
        advice: "Repeat the request later, a form with the same Idempotency-Key; the receiver's log says why.",
        retryAfterSeconds: 10)

    static func endedEarly(at offset: Int64) -> UploadProblem {
        UploadProblem(
            offset == 0 ? .bodyNotSent : .truncated,
            message: "The connection ended after \(offset) bytes of the body, before its announced end.",
            advice: "Send the whole body, with its length as the Content-Length.", offset: offset)
    }

    static func bodyTooLong(announced: Int64) -> UploadProblem {
        UploadProblem(
            .contentLengthMismatch, message: "The body has more than the \(announced) bytes of its Content-Length.",
            advice: "Send the length of the body, or send it in chunks without a length.", offset: announced)
    }

    package static let uploadNotFound = UploadProblem(
        status: 404, code: "not-found", message: "There is no such upload.",
        advice: "GET \(UploadRecord.readingPath) lists the uploads.")

    package static let fileNotFound = UploadProblem(
        status: 404, code: "not-found", message: "The upload has no such file.",
        advice: "Its record lists the files; they are counted from 0.")

    /// The refusal if the server has already read the body, so that no bytes reach the form. A client that disconnects
    /// at once looks the same to the receiver, but gets no response in any case.
    static func bodyNotPassed(of count: Int64) -> UploadProblem {
        UploadProblem(
            status: 500, code: "body-not-passed",
            message: "None of the \(count) bytes of the body reached the form.",
            advice: "If the client has sent them, the server has read the body before: pass it on unread.")
    }

    package static let pathNotFound = UploadProblem(
        status: 404, code: "not-found", message: "There is nothing at this path.")

    package static func methodNotAllowed(_ method: String, allowed: [String]) -> UploadProblem {
        UploadProblem(
            status: 405, code: "method-not-allowed", message: "\(method) is not a method of this path.",
            advice: "Use \(allowed.joined(separator: ", ")).", allowedMethods: allowed)
    }

    package static func invalidQuery(_ name: String, expected: String) -> UploadProblem {
        UploadProblem(
            status: 400, code: "invalid-query", message: "The query's \(name) is not \(expected).",
            advice: "Give \(expected), or leave it out.")
    }

    package static func rangeNotSatisfiable(size: Int64) -> UploadProblem {
        UploadProblem(
            status: 416, code: "range-not-satisfiable",
            message: "The file has \(size) bytes, none of them in the range.",
            advice: "Ask for a range that begins before byte \(size).")
    }

    package static func store(_ error: any Error) -> UploadProblem {
        switch (error as? UploadStoreError)?.code {
        case .full?:
            unavailable(
                "store-full", message: "There is no room left to store the form.",
                advice: "Make room on the receiver, then send the form again.", retryAfterSeconds: 60)
        case .keyReused?: .keyReused
        default: storeUnavailable(message: "The form could not be stored.")
        }
    }

    /// The problem of a store that does not work, for its operators.
    package static func unready(_ store: any MaintainedUploadStore, _ error: any Error) -> UploadProblem {
        (error as? UploadStoreError)?.code == .full
            ? .store(error) : storeUnavailable(message: "\(store.dependency) cannot be used to store forms.")
    }

    package static let unreadable = storeUnavailable(message: "What was stored could not be read.")

    package static let notDeleted = storeUnavailable(message: "The upload could not be deleted.")

    private static func storeUnavailable(message: String) -> UploadProblem {
        unavailable(
            "store-unavailable", message: message,
            advice: "Send the request again later; the receiver's log says why.", retryAfterSeconds: 10)
    }

    /// The refusal of a request that may succeed later.
    private static func unavailable(
        _ code: Code, message: String, advice: String, retryAfterSeconds: Int
    ) -> UploadProblem {
        UploadProblem(
            status: 503, code: code, message: message, advice: advice, retryAfterSeconds: retryAfterSeconds)
    }
}

/// Refusals of requests before a route handles them.
extension UploadProblem {
    package static let malformedRequest = UploadProblem(
        status: 400, code: "malformed-request", message: "This is not a valid HTTP request (RFC 9112).",
        advice: "Look for a wrong Content-Length, a malformed chunk, or a malformed header field.")

    package static let unknownMethod = UploadProblem(
        status: 400, code: "malformed-request", message: "The method in the request line is not an HTTP method.",
        advice: "Begin the request with a method in capital letters, such as POST.")

    package static let headTooLarge = UploadProblem(
        status: 431, code: "request-head-too-large",
        message: "The request's address or its header fields are too long, or there are too many fields.",
        advice: "Send fewer and shorter header fields.")

    package static let missingHost = UploadProblem(
        status: 400, code: "malformed-request", message: "The request has no Host.",
        advice: "Send a Host header field with the server's name.")

    package static let severalHosts = UploadProblem(
        status: 400, code: "malformed-request", message: "The request has several Hosts.",
        advice: "Send one Host header field.")

    package static let trailerFields = UploadProblem(
        status: 400, code: "malformed-request", message: "Fields follow the body, where they have no effect.",
        advice: "Send all header fields before the body.")

    package static let unknownTransferEncoding = UploadProblem(
        status: 501, code: "unsupported-transfer-encoding",
        message: "The body has a Transfer-Encoding other than chunked.",
        advice: "Send the body as it is, with a Content-Length or in chunks.")

    package static let transferEncodingInOldRequest = UploadProblem(
        status: 400, code: "malformed-request", message: "An HTTP/1.0 request has a Transfer-Encoding.",
        advice: "Send the body with a Content-Length, or use HTTP/1.1.")

    static func malformedDigest(_ field: String) -> UploadProblem {
        UploadProblem(
            status: 400, code: "malformed-digest", message: "\(field) has no SHA-256 digest of 32 bytes in base64.",
            advice: "Send \(field): sha-256=:…: (RFC 9530), or leave it out.")
    }

    /// - Parameters:
    ///   - field: The header field with the digest.
    ///   - count: The number of bytes that the digest covers.
    ///   - offset: The offset of the first of these bytes in the upload; `nil` for the whole form.
    static func digestMismatch(_ field: String, of count: Int64, at offset: Int64?) -> UploadProblem {
        let bytes = offset.map { "The \(count) bytes from byte \($0)" } ?? "The form's \(count) bytes"
        return UploadProblem(
            status: 400, code: digestMismatchCode, message: "\(bytes) do not match \(field). They changed in transit.",
            advice: "Send the \(offset.map { "bytes from byte \($0)" } ?? "form") again.", offset: offset)
    }

    private static let digestMismatchCode: Code = "digest-mismatch"

    /// Whether the bytes of the request do not match its digest.
    var isDigestMismatch: Bool { code == Self.digestMismatchCode }

    static let malformedKey = UploadProblem(
        status: 400, code: "malformed-idempotency-key",
        message: "Idempotency-Key is empty, repeated or malformed.",
        advice: "Send one key of 1 to 255 visible ASCII characters, such as \"8e03978e-40d5-43e8-bc93-6894a57f9324\".")

    static let keyReused = UploadProblem(
        status: 422, code: "idempotency-key-reused",
        message: "The Idempotency-Key belongs to an upload with other fields or files.",
        advice: "Use a new key for each upload, and the same key only to send the same form again.")
}
