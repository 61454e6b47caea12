public import HTTPTypes
public import PostcardForm

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A place of an API that takes forms, as a type: where it is, what goes there, and what comes back.
///
/// ```swift
/// struct AddPet: UploadEndpoint {
///     struct Response: Decodable, Sendable { let id: String }
///
///     let name: String
///     let photos: [URL]
///     let baseURL = URL(string: "https://api.example.com/v1")!
///     let path = "pets"
///
///     func form() throws -> MultipartForm {
///         var form = MultipartForm()
///         form.append(name, named: "name")
///         form.append(filesAt: photos, named: "petImage")
///         return form
///     }
/// }
///
/// let pet = try await client.upload(AddPet(name: "초코", photos: photos))
/// ```
///
/// Those who don't keep their API as types send a form to a URL:
/// ``UploadClient/upload(_:to:method:headerFields:progress:)``.
public protocol UploadEndpoint: Sendable {
    /// What the answer is read as; ``NoResponse`` where its body is of no interest.
    associatedtype Response: Decodable & Sendable

    /// Where the API is.
    var baseURL: URL { get }

    /// Where in the API this is, as plain text: what a URL cannot hold is percent-encoded.
    var path: String { get }

    /// What stands behind the `?`: a value whose properties become `name=value`; nothing unless given.
    var query: (any Encodable & Sendable)? { get }

    /// How the names, lists, dates and truth values of ``query`` are written: as those of a form, with `Data` in base64.
    var queryEncoder: FormEncoder { get }

    /// POST unless given.
    var method: HTTPRequest.Method { get }

    /// Further header fields; none unless given. Those that the form decides are passed over.
    var headerFields: HTTPFields { get }

    /// The statuses that say that the server has the form; those of the client where it is `nil`, as it is unless given.
    var acceptedStatuses: Set<Int>? { get }

    /// Whether an answer counts that came before the whole form was sent, as ``UploadClient/acceptsEarlyAnswers`` says.
    /// Defaults to `nil`, which means as the client says.
    var acceptsEarlyAnswers: Bool? { get }

    /// Makes the form. It is called once for an upload, so that all attempts send the same bytes under the same
    /// boundary.
    func form() throws -> MultipartForm

    /// Reads the answer: as JSON unless given.
    func decode(_ response: UploadResponse) throws -> Response
}

extension UploadEndpoint {
    public var query: (any Encodable & Sendable)? { nil }

    public var queryEncoder: FormEncoder {
        var encoder = FormEncoder()
        encoder.dataStyle = .base64
        return encoder
    }

    public var method: HTTPRequest.Method { .post }

    public var headerFields: HTTPFields { HTTPFields() }

    public var acceptedStatuses: Set<Int>? { nil }

    public var acceptsEarlyAnswers: Bool? { nil }

    /// Reads the body as JSON.
    ///
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/decoding``.
    public func decode(_ response: UploadResponse) throws -> Response {
        try response.decode(Response.self)
    }

    /// Where the form goes: the base URL, the path, and the query.
    ///
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/invalidURL`` where the query holds a file, and
    ///   `FormEncodingError` where it has no properties with names.
    public func url() throws -> URL {
        let url = path.isEmpty ? baseURL : baseURL.appending(path: path)
        guard let query else { return url }
        let parts = try queryEncoder.encode(query).parts
        let items = try parts.map { part in
            guard case .text(let value) = part.content else {
                throw UploadError.invalidURL(url, "the query's \(part.name.debugDescription) is a file")
            }
            return "\(Self.encoded(part.name))=\(Self.encoded(value))"
        }
        guard !items.isEmpty, var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            return url
        }
        let given = components.percentEncodedQuery.map { $0.isEmpty ? [] : [$0] } ?? []
        components.percentEncodedQuery = (given + items).joined(separator: "&")
        return components.url ?? url
    }

    /// A text as a query holds it: everything but RFC 3986's unreserved characters percent-encoded, the `+` too, which
    /// many servers read as a space.
    private static func encoded(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                encoded += byte < 16 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return encoded
    }
}

/// An answer whose body is of no interest, or empty as that of a 204.
public struct NoResponse: Decodable, Sendable, Hashable {
    public init() {}

    public init(from decoder: any Decoder) {}
}

extension UploadEndpoint where Response == NoResponse {
    /// Does not look at the body.
    public func decode(_ response: UploadResponse) -> NoResponse { NoResponse() }
}

extension UploadClient {
    /// Sends an endpoint's form and reads the answer.
    ///
    /// ```swift
    /// let pet = try await client.upload(AddPet(name: "초코", photos: photos))
    /// ```
    ///
    /// - Parameters:
    ///   - endpoint: What is sent, and where.
    ///   - progress: Told how far the upload is, as by ``upload(_:to:method:headerFields:progress:)``.
    /// - Throws: As that, and what the endpoint's own ``UploadEndpoint/form()`` and ``UploadEndpoint/decode(_:)``
    ///   throw, unchanged.
    @discardableResult
    public func upload<Endpoint: UploadEndpoint>(
        _ endpoint: Endpoint, progress: (@Sendable (UploadProgress) -> Void)? = nil
    ) async throws -> Endpoint.Response {
        let response = try await perform(telling: Self.steps(to: progress)) { try UploadOrder(endpoint) }
        return try endpoint.decode(response)
    }

    /// Sends an endpoint's form, and tells every step of it while it goes on. The answer comes with
    /// ``UploadEvent/done(_:)``, for ``UploadEndpoint/decode(_:)`` to read.
    public func events<Endpoint: UploadEndpoint>(of endpoint: Endpoint) -> UploadEvents {
        UploadEvents { key, tell in try await perform(under: key, telling: tell) { try UploadOrder(endpoint) } }
    }
}

extension UploadOrder {
    init(_ endpoint: some UploadEndpoint) throws {
        self.init(
            form: try endpoint.form(), url: try endpoint.url(), method: endpoint.method,
            headerFields: endpoint.headerFields, acceptedStatuses: endpoint.acceptedStatuses)
        acceptsEarlyAnswers = endpoint.acceptsEarlyAnswers
    }
}
