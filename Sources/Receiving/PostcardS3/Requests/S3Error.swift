public import HTTPTypes
import PostcardFoundation

/// The reason why a request to an object store failed.
///
/// ```swift
/// do {
///     _ = try await S3UploadStore.open(bucket)
/// } catch let error as S3Error where error.storeCode == "NoSuchBucket" {
///     // Make the bucket first.
/// }
/// ```
public struct S3Error: PostcardError {
    /// The kind of error; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// The address is not valid for a bucket or an object store.
        public static let unusableAddress = Code(rawValue: "unusable-address")
        /// No credentials were found.
        public static let noCredentials = Code(rawValue: "no-credentials")
        /// The settings of the credentials are invalid.
        public static let unusableCredentials = Code(rawValue: "unusable-credentials")
        /// The store does not answer.
        public static let unreachable = Code(rawValue: "unreachable")
        /// The store responded with an error, whose code is ``S3Error/storeCode``.
        public static let refused = Code(rawValue: "refused")
        /// The response of the store cannot be read.
        public static let unexpectedResponse = Code(rawValue: "unexpected-response")
        /// The store lacks a feature that several receivers with one bucket need.
        public static let unusableStore = Code(rawValue: "unusable-store")
        /// The clocks of this machine and of the store differ.
        public static let clockSkew = Code(rawValue: "clock-skew")
        /// The file is larger than any store accepts.
        public static let fileTooLarge = Code(rawValue: "file-too-large")
    }

    /// The kind of error.
    public let code: Code
    /// A sentence that says what happened, and where.
    public let message: String
    /// A sentence that says what to do; `nil` if nothing helps.
    public let advice: String?
    /// The code in the store's response, such as `NoSuchBucket`; `nil` if the error is not from the store.
    public let storeCode: String?
    /// The status of the response; `nil` if there was none.
    public let status: HTTPResponse.Status?

    init(
        _ code: Code, _ message: String, advice: String? = nil, storeCode: String? = nil,
        status: HTTPResponse.Status? = nil
    ) {
        self.code = code
        self.message = message
        self.advice = advice
        self.storeCode = storeCode
        self.status = status
    }
}

extension S3Error {
    static let noCredentials = S3Error(
        .noCredentials, "There are no credentials for the object store.",
        advice:
            "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write a profile to ~/.aws/credentials.")

    static func unusableCredentials(_ message: String) -> S3Error {
        S3Error(.unusableCredentials, message, advice: "Correct the settings of the AWS command line.")
    }

    static func unusableAddress(_ address: String, _ reason: String) -> S3Error {
        S3Error(
            .unusableAddress, "\(address) is not the address of a bucket. \(reason)",
            advice: "Write it as s3://bucket/path.")
    }

    package static func unreachable(_ endpoint: String, _ error: any Error) -> S3Error {
        S3Error(
            .unreachable, "The object store at \(endpoint) does not answer: \(error)",
            advice: "Check the address, and that the store runs.")
    }

    static func unexpected(_ message: String, status: HTTPResponse.Status? = nil) -> S3Error {
        S3Error(.unexpectedResponse, message, status: status)
    }

    static func changed(_ address: String) -> S3Error {
        S3Error(.refused, "\(address) has changed.", storeCode: "PreconditionFailed", status: 412)
    }

    static func missing(_ address: String) -> S3Error {
        S3Error(.refused, "\(address) is gone.", storeCode: "NoSuchKey", status: 404)
    }

    static func refused(
        _ storeCode: String, _ message: String, status: HTTPResponse.Status, at address: String
    ) -> S3Error {
        let text = message.isEmpty ? "" : ": \(message)"
        return S3Error(
            .refused, "The object store answered \(status.code) \(storeCode) for \(address)\(text)",
            advice: StoreCause(storeCode)?.advice, storeCode: storeCode, status: status)
    }

    private var cause: StoreCause? { storeCode.flatMap(StoreCause.init) }

    /// Whether the same request may succeed later.
    var isTransient: Bool {
        [.unreachable, .unexpectedResponse].contains(code) || [.busy, .alteredBytes].contains(cause)
            || [429, 500, 502, 503, 504].contains(status ?? 0)
    }

    /// Whether the credentials have expired or were replaced.
    var isOfCredentials: Bool { [.endedCredentials, .unknownKey].contains(cause) }

    /// Whether the store has no space left.
    var isFull: Bool { cause == .full || status == 507 }
}

/// The meaning of an error code ("Error responses" in the reference of Amazon S3, and codes of other stores).
private enum StoreCause {
    case unknownKey, wrongSecret, notAllowed, endedCredentials, noBucket, wrongClock, otherRegion, busy, notImplemented
    case full, alteredBytes

    init?(_ code: String) {
        switch code {
        case "InvalidAccessKeyId": self = .unknownKey
        case "SignatureDoesNotMatch": self = .wrongSecret
        case "AccessDenied", "AllAccessDisabled": self = .notAllowed
        case "ExpiredToken", "InvalidToken", "TokenRefreshRequired": self = .endedCredentials
        case "NoSuchBucket": self = .noBucket
        case "RequestTimeTooSkewed": self = .wrongClock
        case "AuthorizationHeaderMalformed", "PermanentRedirect", "AuthorizationQueryParametersError":
            self = .otherRegion
        case "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "OperationAborted",
            "ConditionalRequestConflict":
            self = .busy
        case "NotImplemented": self = .notImplemented
        case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull": self = .full
        case "XAmzContentSHA256Mismatch", "BadDigest": self = .alteredBytes
        default: return nil
        }
    }

    var advice: String {
        switch self {
        case .unknownKey: "The store does not know this key. Check AWS_ACCESS_KEY_ID and the endpoint."
        case .wrongSecret: "Check AWS_SECRET_ACCESS_KEY and the region."
        case .notAllowed: "Allow the key to read, write, list and delete in the bucket."
        case .endedCredentials: "Get new temporary credentials."
        case .noBucket: "Make the bucket, or correct its name."
        case .wrongClock: "Set the clock of this machine, by NTP: it differs from the store's by more than 15 minutes."
        case .otherRegion: "The bucket is in another region. Set AWS_REGION."
        case .busy: "Try again later."
        case .notImplemented: "Use a store that has this."
        case .full: "Make room in the store."
        case .alteredBytes: "The bytes were changed on the way. Try again."
        }
    }
}
