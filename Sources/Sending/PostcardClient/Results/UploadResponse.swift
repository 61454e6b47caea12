public import HTTPTypes
import PostcardForm
public import PostcardFoundation
import PostcardWire

/// The response of a server.
public struct UploadResponse: Sendable {
    /// The status, such as 201.
    public let status: HTTPResponse.Status

    /// The header fields. In values, U+034F follows every 30 combining marks in a row (UAX #15 §13), so that comparing
    /// is fast.
    public let headerFields: HTTPFields

    /// The whole body.
    public let body: Data

    /// The number of attempts made, from 1.
    public internal(set) var attempts = 1

    /// The number of the form's bytes handed to the connection when the response was complete.
    public package(set) var bytesSent: Int64 = 0

    /// Whether the response arrived before the whole form was handed to the connection. If so, the server lacks some of
    /// the form.
    public package(set) var isEarly = false

    /// The JSON decoder of the client that received the response; `nil` if no client has received it.
    var decoder: JSONDecoder?

    /// The server's announcement about resuming the upload, from before this response.
    var announcement: ResumptionAnnouncement?

    /// Whether the server has confirmed that it received the bytes that were sent. Either its `Repr-Digest` is that of
    /// the form (see ``ResponseOptions/sendsDigests``), or a ``ResponseOptions/verification`` found no difference. If
    /// so, an app can delete its original.
    public package(set) var isVerified = false

    /// Makes a response. Transports use this initializer.
    public init(status: HTTPResponse.Status, headerFields: HTTPFields, body: Data) {
        self.status = status
        self.headerFields = headerFields.streamSafe
        self.body = body
    }

    /// The body as UTF-8 text. Invalid bytes become U+FFFD, and U+034F follows every 30 combining marks in a row.
    public var text: String {
        String(streamSafe: body)
    }
}

extension HTTPFields {
    /// These header fields with values that are fast to compare.
    var streamSafe: HTTPFields {
        guard contains(where: { CombiningMarks.firstExcess(in: $0.value.utf8) != nil }) else { return self }
        var fields = self
        for index in fields.indices { fields[index].value = fields[index].value.streamSafe }
        return fields
    }
}

extension UploadResponse {
    /// The server's reason for the refusal: the detail or title of an RFC 9457 problem, the message of other JSON, the
    /// code and message of an object store, the title of a web page, or the first lines of text. `nil` if there is
    /// none.
    public var reason: String? {
        let type = headerFields[.contentType]?.lowercased() ?? ""
        let problem = objectStoreProblem
        let found: String? =
            if let problem {
                problem.message.isEmpty ? problem.code : "\(problem.code): \(problem.message)"
            } else if type.contains("json") {
                reasonInJSON
            } else if type.contains("html") {
                titleOfPage
            } else {
                firstLines
            }
        return (found ?? firstLines).map(Self.printable).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Whether the status is the only reason in the response, as in the default pages of web servers.
    var reasonIsStatus: Bool { reason.map { $0.hasPrefix("\(status.code)") } ?? true }

    /// The title of the page without the status; `nil` if nothing is left.
    var titleBesidesStatus: String? {
        guard var title = titleOfPage.map(Self.printable) else { return nil }
        if title.hasPrefix("\(status.code) ") { title.removeFirst("\(status.code) ".count) }
        return title.isEmpty || statusText.hasSuffix(title) ? nil : title
    }

    /// Whether the server refused the form because its bytes changed in transit. Only `postcard serve` reports this
    /// reason.
    var isDigestMismatch: Bool { status == .badRequest && problem?["code"]?.text == "digest-mismatch" }

    /// The status with its standard phrase, because transports give different phrases or none.
    var statusText: String {
        let phrase = Self.usualStatuses.first { $0.code == status.code }?.reasonPhrase ?? status.reasonPhrase
        return phrase.isEmpty ? "\(status.code)" : "\(status.code) \(phrase)"
    }

    /// The beginning of the body, which is safe to print.
    var beginning: String {
        body.isEmpty ? "an empty body" : Self.printable(String(streamSafe: body.prefix(300)))
    }

    private var reasonInJSON: String? {
        // Servers say what is wrong in one of these members of the JSON. Members that are not strings are ignored.
        let json = try? JSON(body)
        let members: [StaticString] = ["detail", "title", "message", "error"]
        return members.lazy.compactMap { json?[$0]?.text }.first
    }

    private var titleOfPage: String? {
        let text = examinedText
        guard let begin = text.firstRange(of: "<title>"), let end = text.firstRange(of: "</title>"),
            begin.upperBound <= end.lowerBound
        else { return nil }
        return String(text[begin.upperBound..<end.lowerBound])
    }

    /// The beginning of the body, which is searched for a reason.
    private var examinedText: String { String(streamSafe: body.prefix(64 << 10)) }

    private var firstLines: String? {
        let lines = examinedText.prefix(2_000).split(whereSeparator: \.isNewline).prefix(3)
        return lines.isEmpty ? nil : lines.joined(separator: " ")
    }

    /// Makes a text safe for terminals and logs: one line without control characters, cut after 300 characters.
    private static func printable(_ text: String) -> String {
        let line = DisplayText.replacingSteering(in: text, with: " ").split(separator: " ").joined(separator: " ")
        return line.count > 300 ? "\(line.prefix(300))…" : line
    }

    /// The usual statuses of form uploads.
    private static let usualStatuses: [HTTPResponse.Status] = [
        .ok, .created, .accepted, .noContent, .movedPermanently, .found, .seeOther, .temporaryRedirect,
        .permanentRedirect, .badRequest, .unauthorized,
        .forbidden, .notFound, .methodNotAllowed, .requestTimeout, .conflict, .lengthRequired, .contentTooLarge,
        .unsupportedMediaType, .unprocessableContent, .tooManyRequests, .internalServerError, .notImplemented,
        .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]
}

extension UploadResponse {
    /// Decodes the body as JSON.
    ///
    /// ```swift
    /// let record = try await client.upload(form, to: url).decode(Record.self)
    /// ```
    ///
    /// JSON with more than 30 combining marks in a row is refused, because comparing it takes quadratic time (UAX #15
    /// §13).
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder, with the formats of dates and keys. Defaults to the client's
    ///     ``ResponseOptions/decoder``.
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/decoding``. Its message shows the beginning of the
    ///   body, and where the JSON differs from what was expected.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: JSONDecoder? = nil
    ) throws(UploadError) -> Value {
        do {
            if let reason = JSON.reasonNotToDecode(body) {
                throw DecodingError.dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: reason))
            }
            return try (decoder ?? self.decoder ?? JSONDecoder()).decode(type, from: body)
        } catch {
            throw .decoding(self, as: "\(type)", error)
        }
    }
}

/// The URL and the limits of an upload resource that a server announced in interim responses 104 (Upload Resumption
/// Supported) to one request (draft-ietf-httpbis-resumable-upload, "Status Code 104").
///
/// The announcement counts even without a final response: the connection may have broken, or a proxy may have taken the
/// interim response for the final one.
struct ResumptionAnnouncement: Sendable {
    /// The URL that responded. The URL of the upload resource may be relative to this URL.
    let url: URL
    /// The URL of the upload resource, as the server wrote it; `nil` if the responses had only limits or progress.
    private(set) var location: String?
    private(set) var limits: UploadLimits?

    /// Reads the announcement in an interim response.
    ///
    /// - Parameter request: The header fields of the request. If they name a version of the draft, a response that does
    ///   not name the same version is ignored, as the draft requires (appendix "Draft Version Identification").
    /// - Returns: `nil` for an ignored response, and for any other interim response.
    init?(
        _ status: HTTPResponse.Status, _ headerFields: HTTPFields, by url: URL, to request: HTTPFields
    ) {
        guard status == .uploadResumptionSupported, let version = ResumptionVersion(of: request),
            request.interopNumber.map({ $0 == headerFields.interopNumber }) ?? true
        else { return nil }
        self.url = url
        location = headerFields[.location]
        limits = headerFields.uploadLimits(in: version)
    }

    /// Adds the announcement in a later response to the same request.
    mutating func add(_ later: ResumptionAnnouncement) {
        location = later.location ?? location
        guard let others = later.limits else { return }
        var limits = limits ?? UploadLimits()
        limits.adopt(others)
        self.limits = limits
    }
}
