import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardFoundation

/// The output of `send --json`: the response, or the reason why there is none.
struct SendReport {
    private var object: [String: Any] = [:]

    /// Reports a success. The upload took `duration`.
    init(_ response: UploadResponse, after duration: Duration) {
        add(response)
        add(duration)
        object["attempts"] = response.attempts
    }

    /// Reports a failure, with the response if there was one. The upload took `duration`.
    init(_ error: any Error, after duration: Duration) {
        add(duration)
        let failure = CommandFailure(error)
        var members = ["message": failure.description, "code": Self.code(of: error)]
        members["advice"] = (error as? any LocalizedError)?.recoverySuggestion
        // The upload did not begin, so no server has the form.
        members["delivery"] = UploadError.Delivery.neverArrived.rawValue
        object["attempts"] = 0
        if let error = error as? UploadError {
            members["advice"] = error.advice
            members["delivery"] = error.delivery.rawValue
            object["attempts"] = error.attempts
            if let response = error.response { add(response) }
        }
        object["error"] = members
    }

    private static func code(of error: any Error) -> String {
        switch error {
        case let error as UploadError: return error.formError?.code.rawValue ?? error.code.rawValue
        case let error as FormError: return error.code.rawValue
        default:
            let failure = CommandFailure(error)
            if let code = failure.code { return code }
            switch failure.status {
            case ExitStatus.usage: return "usage"
            case ExitStatus.unreadableInput: return "unreadable-input"
            case ExitStatus.unwritableOutput: return "unwritable-output"
            default: return "failed"
            }
        }
    }

    private mutating func add(_ duration: Duration) {
        object["seconds"] = (duration / .seconds(1) * 1000).rounded() / 1000
    }

    private mutating func add(_ response: UploadResponse) {
        object["status"] = response.status.code
        object["headers"] = response.headerFields.joinedByName
        object["bytesSent"] = response.bytesSent
        object["verified"] = response.isVerified
        if let value = response.jsonValue {
            object["body"] = value
        } else if let text = String(validating: response.body, as: UTF8.self) {
            object["body"] = text
        } else {
            object["body"] = response.body.base64EncodedString()
            object["bodyIsBase64"] = true
        }
    }

    func json() throws -> Data {
        try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
    }
}

extension HTTPFields {
    /// The values by name. The values of fields with the same name are joined by commas, which keeps their meaning
    /// (RFC 9110 §5.3) except for Set-Cookie. Scripts do not need that field.
    var joinedByName: [String: String] {
        Dictionary(map { ($0.name.canonicalName, $0.value) }, uniquingKeysWith: { "\($0), \($1)" })
    }
}

extension UploadResponse {
    /// The media type of the body, in lower case and without parameters.
    var mediaType: String {
        headerFields[.contentType]?.prefix { $0 != ";" && $0 != " " }.lowercased() ?? ""
    }

    /// The JSON of the body; `nil` if the body or its `Content-Type` is not JSON.
    var jsonValue: Any? {
        guard mediaType == "application/json" || mediaType.hasSuffix("+json") else { return nil }
        guard JSON.reasonNotToDecode(body) == nil else { return nil }
        return try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
    }
}

/// Writes the body of a response to standard output: unchanged to a file or pipe, and readable to a terminal.
struct ShownResponse {
    private let response: UploadResponse

    init(_ response: UploadResponse) {
        self.response = response
    }

    /// Whether the body is not text, so that it is not written to a terminal.
    private var isUnreadable: Bool { response.jsonValue == nil && response.body.contains(0) }

    /// Whether writing the response shows it to a user at the terminal.
    var isRead: Bool { Terminal.isInteractive && Terminal.isOutputInteractive && !isUnreadable }

    func write() throws {
        guard Terminal.isOutputInteractive else { return try Terminal.write(response.body) }
        guard !isUnreadable else {
            return Terminal.say("The response of \(response.body.count) bytes is not for a terminal.")
        }
        if let value = response.jsonValue,
            let json = try? JSONSerialization.data(
                withJSONObject: value,
                options: [.fragmentsAllowed, .prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
        {
            return try Terminal.write(json: json)
        }
        if response.mediaType == "text/html" {
            return try Terminal.write(foreign: Self.text(ofPage: response.text).utf8)
        }
        try Terminal.write(foreign: response.body)
    }

    /// The text of a web page, such as a proxy's error page, without tags, scripts, styles and empty lines.
    static func text(ofPage page: String) -> String {
        var text = ""
        var rest = page[...]
        while let tag = rest.firstIndex(of: "<") {
            text += rest[..<tag]
            rest = rest[tag...]
            let name = rest.dropFirst().prefix { $0.isLetter || $0 == "/" || $0 == "!" }.lowercased()
            guard !name.isEmpty else {
                text.append(rest.removeFirst())
                continue
            }
            if let end = ["script": "</script", "style": "</style", "!": rest.hasPrefix("<!--") ? "-->" : ">"][name] {
                rest = rest.range(of: end, options: .caseInsensitive).map { rest[$0.lowerBound...] } ?? ""
            }
            rest = rest.firstIndex(of: ">").map { rest[rest.index(after: $0)...] } ?? ""
            if !inlineTags.contains(name.trimmingCharacters(in: ["/"])) { text += "\n" }
        }
        text += rest
        for (entity, character) in entities { text = text.replacing(entity, with: character) }
        let lines = text.split(whereSeparator: \.isNewline).map { line in
            line.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }
        var shown: [String] = []
        // The title of a page is often also its heading, so repeated lines are left out.
        for line in lines where !line.isEmpty && line != shown.last { shown.append(line) }
        return shown.joined(separator: "\n")
    }

    /// Tags that do not end a line.
    private static let inlineTags: Set = ["a", "b", "i", "em", "strong", "code", "span", "small", "tt", "u"]

    /// The entities of error pages, in the order of replacement. The ampersand is last, because it may begin another
    /// entity.
    private static let entities = [
        ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&"),
    ]
}
