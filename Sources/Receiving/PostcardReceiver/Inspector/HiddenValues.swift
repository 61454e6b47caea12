import PostcardForm
import PostcardFoundation
import PostcardServer

// No list of secrets is complete, so values are only shown to who asks for them, apart from those that no one minds
// others to see. What is recognized as a secret is not even recorded.

extension RecordedRequest {
    /// The request with its structure, and harmless values alone. Names, sizes and offsets stay.
    var hidingValues: RecordedRequest {
        RecordedRequest(
            id: id, received: received, duration: duration, client: client, method: method, scheme: scheme, host: host,
            path: Secrets.hidingValues(ofPath: path), fields: fields.map(Secrets.hidingValue), contentType: contentType,
            outcome: outcome, notes: notes.hidingValues)
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
    /// The body with its delimiters, the names of header fields and harmless values alone.
    fileprivate var hidingContents: RecordedBody {
        var body = self
        if let delimiter = Self.delimiter(in: runs.first?.bytes ?? []) {
            var scan = SecretScan(delimiter: delimiter, erasesAll: true)
            body.changeRuns { scan.erase(in: &$0.bytes, beginsInSecret: $0.offset > 0) }
            body.hidesSecrets = hidesSecrets || scan.hasErased
        } else {
            // Its punctuation shows what it is instead of a form.
            body.changeRuns { $0.bytes = $0.bytes.map { $0.isOfWord ? UInt8(ascii: "*") : $0 } }
            body.hidesSecrets = hidesSecrets || length > 0
        }
        return body
    }
}

extension UInt8 {
    /// Whether the byte is of a letter or a digit, in UTF-8.
    var isOfWord: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...: true
        default: false
        }
    }
}

extension Secrets {
    /// Header fields whose values say how a message is sent, and nothing of who sends it.
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

    /// Whether the value of a header field is shown without being asked for.
    static func isHarmless(_ name: some StringProtocol) -> Bool {
        name.utf8.count <= 64 && harmlessFields.contains(name.lowercased())
    }

    fileprivate static func hidingValue(_ field: (name: String, value: String)) -> (name: String, value: String) {
        if isHarmless(field.name) { return field }
        // A line of a malformed head that is no header field is all name.
        let name = field.name.prefix { $0.isLetter || $0.isNumber || "-_.".contains($0) }
        return (String(name), name == field.name && field.value.isEmpty ? "" : mask)
    }

    /// A path without the values of its parameters.
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
            // What is encoded in a name may be a value.
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
