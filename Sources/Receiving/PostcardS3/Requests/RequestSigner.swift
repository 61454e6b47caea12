import Crypto
import NIOCore
import PostcardForm
import PostcardFoundation

/// Signs requests with AWS Signature Version 4 ("Authenticating Requests" in the reference of Amazon S3).
struct RequestSigner: Sendable {
    let credentials: S3Credentials
    let region: String
    /// The service that the signature is for. Defaults to `s3`.
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

    /// The SHA-256 of no bytes.
    static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    /// Adds the fields that sign a request, `Authorization` last. `payloadHash` is the SHA-256 of the body. Stores
    /// accept the request for 15 minutes after `date`.
    func sign(_ request: inout SignableRequest, payloadHash: String, at date: Date) {
        request.headers.append(("x-amz-content-sha256", payloadHash))
        addAuthorization(to: &request, payloadHash: payloadHash, at: date)
    }

    /// Signs the request without adding the field for the payload's hash, which only S3 requires.
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

    /// Adds the parameters that sign the URL of a request, so that anyone can send it for `lifetime` seconds after
    /// `date`. The lifetime is at most seven days.
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

    /// The time at which a signature expires: the given time, or the end of the credentials if that is earlier.
    func end(of time: Date) -> Date { min(time, credentials.expires ?? time) }

    /// Signs a POST policy. `policy` is the policy in Base64.
    func signature(ofPolicy policy: String, at date: Date) -> String {
        Self.authenticate(policy, with: key(at: SigningTime(date))).hexadecimal
    }

    /// The value of `X-Amz-Credential`: the key's name and the scope of the signature.
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

/// A time in the format of signatures, such as `20130524T000000Z`.
struct SigningTime: Sendable {
    let text: String

    init(_ date: Date) {
        let style = Date.ISO8601FormatStyle(
            dateSeparator: .omitted, dateTimeSeparator: .standard, timeSeparator: .omitted)
        text = date.formatted(style)
    }

    var day: Substring { text.prefix(8) }
}

/// The parts of an HTTP request that Signature Version 4 covers.
struct SignableRequest: Sendable {
    var method: String
    /// The host, with its port unless it is the scheme's default, as in the field `Host`.
    var host: String
    /// The path, not percent-encoded, such as `/bucket/a b`.
    var path: String
    /// The parameters, not percent-encoded. A parameter without a value has an empty value.
    var query: [(name: String, value: String)] = []
    /// The header fields, without `Host`. All of them are signed.
    var headers: [(name: String, value: String)] = []

    var encodedPath: String { Self.encode(path, keeping: UInt8(ascii: "/")) }

    /// The percent-encoded parameters, without the question mark.
    var encodedQuery: String {
        query.map { "\(Self.encode($0.name))=\(Self.encode($0.value))" }.joined(separator: "&")
    }

    /// Percent-encodes all characters except the unreserved ones (RFC 3986 §2.3), and except `kept`.
    static func encode(_ text: String, keeping kept: UInt8? = nil) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if byte.isLetterOrDigit || "-._~".utf8.contains(byte) || byte == kept {
                bytes.append(byte)
            } else {
                bytes += "%\([byte].hexadecimal.uppercased())".utf8
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The sorted names of all signed header fields.
    var signedHeaderNames: String { canonicalHeaders.map(\.name).joined(separator: ";") }

    /// The canonical request, whose hash is signed.
    func canonicalText(payloadHash: String) -> String {
        let encoded = query.map { (Self.encode($0.name), Self.encode($0.value)) }.sorted { $0 < $1 }
        let headers = canonicalHeaders
        var text = "\(method)\n\(encodedPath)\n"
        text += encoded.map { "\($0.0)=\($0.1)" }.joined(separator: "&") + "\n"
        for header in headers { text += "\(header.name):\(header.value)\n" }
        return text + "\n\(signedHeaderNames)\n\(payloadHash)"
    }

    private var canonicalHeaders: [(name: String, value: String)] {
        var values: [String: [String]] = ["host": [host]]
        for header in headers {
            // Several spaces in a row count as one.
            let words = header.value.split(whereSeparator: { $0 == " " || $0 == "\t" })
            values[header.name.lowercased(), default: []].append(words.joined(separator: " "))
        }
        return values.map { ($0.key, $0.value.joined(separator: ",")) }.sorted { $0.0 < $1.0 }
    }
}

/// A policy for posting a form to a bucket ("POST Policy" in the reference of Amazon S3).
struct PostPolicy: Sendable {
    var expires: Date
    /// The fields whose values the policy fixes.
    var fields: [(name: String, value: String)]
    /// The fields whose values must begin with a text.
    var beginnings: [(name: String, beginning: String)] = []
    /// The allowed size of the file, in bytes; `nil` for any size.
    var contentLengths: ClosedRange<Int64>?

    /// Returns the fields of a form that meets the policy, without the file.
    func formFields(signedBy signer: RequestSigner, bucket: String, at date: Date) throws -> [(String, String)] {
        let time = SigningTime(date)
        var fields = fields
        fields.append(("x-amz-algorithm", RequestSigner.algorithm))
        fields.append(("x-amz-credential", signer.credential(at: time)))
        fields.append(("x-amz-date", time.text))
        if let token = signer.credentials.sessionToken { fields.append(("x-amz-security-token", token)) }
        var conditions: [Condition] = [.isEqual("bucket", bucket)]
        conditions += fields.map { .isEqual($0.name, $0.value) }
        conditions += beginnings.map { .begins($0.name, $0.beginning) }
        if let contentLengths { conditions.append(.contentLength(contentLengths)) }
        let document = Document(expiration: expires.formatted(.iso8601), conditions: conditions)
        let policy = try JSONEncoder().encode(document).base64EncodedString()
        return fields + [("policy", policy), ("x-amz-signature", signer.signature(ofPolicy: policy, at: date))]
    }

    private struct Document: Encodable {
        let expiration: String
        let conditions: [Condition]
    }

    private enum Condition: Encodable {
        case isEqual(String, String)
        case begins(String, String)
        case contentLength(ClosedRange<Int64>)

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .isEqual(let name, let value):
                var container = encoder.singleValueContainer()
                try container.encode([name: value])
            case .begins(let name, let beginning):
                var container = encoder.singleValueContainer()
                try container.encode(["starts-with", "$\(name)", beginning])
            case .contentLength(let range):
                var container = encoder.unkeyedContainer()
                try container.encode("content-length-range")
                try container.encode(range.lowerBound)
                try container.encode(range.upperBound)
            }
        }
    }
}
