import Crypto
import NIOCore
import PostcardForm
import PostcardFoundation

/// Signs requests by AWS Signature Version 4 ("Authenticating Requests" in the reference of Amazon S3).
struct RequestSigner: Sendable {
    let credentials: S3Credentials
    let region: String
    /// Defaults to `s3`.
    var service = "s3"

    static let algorithm = "AWS4-HMAC-SHA256"
    static let unsignedPayload = "UNSIGNED-PAYLOAD"

    /// The SHA-256 of a payload in lower-case hexadecimal.
    static func hash(_ bytes: some DataProtocol) -> String { SHA256.hash(data: bytes).hexadecimal }

    /// The SHA-256 of bytes in lower-case hexadecimal.
    static func hash(_ bytes: ByteBuffer) -> String {
        bytes.withUnsafeReadableBytes { bytes in
            var hash = SHA256()
            hash.update(bufferPointer: bytes)
            return hash.finalize().hexadecimal
        }
    }

    /// The SHA-256 of nothing.
    static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    /// Adds the fields that sign a request, `Authorization` last.
    ///
    /// - Parameters:
    ///   - payloadHash: The SHA-256 of the body.
    ///   - date: The time of the signature. Stores accept the request for 15 minutes from then on.
    func sign(_ request: inout SignableRequest, payloadHash: String, at date: Date) {
        request.headers.append(("x-amz-content-sha256", payloadHash))
        addAuthorization(to: &request, payloadHash: payloadHash, at: date)
    }

    /// Signs what is in the request, without the field for the payload's hash, which only S3 wants.
    func addAuthorization(to request: inout SignableRequest, payloadHash: String, at date: Date) {
        let time = SigningTime(date)
        request.headers.append(("x-amz-date", time.text))
        if let token = credentials.sessionToken { request.headers.append(("x-amz-security-token", token)) }
        let signature = signature(of: request, payloadHash: payloadHash, at: time)
        request.headers.append(
            (
                "authorization",
                "\(Self.algorithm) Credential=\(credential(at: time)), "
                    + "SignedHeaders=\(request.signedHeaderNames), Signature=\(signature)"
            ))
    }

    /// Adds the parameters with which the request needs no further credentials for a while.
    ///
    /// - Parameter lifetime: Seconds, at most seven days.
    func presign(_ request: inout SignableRequest, lifetime: Int, at date: Date) {
        let time = SigningTime(date)
        request.query += [
            ("X-Amz-Algorithm", Self.algorithm), ("X-Amz-Credential", credential(at: time)), ("X-Amz-Date", time.text),
            ("X-Amz-Expires", "\(lifetime)"), ("X-Amz-SignedHeaders", request.signedHeaderNames),
        ]
        if let token = credentials.sessionToken { request.query.append(("X-Amz-Security-Token", token)) }
        let signature = signature(of: request, payloadHash: Self.unsignedPayload, at: time)
        request.query.append(("X-Amz-Signature", signature))
    }

    /// When something ends that is signed until a time: then, or with the credentials if they end earlier.
    func end(of time: Date) -> Date { min(time, credentials.expires ?? time) }

    /// The signature of a POST policy.
    ///
    /// - Parameter policy: The policy in Base64.
    func signature(ofPolicy policy: String, at date: Date) -> String {
        Self.authenticate(policy, with: key(at: SigningTime(date))).hexadecimal
    }

    /// The scope of a signature with the name of the key, as in `X-Amz-Credential`.
    func credential(at time: SigningTime) -> String { "\(credentials.accessKeyID)/\(scope(at: time))" }

    private func scope(at time: SigningTime) -> String { "\(time.day)/\(region)/\(service)/aws4_request" }

    private func signature(of request: SignableRequest, payloadHash: String, at time: SigningTime) -> String {
        let canonicalHash = Self.hash(Array(request.canonicalText(payloadHash: payloadHash).utf8))
        let text = "\(Self.algorithm)\n\(time.text)\n\(scope(at: time))\n\(canonicalHash)"
        return Self.authenticate(text, with: key(at: time)).hexadecimal
    }

    private func key(at time: SigningTime) -> SymmetricKey {
        var key = SymmetricKey(data: Array("AWS4\(credentials.secretAccessKey)".utf8))
        for text in [String(time.day), region, service, "aws4_request"] {
            key = SymmetricKey(data: Self.authenticate(text, with: key))
        }
        return key
    }

    private static func authenticate(_ text: String, with key: SymmetricKey) -> HMAC<SHA256>.MAC {
        HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key)
    }
}

/// A time as signatures have it, such as `20130524T000000Z`.
struct SigningTime: Sendable {
    let text: String

    init(_ date: Date) {
        let style = Date.ISO8601FormatStyle(
            dateSeparator: .omitted, dateTimeSeparator: .standard, timeSeparator: .omitted)
        text = date.formatted(style)
    }

    var day: Substring { text.prefix(8) }
}
