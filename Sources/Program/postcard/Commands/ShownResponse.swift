import Foundation
import PostcardClient

/// The body of a response on standard output: as it is in a file or a pipe, and in a readable form on a terminal.
struct ShownResponse {
    private let response: UploadResponse

    init(_ response: UploadResponse) {
        self.response = response
    }

    /// Whether the body is not written to a terminal, because it is not text.
    private var isUnreadable: Bool { response.jsonValue == nil && response.body.contains(0) }

    /// Whether someone at a terminal has read the response, once it is written.
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

    /// The text of a web page, such as the error page of a proxy: without tags, scripts and styles, and without empty
    /// lines.
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
        // The title of a page is often its heading, too.
        for line in lines where !line.isEmpty && line != shown.last { shown.append(line) }
        return shown.joined(separator: "\n")
    }

    /// Tags within a line.
    private static let inlineTags: Set = ["a", "b", "i", "em", "strong", "code", "span", "small", "tt", "u"]

    /// The entities that error pages use. The ampersand is the last, because its replacement may begin another one.
    private static let entities = [
        ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&"),
    ]
}
