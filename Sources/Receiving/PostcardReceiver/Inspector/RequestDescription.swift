import HTTPTypes
import Hummingbird
import Logging
import PostcardDoctor
import PostcardForm
import PostcardFoundation
import PostcardReception
import PostcardServer

/// The description of a recorded request: the response to `GET /requests/ID`.
struct RequestDescription: Encodable {
    let summary: RequestSummary
    /// The address of the client. For a request through a trusted proxy, the address that the proxy reports.
    let client: String?
    let headers: [[String]]
    let parts: [Part]
    let problems: [Problem]
    let body: Body
    let curl: Curl
    /// The `postcard send` command that sends the parts of the form again; `nil` if some parts are unknown.
    let send: String?
    /// Whether possibly sensitive values are left out.
    let valuesHidden: Bool

    struct Part: Encodable {
        let name: String
        let filename: String?
        let contentType: String?
        let headers: [[String]]
        let headerOffset: Int64
        let offset: Int64
        let size: Int64
        /// The value of a short text field; `nil` for other parts.
        let text: String?
    }

    struct Problem: Encodable, Sendable {
        let code: String
        let severity: String
        /// The part of the request that contains the offset: `head` or `body`.
        let place: String
        let offset: Int64?
        /// The number of wrong bytes, beginning at the offset.
        let length: Int
        let part: Int?
        let message: String
        let fix: String?
        /// The reason why servers refuse or misread the form.
        let reason: String?
        let swift: String?
        /// The bytes around the offset; `nil` if they were not recorded.
        var around: Bytes?
        /// The number of places with the same problem, including this place.
        let count: Int
        /// Further places with the same problem, up to a maximum number.
        let also: [Place]
        /// The problems that this problem causes, grouped by kind.
        let consequences: [Consequence]
        /// The number of caused problems that are missing in `consequences`.
        let otherConsequences: Int
    }

    /// Problems of one kind that another problem causes.
    struct Consequence: Encodable, Sendable {
        let code: String
        /// The message of the first problem of this kind.
        let message: String
        let count: Int
        /// The places of the first problems of this kind.
        let places: [Place]
    }

    struct Place: Encodable, Sendable {
        let offset: Int64
        let part: Int?
    }

    /// Consecutive bytes of the body, with the offset of the first.
    struct Bytes: Encodable, Sendable {
        let offset: Int64
        let base64: Data
    }

    struct Body: Encodable {
        let length: Int64
        /// Whether the receiver read the whole body.
        let complete: Bool
        let first: Bytes?
        let last: Bytes?
    }

    struct Curl: Encodable {
        let line: String
        /// Whether the command sends exactly the bytes of the recorded request.
        let exact: Bool
        /// Whether the command sends all parts of the form. The receiver may not have read all parts of a refused form.
        let complete: Bool
    }

    /// - Parameter showsValues: Whether possibly sensitive values are shown.
    init(_ recorded: RecordedRequest, showsValues: Bool) {
        let request = showsValues ? recorded : recorded.hidingValues
        valuesHidden = !showsValues
        summary = RequestSummary(recorded)
        client = recorded.client?.description
        headers = request.fields.map { [$0.name, $0.value] }
        let notes = request.notes
        parts = notes.parts.map { part in
            Part(
                name: part.name, filename: part.filename, contentType: part.contentType,
                headers: part.fields.map { [$0.name, $0.value] }, headerOffset: part.headerOffset,
                offset: part.offset, size: part.size, text: part.text)
        }
        problems = notes.problems.map { $0.showing(notes.body) }
        let kept = notes.body
        body = Body(
            length: kept.length, complete: kept.isComplete,
            first: kept.first.isEmpty ? nil : Bytes(offset: 0, base64: Data(kept.first)),
            last: kept.last.isEmpty ? nil : Bytes(offset: kept.lastOffset, base64: Data(kept.last)))
        let command = CurlCommand(request)
        curl = Curl(line: command.line, exact: command.isExact, complete: recorded.isReadWhole)
        send = CurlCommand.sendLine(request)
    }

    private enum CodingKeys: String, CodingKey {
        case client, headers, parts, problems, body, curl, send, valuesHidden
    }

    func encode(to encoder: any Encoder) throws {
        try summary.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(client, forKey: .client)
        try container.encode(headers, forKey: .headers)
        try container.encode(parts, forKey: .parts)
        try container.encode(problems, forKey: .problems)
        try container.encode(body, forKey: .body)
        try container.encode(curl, forKey: .curl)
        try container.encodeIfPresent(send, forKey: .send)
        try container.encode(valuesHidden, forKey: .valuesHidden)
    }
}

extension RecordedRequest {
    /// Whether all parts of the form were read and recorded.
    fileprivate var isReadWhole: Bool {
        if case .refused = ending { return false }
        return notes.body.isComplete && notes.parts.count == notes.partCount
    }
}

extension CurlCommand {
    /// The maximum size, in bytes, of a body in the command line, which must be short enough to paste.
    private static let maximumExactBytes = 16 << 10

    /// Makes the command that repeats a request, with the bytes of a small recorded body, or else the form's parts.
    init(_ request: RecordedRequest) {
        self.init(url: "\(request.scheme)://\(request.host)\(request.path)", method: request.method)
        fields = request.fields.filter { !Self.isMasked($0) }
        secretFields = request.fields.filter(Self.isMasked).map(\.name)
        let notes = request.notes
        if let bytes = notes.body.bytes, !bytes.isEmpty, notes.body.isComplete, !notes.body.hidesSecrets,
            bytes.count <= Self.maximumExactBytes
        {
            content = .bytes(bytes)
        } else if !notes.parts.isEmpty {
            content = Self.parts(of: request)
        } else {
            let isEmpty = notes.body.isComplete && notes.body.length == 0
            content = isEmpty || request.method == "GET" || request.method == "HEAD" ? .none : .unknown
        }
    }
}

extension CurlCommand {
    private static func parts(of request: RecordedRequest) -> Content {
        .parts(
            request.notes.parts.map { part in
                if let filename = part.filename {
                    .file(name: part.name, filename: filename, contentType: part.contentType)
                } else {
                    .text(
                        name: part.name, value: part.text == Secrets.mask ? nil : part.text,
                        contentType: part.contentType)
                }
            })
    }

    /// The command line for `postcard send`, which has curl's grammar; `nil` if some parts are unknown.
    static func sendLine(_ request: RecordedRequest) -> String? {
        let parts = request.notes.parts
        guard !parts.isEmpty, parts.count == request.notes.partCount, !parts.contains(where: { $0.name.contains("=") })
        else { return nil }
        var command = CurlCommand(request)
        command.content = self.parts(of: request)
        // `postcard send` does not accept curl's two forms of a header field without a value.
        command.fields.removeAll { $0.value.isEmpty }
        let curl = (["curl"] + options(forURL: command.url)).joined(separator: " ")
        return "postcard send" + command.line.dropFirst(curl.count)
    }

    private static func isMasked(_ field: (name: String, value: String)) -> Bool {
        field.value == Secrets.mask || Secrets.isSecret(field.name)
    }
}

/// The summary of a request in the list of `GET /requests`.
struct RequestSummary: Encodable, Sendable {
    let id: String
    let received: Date
    let method: String
    let path: String
    /// The status of the response; `nil` if the connection was closed before a response was sent.
    let status: Int?
    /// The code of the refusal; `nil` if the request was not refused.
    let code: String?
    /// A short title of the refusal; `nil` if the request was not refused.
    let title: String?
    /// The identifier of the upload that the request created; `nil` if the request created none.
    let upload: String?
    /// The number of bytes of the body that the receiver read.
    let bytes: Int64
    /// The Content-Length of the body, if the receiver read fewer bytes.
    let declaredBytes: Int64?
    let partCount: Int
    let milliseconds: Int

    init(_ request: RecordedRequest) {
        id = String(request.id)
        received = request.received
        method = request.method
        // The list shows no values, except harmless ones.
        path = Secrets.hidingValues(ofPath: request.path)
        status = request.status
        if case .refused(let problem) = request.ending {
            code = problem.code.rawValue
            // For a code without an explanation, PostcardDoctor returns the code as the title. The title of the refusal
            // is used instead.
            let known = FormProblem.Code.known(problem.code.rawValue)?.title
            title = known.flatMap { $0 == problem.code.rawValue ? nil : $0 } ?? problem.title
        } else {
            (code, title) = (nil, nil)
        }
        upload = request.upload?.text
        bytes = request.notes.body.length
        let declared = request.fields.first { $0.name.lowercased() == "content-length" }.flatMap { Int64($0.value) }
        declaredBytes = declared.flatMap { $0 > request.notes.body.length ? $0 : nil }
        partCount = request.notes.partCount
        milliseconds = Int(request.duration / .milliseconds(1))
    }
}

/// Responds to `GET /requests`.
///
/// | request | response |
/// | --- | --- |
/// | `GET /requests` | `{"requests":[entry…]}`, newest first |
/// | `GET /requests/ID` | the entry with header fields, parts, problems, the recorded bytes and a line for curl |
/// | `GET /requests/ID?values=shown` | the same, with possibly sensitive values |
struct RequestReading: Sendable {
    let inspector: RequestInspector
    let budget: ResponseBudget
    /// The store, if other receivers may delete uploads in it; `nil` otherwise.
    let shared: (any UploadStore)?

    private struct Listing: Encodable {
        let requests: [RequestSummary]
    }

    func list(on connection: UploadConnection?) throws -> Response {
        try respond(with: Listing(requests: inspector.requests.map(RequestSummary.init)), on: connection)
    }

    /// Responds to `GET /requests/ID`. Throws ``UploadProblem`` if the request is no longer recorded, or if the store
    /// fails.
    func request(
        id: String?, showsValues: Bool, on connection: UploadConnection?, logger: Logger
    ) async throws -> Response {
        guard let request = id.flatMap({ Int($0) }).flatMap(inspector.request) else {
            throw UploadProblem.requestNotFound
        }
        if let shared, let upload = request.upload {
            let record: UploadRecord?
            do {
                record = try await shared.record(upload)
            } catch {
                logger.error("Could not read an upload", metadata: ["upload": "\(upload)", "error": "\(error)"])
                throw UploadProblem.unreadable
            }
            guard record != nil else {
                inspector.forget(upload)
                throw UploadProblem.requestNotFound
            }
        }
        return try respond(with: RequestDescription(request, showsValues: showsValues), on: connection)
    }

    private func respond(with value: some Encodable, on connection: UploadConnection?) throws -> Response {
        Response(
            status: .ok, headers: HTTPFields(content: "application/json", cacheControl: "no-store"),
            body: try budget.body(of: ByteBuffer(bytes: try JSONEncoder.forResponses.encode(value)), on: connection))
    }
}

extension UploadProblem {
    fileprivate static let requestNotFound = UploadProblem(
        status: 404, code: "not-found", message: "There is no such request, or it is no longer recorded.",
        advice: "GET /requests lists the recorded requests.")
}
