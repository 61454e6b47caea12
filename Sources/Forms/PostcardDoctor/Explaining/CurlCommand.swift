import PostcardForm
import PostcardFoundation

/// A shell command that sends a request again with curl.
///
/// ```swift
/// var command = CurlCommand(url: "http://127.0.0.1:8080/uploads", method: "POST")
/// command.fields = [("X-Trace", "7")]
/// command.content = .parts([.text(name: "message", value: "안녕", contentType: nil)])
/// print(command.line)  // curl http://127.0.0.1:8080/uploads -H 'X-Trace: 7' --form-string 'message=안녕'
/// ```
///
/// Texts may come from untrusted requests. They are quoted so that the shell expands nothing in them, and so that they
/// cannot control the terminal.
package struct CurlCommand: Sendable {
    /// The URL of the request, with scheme and host.
    package var url: String
    package var method: String
    /// The header fields to send, except those that curl sets itself: Host, lengths, codings, Connection, Expect.
    package var fields: [(name: String, value: String)] = []
    /// The names of header fields with unknown or secret values. Shell variables provide the values: `$AUTHORIZATION`
    /// for `Authorization`.
    package var secretFields: [String] = []
    package var content = Content.none

    package enum Content: Sendable {
        case none
        /// These exact bytes. They become part of the command line, so they should be few.
        case bytes([UInt8])
        /// A form whose body curl writes, with a new boundary.
        case parts([Part])
        /// An unknown body, which curl reads from a file named `body`.
        case unknown
    }

    package enum Part: Sendable {
        /// A text field. If `value` is `nil`, curl reads it from a file named after the field, such as `title.txt`.
        case text(name: String, value: String?, contentType: String?)
        /// A file, which curl reads from the current directory.
        case file(name: String, filename: String, contentType: String?)
    }

    /// Makes a command without header fields and without a body.
    package init(url: String, method: String) {
        self.url = url
        self.method = method
    }

    /// The command line, without any line break.
    package var line: String {
        var words = ["curl"] + Self.options(forURL: url)
        if method != impliedMethod { words += ["-X", ShellWord.quoted(method)] }
        words.append(ShellWord.quoted(url))
        for field in fields where isSent(field.name) {
            // Without a value, curl sends no field unless the name ends in a semicolon.
            let text = field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
            words += ["-H", ShellWord.quoted(text)]
        }
        for name in secretFields where Self.isToken(name) {
            words += ["-H", "\"\(name): $\(Self.variable(for: name))\""]
        }
        return prefix + (words + contentWords).joined(separator: " ")
    }

    /// The options that keep curl from expanding characters in a URL and from removing dots from its path.
    package static func options(forURL url: String) -> [String] {
        var options: [String] = []
        if url.utf8.contains(where: { "[]{}".utf8.contains($0) }) { options.append("--globoff") }
        if zip(url.utf8, url.utf8.dropFirst()).contains(where: { $0 == .slash && $1 == UInt8(ascii: ".") }) {
            options.append("--path-as-is")
        }
        return options
    }

    /// Whether the command sends exactly the recorded bytes. `false` for a form or an unknown body.
    package var isExact: Bool {
        switch content {
        case .none, .bytes: true
        case .parts, .unknown: false
        }
    }

    private var impliedMethod: String {
        if case .none = content { "GET" } else { "POST" }
    }

    private var prefix: String {
        if case .bytes(let bytes) = content { "printf -- \(ShellWord.printfFormat(bytes)) | " } else { "" }
    }

    private var contentWords: [String] {
        switch content {
        case .none: []
        case .bytes: withoutType + ["--data-binary", "@-"]
        case .unknown: withoutType + ["--data-binary", "@body"]
        case .parts(let parts): parts.flatMap { $0.words }
        }
    }

    /// The option that keeps curl from adding a Content-Type.
    private var withoutType: [String] {
        fields.contains { $0.name.utf8.isEqualIgnoringCase("content-type") } ? [] : ["-H", "Content-Type:"]
    }

    private func isSent(_ name: String) -> Bool {
        guard Self.isToken(name) else { return false }
        return switch name.lowercased() {
        case "host", "content-length", "transfer-encoding", "connection", "expect", "keep-alive", "te", "trailer",
            "upgrade":
            false
        case "content-type": if case .parts = content { false } else { true }
        default: true
        }
    }

    /// Whether a name is a token (RFC 9110 §5.6.2) that a shell leaves unchanged inside double quotes.
    private static func isToken(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy { $0.isLetterOrDigit || "-_.+~#&*^|'".utf8.contains($0) }
    }

    private static func variable(for name: String) -> String {
        let letters = name.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
        return (letters.first?.isNumber == true ? "_" : "") + String(letters)
    }
}

extension CurlCommand.Part {
    fileprivate var words: [String] {
        switch self {
        case .text(let name, nil, let contentType):
            // curl reads an unknown value from a file.
            [
                "-F",
                ShellWord.quoted(
                    "\(Self.safe(name))=<\(Self.file("\(name).txt"))\(contentType.map(Self.type) ?? "")"),
            ]
        case .text(let name, let value?, let contentType?):
            ["-F", ShellWord.quoted("\(Self.safe(name))=\(CurlWord.quoted(value))\(Self.type(contentType))")]
        case .text(let name, let value?, nil):
            // `--form-string` sends its value literally.
            ["--form-string", ShellWord.quoted("\(name)=\(value)")]
        case .file(let name, let filename, let contentType):
            ["-F", ShellWord.quoted("\(Self.safe(name))=@\(Self.file(filename))\(contentType.map(Self.type) ?? "")")]
        }
    }

    /// The name with its equals signs encoded, because in `-F` the name ends at the first equals sign.
    private static func safe(_ name: String) -> String { name.replacingASCII(["=": "%3D"]) }

    /// The `type` parameter of `-F`; empty if curl would read a filename or another parameter in the type.
    private static func type(_ text: String) -> String {
        guard text.utf8.allSatisfy({ $0.isLetterOrDigit || "!#$&-^_.+/; =".utf8.contains($0) }) else { return "" }
        let lowercased = text.lowercased().filter { $0 != " " }
        let reserved = [";type=", ";filename=", ";headers=", ";encoder=", "=@", "=<"]
        return !reserved.contains(where: lowercased.contains) ? ";type=\(text)" : ""
    }

    /// The file to read from the current directory. If no file can have the name, curl reads a file named `file` and
    /// sends the name in `filename`.
    private static func file(_ filename: String) -> String {
        guard filename.isEmpty || filename == "-" || filename.utf8.contains(where: { $0 == .slash || $0 == 0 }) else {
            return CurlWord.quoted(filename)
        }
        return "file;filename=\(CurlWord.quoted(filename))"
    }
}
