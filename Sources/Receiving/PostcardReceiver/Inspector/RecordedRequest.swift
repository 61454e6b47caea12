import HTTPTypes
import Hummingbird
import PostcardForm
import PostcardFoundation
import PostcardReception
import PostcardServer

struct RecordedRequest: Sendable {
    enum Ending: Sendable {
        case responded(status: Int, upload: UploadID?)
        case refused(UploadProblem)
        /// The connection was closed before a response was sent.
        case cutOff
    }

    /// The number of the request since the receiver started, counted from 1.
    var id = 0
    let received: Date
    let duration: Duration
    /// The address of the client; `nil` if the address is unknown.
    let client: IPAddress?
    let method: String
    let scheme: String
    let host: String
    /// The path and the query, with secrets masked.
    let path: String
    /// The header fields in their order, with secrets masked.
    let fields: [(name: String, value: String)]
    let contentType: String?
    let ending: Ending
    let notes: RequestRecorder.Notes

    var status: Int? {
        switch ending {
        case .responded(let status, _): status
        case .refused(let problem): problem.status.code
        case .cutOff: nil
        }
    }

    var upload: UploadID? {
        if case .responded(_, let upload) = ending { upload } else { nil }
    }

    /// The approximate size of the request in memory, in bytes.
    var bytes: Int {
        notes.body.pieces.reduce(method.utf8.count + path.utf8.count) { $0 + $1.bytes.count }
            + notes.parts.reduce(0) { $0 + $1.bytes } + notes.problems.reduce(0) { $0 + $1.bytes }
            + fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    }
}

extension RecordedRequest {
    init(
        _ request: Request, on connection: UploadConnection?, scheme: String, received: Date, duration: Duration,
        ending: Ending, notes: RequestRecorder.Notes
    ) {
        let head = request.head
        let host = head.authority.map(Secrets.masked(authority:))
        let fields = head.headerFields.map { field in
            (field.name.rawName, Secrets.masked(field.value, of: field.name.canonicalName))
        }
        self.init(
            received: received, duration: duration, client: connection?.clientAddress,
            method: head.method.rawValue, scheme: scheme, host: host ?? "",
            path: Secrets.masked(path: head.path ?? "/"), fields: (host.map { [("Host", $0)] } ?? []) + fields,
            contentType: head.headerFields[.contentType], ending: ending, notes: notes)
    }
}

extension RecordedRequest {
    /// Makes the record of a malformed request from the lines of its head that can be read.
    init(_ refusal: EarlyRefusal, scheme: String) {
        let lines = String(streamSafe: refusal.bytes).replacing("\r\n", with: "\n")
            .replacing("\r", with: "\n").split(separator: "\n", omittingEmptySubsequences: false)
        let words = lines.first?.split(separator: " ", maxSplits: 2) ?? []
        let fields = Self.fields(lines.dropFirst().prefix { !$0.isEmpty })
        func value(_ name: String) -> String? { fields.first { $0.name.lowercased() == name }?.value }
        self.init(
            received: Date(), duration: .zero, client: refusal.client,
            method: words.first.map(String.init) ?? "", scheme: scheme, host: value("host") ?? "",
            path: words.count > 1 ? Secrets.masked(path: String(words[1])) : "", fields: fields,
            contentType: value("content-type"), ending: .refused(refusal.problem),
            notes: .none(refusedFor: refusal.problem))
    }

    private static func fields(_ lines: ArraySlice<Substring>) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for line in lines {
            let isFolded = line.first == " " || line.first == "\t"
            // A line that continues a header field with a secret is part of the secret.
            let isSecret = isFolded && fields.last?.value == Secrets.mask
            fields.append(isSecret ? ("", Secrets.mask) : field(line))
        }
        return fields
    }

    /// Parses the header field in a line. A malformed line becomes the name of a field without a value.
    private static func field(_ line: Substring) -> (name: String, value: String) {
        let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let name = halves[0]
        let word = name.trimmingPrefix(while: isBlank).prefix { !isBlank($0) }
        guard halves.count == 2 else {
            return Secrets.isSecret(word) ? (String(word), Secrets.mask) : (Secrets.masked(path: String(name)), "")
        }
        return (String(name), Secrets.masked(String(halves[1].trimmingPrefix(while: isBlank)), of: word))
    }

    private static func isBlank(_ character: Character) -> Bool {
        character == " " || character == "\t"
    }
}

struct RecordedPart: Sendable {
    let name: String
    let filename: String?
    let contentType: String?
    /// Whether the part's name is the name of a secret.
    let isSecret: Bool
    /// The header fields in their order, with secrets masked.
    var fields: [(name: String, value: String)]
    /// The offset of the part's header in the body. `offset` is the offset of the part's content.
    let headerOffset: Int64
    let offset: Int64
    var size: Int64 = 0
    /// The value of a short text field; `nil` for other parts. Secrets are masked.
    var text: String?

    init(_ header: PartHeader, isSecret: Bool, contentOffset: Int64) {
        name = header.name
        filename = header.filename
        contentType = header.contentType
        self.isSecret = isSecret
        fields = header.fields.map { ($0.name, Secrets.masked($0.value, of: $0.name)) }
        headerOffset = header.offset
        offset = contentOffset
    }

    /// Records the value of a text field. Secrets are masked.
    mutating func keep(_ value: [UInt8]) {
        let isShown = !isSecret && !SecretScan.isSecret(value[...])
        text = isShown ? String(validating: value, as: UTF8.self)?.streamSafe : Secrets.mask
    }

    /// The approximate size of the part in memory, in bytes.
    var bytes: Int {
        fields.reduce(name.utf8.count + (filename?.utf8.count ?? 0) + (text?.utf8.count ?? 0)) {
            $0 + $1.name.utf8.count + $1.value.utf8.count
        }
    }
}

// No list of secrets is complete. Values are therefore hidden by default, except harmless ones, and only shown to
// clients that ask for them. Recognized secrets are not recorded at all.

extension RecordedRequest {
    /// The request with its structure and harmless values only. Names, sizes and offsets are kept.
    var hidingValues: RecordedRequest {
        RecordedRequest(
            id: id, received: received, duration: duration, client: client, method: method, scheme: scheme, host: host,
            path: Secrets.hidingValues(ofPath: path), fields: fields.map(Secrets.hidingValue), contentType: contentType,
            ending: ending, notes: notes.hidingValues)
    }
}

extension RequestRecorder.Notes {
    fileprivate var hidingValues: RequestRecorder.Notes {
        var notes = self
        notes.body = body.hidingContents
        notes.parts = parts.map(\.hidingValues)
        return notes
    }
}

extension RecordedPart {
    fileprivate var hidingValues: RecordedPart {
        var part = self
        part.fields = fields.map(Secrets.hidingValue)
        if text != nil { part.text = Secrets.mask }
        return part
    }
}

extension RecordedBody {
    /// The body with its delimiters, the names of its header fields, and harmless values only.
    fileprivate var hidingContents: RecordedBody {
        var body = self
        if let delimiter = Self.delimiter(in: runs.first?.bytes ?? []) {
            var scan = SecretScan(delimiter: delimiter, erasesAll: true)
            body.changeRuns { scan.erase(in: &$0.bytes, beginsInSecret: $0.offset > 0) }
            body.hidesSecrets = hidesSecrets || scan.hasErased
        } else {
            // Punctuation is kept, because it reveals which format the body has instead of a form.
            body.changeRuns { $0.bytes = $0.bytes.map { $0.isOfWord ? UInt8(ascii: "*") : $0 } }
            body.hidesSecrets = hidesSecrets || length > 0
        }
        return body
    }
}

extension UInt8 {
    /// Whether the byte is part of a letter or digit in UTF-8.
    var isOfWord: Bool { isLetterOrDigit || self >= 0x80 }
}

extension Secrets {
    /// Header fields whose values describe how a message is sent, and never identify the sender.
    private static let harmlessFields: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "access-control-request-headers",
        "access-control-request-method", "allow", "cache-control", "connection", "content-digest",
        "content-disposition", "content-encoding", "content-language", "content-length", "content-range",
        "content-transfer-encoding", "content-type", "date", "dnt", "expect", "forwarded", "host", "idempotency-key",
        "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "keep-alive",
        "max-forwards", "mime-version", "origin", "pragma", "prefer", "priority", "proxy-connection", "range",
        "repr-digest", "save-data", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user", "te",
        "trailer", "transfer-encoding", "upgrade", "upgrade-insecure-requests", "upload-complete",
        "upload-draft-interop-version", "upload-incomplete", "upload-length", "upload-offset", "user-agent", "via",
        "want-content-digest", "want-repr-digest", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port",
        "x-forwarded-proto", "x-real-ip", "x-request-id", "x-requested-with",
    ]

    /// Whether clients see the value of a header field even if they do not ask for values.
    static func isHarmless(_ name: some StringProtocol) -> Bool {
        name.utf8.count <= 64 && harmlessFields.contains(name.lowercased())
    }

    fileprivate static func hidingValue(_ field: (name: String, value: String)) -> (name: String, value: String) {
        if isHarmless(field.name) { return field }
        // In a malformed head, a line that is not a header field is recorded as a name without a value.
        let name = field.name.prefix { $0.isLetter || $0.isNumber || "-_.".contains($0) }
        return (String(name), name == field.name && field.value.isEmpty ? "" : mask)
    }

    static func hidingValues(ofPath path: String) -> String {
        var shown = String.UnicodeScalarView()
        var isHidden = false
        var isQuery = false
        for scalar in path.unicodeScalars {
            switch scalar {
            case "?", "#": (isQuery, isHidden) = (true, false)
            case "&", ";": isHidden = false
            case "/" where !isQuery: isHidden = false
            case "=" where !isHidden:
                shown.append(scalar)
                shown += mask.unicodeScalars
                isHidden = true
            // These characters may begin a value inside a parameter's name, so the rest of the parameter is masked.
            case "%", "{", "[", "\"", ":", "@":
                guard isQuery, !isHidden else { break }
                shown += mask.unicodeScalars
                isHidden = true
            default: break
            }
            if !isHidden { shown.append(scalar) }
        }
        return String(shown)
    }
}
