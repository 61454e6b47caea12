public import PostcardFoundation

/// Why a request to an object store failed.
public struct S3Error: Error, Sendable, CustomStringConvertible {
    /// The code that the store sent, such as `NoSuchBucket`, or one of Postcard's own in lower case, such as
    /// `unreachable`.
    public let code: String
    /// What happened, and where.
    public let message: String
    /// What to do, or `nil` if nothing helps.
    public let advice: String?
    /// The status of the response; `nil` if there was none.
    public let status: Int?

    init(_ code: String, _ message: String, advice: String? = nil, status: Int? = nil) {
        self.code = code
        self.message = message
        self.advice = advice
        self.status = status
    }

    public var description: String {
        guard let advice else { return message }
        return message.hasSuffix(".") ? "\(message) \(advice)" : "\(message). \(advice)"
    }
}

extension S3Error: LocalizedError {
    public var errorDescription: String? { message }
    public var recoverySuggestion: String? { advice }
}

extension S3Error {
    static let noCredentials = S3Error(
        "no-credentials", "There are no credentials for the object store.",
        advice:
            "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write a profile to ~/.aws/credentials.")

    static func unusableCredentials(_ message: String) -> S3Error {
        S3Error("unusable-credentials", message, advice: "Correct the settings of the AWS command line.")
    }

    static func unusableAddress(_ address: String, _ reason: String) -> S3Error {
        S3Error(
            "unusable-address", "\(address) is not the address of a bucket. \(reason)",
            advice: "Write it as s3://bucket/path.")
    }

    package static func unreachable(_ endpoint: String, _ error: any Error) -> S3Error {
        S3Error(
            "unreachable", "The object store at \(endpoint) does not answer: \(error)",
            advice: "Check the address, and that the store runs.")
    }

    static func unexpected(_ message: String, status: Int? = nil) -> S3Error {
        S3Error("unexpected-response", message, status: status)
    }

    /// An object has another content than a moment ago.
    static func changed(_ address: String) -> S3Error {
        S3Error("PreconditionFailed", "\(address) has changed.", status: 412)
    }

    /// An object is gone that was there a moment ago.
    static func missing(_ address: String) -> S3Error {
        S3Error("NoSuchKey", "\(address) is gone.", status: 404)
    }

    /// An error that the store sent.
    static func refused(_ code: String, _ message: String, status: Int, at address: String) -> S3Error {
        let text = message.isEmpty ? "" : ": \(message)"
        return S3Error(
            code, "The object store answered \(status) \(code) for \(address)\(text)", advice: advice(for: code),
            status: status)
    }

    private static func advice(for code: String) -> String? {
        switch code {
        case "InvalidAccessKeyId": "The store does not know this key. Check AWS_ACCESS_KEY_ID and the endpoint."
        case "SignatureDoesNotMatch": "Check AWS_SECRET_ACCESS_KEY and the region."
        case "AccessDenied", "AllAccessDisabled":
            "Allow the key to read, write, list and delete in the bucket."
        case "ExpiredToken", "InvalidToken", "TokenRefreshRequired": "Get new temporary credentials."
        case "NoSuchBucket": "Make the bucket, or correct its name."
        case "RequestTimeTooSkewed":
            "Set the clock of this machine, by NTP: it differs from the store's by more than 15 minutes."
        case "AuthorizationHeaderMalformed", "PermanentRedirect", "AuthorizationQueryParametersError":
            "The bucket is in another region. Set AWS_REGION."
        case "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "OperationAborted",
            "ConditionalRequestConflict":
            "Try again later."
        case "NotImplemented": "Use a store that has this."
        case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull": "Make room in the store."
        case "XAmzContentSHA256Mismatch", "BadDigest": "The bytes were changed on the way. Try again."
        default: nil
        }
    }

    /// Whether the same request may succeed later.
    var isTransient: Bool {
        switch code {
        case "unreachable", "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "OperationAborted",
            "ConditionalRequestConflict", "XAmzContentSHA256Mismatch", "BadDigest", "unexpected-response":
            true
        default: [429, 500, 502, 503, 504].contains(status ?? 0)
        }
    }

    /// Whether the credentials have ended or were replaced.
    var isOfCredentials: Bool {
        ["ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"].contains(code)
    }

    /// Whether the store has no room left.
    var isFull: Bool { ["QuotaExceeded", "InsufficientStorage", "XMinioStorageFull"].contains(code) || status == 507 }
}
