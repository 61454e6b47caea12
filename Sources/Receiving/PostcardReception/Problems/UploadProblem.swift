public import HTTPTypes
package import NIOCore
public import PostcardForm
package import PostcardFoundation
import PostcardStore
import PostcardWire

/// Why a request is refused. Its JSON is the body of the response (RFC 9457).
public struct UploadProblem: PostcardError, Hashable {
    /// The HTTP status of the response.
    public var status: HTTPResponse.Status { facts.status }
    /// The kind of problem: a `FormProblem.Code` or a receiver's own code. Codes are stable, so scripts can match them.
    public var code: Code { facts.code }
    /// A sentence that describes the problem of this request: the member `detail` of the JSON.
    public var message: String { facts.message }
    /// A sentence that says what to do instead.
    public var advice: String? {
        get { facts.advice }
        set { facts.advice = newValue }
    }
    /// The offset of the first wrong byte in the body; `nil` if no byte is wrong.
    public var offset: Int64? {
        get { facts.offset }
        set { facts.offset = newValue }
    }
    /// The index of the part with the problem, from 0; `nil` if the problem is not in a part.
    public var partIndex: Int? {
        get { facts.partIndex }
        set { facts.partIndex = newValue }
    }
    /// The limit that the request exceeds; `nil` if it exceeds no limit.
    public var limit: Limit? {
        get { facts.limit }
        set { facts.limit = newValue }
    }
    /// All size limits of the receiver, for a 413, so that a client learns all of them at once.
    public var limits: [Limit] {
        get { facts.limits }
        set { facts.limits = newValue }
    }
    /// The number of seconds to wait before the request is sent again; `nil` for no advice.
    public var retryAfterSeconds: Int? {
        get { facts.retryAfterSeconds }
        set { facts.retryAfterSeconds = newValue }
    }
    /// The methods that the path allows, for a 405.
    public var allowedMethods: [String] {
        get { facts.allowedMethods }
        set { facts.allowedMethods = newValue }
    }
    /// How to authenticate, for a 401: the value of `WWW-Authenticate` (RFC 9110 §11.6.1).
    public var challenge: String? {
        get { facts.challenge }
        set { facts.challenge = newValue }
    }
    /// Whether the refusal is caused by how much clients use, and not by the content of the request.
    package var isOfShare: Bool { facts.isOfShare }
    /// Additional JSON members of the refusal of a resumable request.
    var resumption: Resumption {
        get { facts.resumption }
        set { facts.resumption = newValue }
    }

    private struct Facts: Hashable {
        let status: HTTPResponse.Status
        let code: Code
        let message: String
        var advice: String?
        var offset: Int64?
        var partIndex: Int?
        var limit: Limit?
        var limits: [Limit] = []
        var retryAfterSeconds: Int?
        var allowedMethods: [String] = []
        var challenge: String?
        var isOfShare = false
        var resumption = Resumption()
    }

    /// The content of a problem, stored as one pointer, because each asynchronous function reserves space for problems.
    private indirect enum Storage: Hashable {
        case facts(Facts)
    }

    private var storage: Storage

    private var facts: Facts {
        get {
            switch storage {
            case .facts(let facts): facts
            }
        }
        set { storage = .facts(newValue) }
    }

    /// The kind of problem: that of a `FormProblem`, or one of the server's or the app's own.
    public struct Code: PostcardErrorCode, ExpressibleByStringLiteral {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public init(stringLiteral word: String) {
            self.init(rawValue: word)
        }

        /// Makes the code of a problem that the form parser found.
        public init(_ code: FormProblem.Code) {
            self.init(rawValue: code.rawValue)
        }
    }

    /// A limit that a request exceeds.
    public struct Limit: Sendable, Hashable, Encodable {
        /// The name of the limit.
        public let name: String
        /// The maximum, as a number of bytes, milliseconds or items.
        public let value: Int64

        /// Makes a limit for an app's own refusals.
        public init(name: String, value: Int64) {
            self.name = name
            self.value = value
        }
    }

    /// Makes a problem for an app's own refusals.
    public init(status: HTTPResponse.Status, code: Code, message: String, advice: String? = nil) {
        storage = .facts(Facts(status: status, code: code, message: message, advice: advice))
    }

    init(
        status: HTTPResponse.Status, code: Code, message: String, advice: String?, offset: Int64? = nil,
        partIndex: Int? = nil, limit: Limit? = nil, retryAfterSeconds: Int? = nil, allowedMethods: [String] = [],
        challenge: String? = nil, isOfShare: Bool = false, resumption: Resumption = Resumption()
    ) {
        storage = .facts(
            Facts(
                status: status, code: code, message: message, advice: advice, offset: offset, partIndex: partIndex,
                limit: limit, retryAfterSeconds: retryAfterSeconds, allowedMethods: allowedMethods,
                challenge: challenge, isOfShare: isOfShare, resumption: resumption))
    }

    /// Makes a problem from a problem that the form parser found.
    public init(_ problem: FormProblem) {
        self.init(
            status: problem.status, code: Code(problem.code), message: problem.message, advice: problem.advice,
            offset: problem.offset, partIndex: problem.partIndex,
            limit: problem.limit.map { Limit(name: $0.name, value: $0.value) })
    }

    /// The code, written as words.
    public var title: String {
        let words = code.rawValue.replacing("-", with: " ")
        return words.prefix(1).uppercased() + words.dropFirst()
    }

    public var description: String { advised("\(message) (\(status.code) \(code))") }
}

extension UploadProblem: Encodable {
    private enum Key: String, CodingKey {
        case type, title, status, detail, code, offset, part, limit, limits
        case advice = "fix"
        case expectedOffset = "expected-offset"
        case providedOffset = "provided-offset"
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(resumption.type?.uri ?? "urn:postcard:problem:\(code)", forKey: .type)
        try container.encode(title, forKey: .title)
        try container.encode(status.code, forKey: .status)
        try container.encode(message, forKey: .detail)
        try container.encode(code.rawValue, forKey: .code)
        try container.encodeIfPresent(offset, forKey: .offset)
        try container.encodeIfPresent(partIndex, forKey: .part)
        try container.encodeIfPresent(advice, forKey: .advice)
        try container.encodeIfPresent(limit, forKey: .limit)
        if !limits.isEmpty { try container.encode(limits, forKey: .limits) }
        try container.encodeIfPresent(resumption.expectedOffset, forKey: .expectedOffset)
        try container.encodeIfPresent(resumption.providedOffset, forKey: .providedOffset)
    }
}

extension UploadProblem {
    /// Makes a problem from an error of the form decoder.
    public init(_ error: FormDecodingError) {
        self.init(
            status: error.status, code: Code(rawValue: error.code.rawValue), message: error.message,
            advice: error.advice, offset: error.offset, partIndex: error.partIndex)
    }

    /// Makes the refusal for an error that a form's handler throws; `nil` for an unrelated error.
    package init?(anyOf error: any Error) {
        switch error {
        case let problem as UploadProblem: self = problem
        case let problem as FormProblem: self.init(problem)
        case let error as FormDecodingError: self.init(error)
        case let error as UploadStoreError: self = .store(error)
        default: return nil
        }
    }
}

extension UploadProblem {
    /// The head of the response: `application/problem+json`, and the header fields that its status needs.
    package var head: HTTPResponse {
        var fields = HTTPFields(content: "application/problem+json", cacheControl: "no-store")
        for field in resumption.fields { fields[field.name] = field.value }
        if status == .methodNotAllowed { fields[.allow] = allowedMethods.joined(separator: ", ") }
        fields[.wwwAuthenticate] = challenge
        fields[.retryAfter] = retryAfterSeconds.map(String.init)
        return HTTPResponse(status: status, headerFields: fields)
    }

    package var body: ByteBuffer {
        // Strings and integers always encode. If encoding fails, the response has no body.
        var body = ByteBuffer(bytes: (try? JSONEncoder.forResponses.encode(self)) ?? Data())
        body.writeString("\n")
        return body
    }
}

extension JSONEncoder {
    /// The encoder for responses: without line breaks, with sorted keys, and with times in ISO 8601.
    package static var forResponses: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return encoder
    }
}
