public import HTTPTypes
public import PostcardForm
public import PostcardFoundation

/// An endpoint of an API as a type, with its URL, its form, and its response.
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
/// Responses are decoded on no actor. In a project whose types are on the main actor by default, such as new projects
/// in Xcode 26, declare a response type outside of the endpoint as `nonisolated struct`.
///
/// To send a form to a URL without such a type, call ``UploadClient/upload(_:to:method:headerFields:progress:)``.
public protocol UploadEndpoint: Sendable {
    /// The type that the response is decoded as. With ``NoResponse``, the body of the response is ignored.
    associatedtype Response: Decodable & Sendable

    /// The URL of the API.
    var baseURL: URL { get }

    /// The path of the endpoint below ``baseURL``, as plain text that is percent-encoded where needed.
    var path: String { get }

    /// The query of the URL: a value whose properties become `name=value`. Defaults to `nil`, no query.
    var query: (any Encodable & Sendable)? { get }

    /// The encoder for the names, lists, dates and Booleans of ``query``. By default they are written as in a form, and
    /// `Data` in Base64.
    var queryEncoder: FormEncoder { get }

    /// The request's method. Defaults to POST.
    var method: HTTPRequest.Method { get }

    /// Further header fields. Defaults to none. Header fields that the form determines are ignored.
    var headerFields: HTTPFields { get }

    /// The statuses of success. Defaults to `nil`: those of the client.
    var acceptedStatuses: Set<Int>? { get }

    /// Whether a success that arrives before the whole form was sent counts (see ``ResponseOptions/acceptsEarly``).
    /// Defaults to `nil`: the client's setting is used.
    var acceptsEarly: Bool? { get }

    /// The decoder for the response, with the formats of dates and keys. Defaults to `nil`: the client's
    /// ``ResponseOptions/decoder`` is used.
    var decoder: JSONDecoder? { get }

    /// Makes the form, on no actor. It is called once for each upload, so that all attempts send the same bytes.
    func form() throws -> MultipartForm

    /// Decodes the response, on no actor. By default, the response is decoded as JSON with ``decoder``.
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

    public var acceptsEarly: Bool? { nil }

    public var decoder: JSONDecoder? { nil }

    /// Decodes the body as JSON with the endpoint's decoder, or else with the client's.
    ///
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/decoding``.
    public func decode(_ response: UploadResponse) throws -> Response {
        try response.decode(Response.self, decoder: decoder)
    }

    /// The URL that the form is sent to: the base URL, the path, and the query.
    ///
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/invalidURL`` if the query contains a file;
    ///   `FormEncodingError` if the query has no named properties.
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

    /// Percent-encodes all except the unreserved characters of RFC 3986, even `+`, which many servers read as a space.
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

extension UploadEndpoint where Response == NoResponse {
    /// Ignores the response's body.
    public func decode(_ response: UploadResponse) -> NoResponse { NoResponse() }
}

extension UploadClient {
    /// Sends an endpoint's form and decodes the response.
    ///
    /// ```swift
    /// let pet = try await client.upload(AddPet(name: "초코", photos: photos))
    /// ```
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint.
    ///   - progress: Called with the progress, as by ``upload(_:to:method:headerFields:progress:)``.
    /// - Throws: The errors of ``upload(_:to:method:headerFields:progress:)``. The errors of the endpoint's
    ///   ``UploadEndpoint/form()`` and ``UploadEndpoint/decode(_:)``, unchanged.
    @discardableResult
    public func upload<Endpoint: UploadEndpoint>(
        _ endpoint: Endpoint, progress: ((UploadProgress) -> Void)? = nil
    ) async throws -> Endpoint.Response {
        try await delivering(to: progress) { events in
            try endpoint.decode(try await perform(reportingTo: events) { try UploadJob(endpoint) })
        }
    }

    /// Sends an endpoint's form, and reports every event of the upload. The response of ``UploadEvent/done(_:)`` can be
    /// decoded with ``UploadEndpoint/decode(_:)``.
    public func events<Endpoint: UploadEndpoint>(of endpoint: Endpoint) -> UploadEvents {
        UploadEvents(by: time.clock) { key, events in
            try await perform(under: key, reportingTo: events) { try UploadJob(endpoint) }
        }
    }
}

extension UploadJob {
    init(_ endpoint: some UploadEndpoint) throws {
        self.init(
            .form(try endpoint.form()), url: try endpoint.url(), method: endpoint.method,
            headerFields: endpoint.headerFields)
        acceptedStatuses = endpoint.acceptedStatuses
        acceptsEarly = endpoint.acceptsEarly
    }
}

/// A response type for endpoints with an empty or ignored response body, such as that of a 204.
public struct NoResponse: Decodable, Sendable, Hashable {
    /// Makes an empty response.
    public init() {}

    public init(from decoder: any Decoder) {}
}
