import Foundation
import HTTPTypes
import PostcardDoctor
import PostcardForm

/// What `send --as-curl` prints: the command line of curl that sends the same form.
struct CurlLine {
    private var words: [String] = ["curl"]
    /// What curl cannot do.
    private var losses: [String] = []

    /// - Throws: `ValidationError` if an option cannot be understood.
    init(_ command: Send) throws {
        words += CurlCommand.options(forURL: command.url)
        let method = try command.options.method()
        if method != .post { add("-X", method.rawValue) }
        for field in command.options.header { add("-H", Self.header(field)) }
        if let user = command.options.user { add("-u", user) }
        add(command.connection)
        if command.timeout != 60 {
            words += ["--speed-limit", "1", "--speed-time", "\(Int(command.timeout.rounded(.up)))"]
        }
        if command.retries > 0 { words += ["--retry", "\(command.retries)"] }
        if let rate = command.limitRate { add("--limit-rate", "\(rate.bytes)") }
        add(Self.shellWord(Array(command.url.utf8)))
        for argument in try command.options.arguments() { add(argument) }
        losses += Self.losses(of: command)
    }

    func write() throws {
        if !losses.isEmpty { Terminal.say("postcard: curl cannot do this: \(losses.joined(separator: ", "))") }
        try Terminal.writeLine(words.joined(separator: " "))
    }

    /// Without a value, curl sends no field unless the name ends in a semicolon.
    private static func header(_ field: String) -> String {
        guard let colon = field.firstIndex(of: ":") else { return field }
        let isEmpty = field[field.index(after: colon)...].allSatisfy(\.isWhitespace)
        return isEmpty ? "\(field[..<colon]);" : field
    }

    private mutating func add(_ connection: TransportOptions) {
        if connection.insecure { words.append("-k") }
        let values: [(String, String?)] = [
            ("--cacert", connection.cacert), ("--cert", connection.cert), ("--key", connection.key),
            ("-x", connection.proxy), ("--connect-timeout", connection.connectTimeout.map { "\($0)" }),
        ]
        for (option, value) in values { if let value { add(option, value) } }
        for resolution in connection.resolve { add("--resolve", resolution) }
        if let version = connection.version { words.append(version == .http1 ? "--http1.1" : "--http2") }
    }

    private static func losses(of command: Send) -> [String] {
        let options = command.options
        var losses = [
            ("--fit", options.fit != nil), ("--max-edge", options.maxEdge != nil), ("--crlf", options.crlf),
            ("--fields-first (change the order of the parts)", options.fieldsFirst), ("--resumable", command.resumable),
            ("--digests", command.digests), ("--verify", command.verify), ("--json", command.json),
            ("--accept-early-answer", command.acceptsEarlyResponse),
            ("--answer-timeout", command.responseTimeout != nil),
        ].filter(\.1).map(\.0)
        if options.metadata != .asIs, let arguments = try? options.arguments() {
            let policy = options.metadata?.policy ?? .withoutLocation
            if arguments.flatMap(\.parts).contains(where: { $0.loses(policy) }) {
                losses.append("removing positions and other metadata of pictures and videos")
            }
        }
        return losses
    }

    // MARK: - Parts

    private mutating func add(_ argument: FormArgument) {
        let name = argument.name?.bytes ?? []
        switch argument.content {
        case .groupEnd: add("-F", "=)")
        case .groupStart(let type, let headers):
            add("-F", name + Array("=(".utf8) + Self.attributes(type: type, headers: headers))
        case .parts(let parts):
            // curl would put several files into one part, which RFC 7578 §4.3 retired.
            for part in parts { add(part, named: name) }
        }
    }

    private mutating func add(_ part: FormArgument.Part, named name: [UInt8]) {
        let attributes = Self.attributes(
            type: part.contentType, filename: part.filename, headers: part.headers, encoding: part.encoding)
        switch part.source {
        case .text(let text) where attributes.isEmpty && !name.isEmpty:
            // In --form-string nothing has a meaning.
            add("--form-string", name + [UInt8(ascii: "=")] + text.bytes)
        case .text(let text): add("-F", name + [UInt8(ascii: "=")] + Self.quoted(text.bytes) + attributes)
        case .file(let path):
            var attributes = attributes
            // curl knows fewer types, and only by the extension.
            if part.contentType == nil, let type = Self.type(ofFile: path, named: part.filename) {
                attributes += ";type=\(type)".utf8
            }
            add("-F", name + Array("=@".utf8) + Self.quoted(path.bytes) + attributes)
        case .textOfFile(let path): add("-F", name + Array("=<".utf8) + Self.quoted(path.bytes) + attributes)
        }
    }

    private static func type(ofFile path: ArgumentText, named filename: ArgumentText?) -> MediaType? {
        // curl names no type for standard input.
        if path == "-" { return (filename?.description).flatMap(MediaType.forExtension(of:)) ?? .octetStream }
        guard let file = try? SentFile(path) else { return nil }
        return MediaType.forFile(
            named: (filename ?? file.name).description, firstBytes: file.examined()?.firstBytes ?? [])
    }

    private static func attributes(
        type: MediaType?, filename: ArgumentText? = nil, headers: FormArgument.Headers, encoding: ContentEncoding? = nil
    ) -> [UInt8] {
        var text: [UInt8] = []
        if let type { text += ";type=\(type)".utf8 }
        if let filename { text += ";filename=".utf8 + quoted(filename.bytes) }
        for field in headers.fields {
            text += ";headers=".utf8 + quoted(Array("\(field.name.rawName): \(field.value)".utf8))
        }
        for file in headers.files { text += ";headers=@".utf8 + quoted(file.bytes) }
        if let encoding { text += ";encoder=\(encoding.rawValue)".utf8 }
        return text
    }

    /// A word of curl's grammar. It is in quotes if a character of it would have a meaning.
    private static func quoted(_ bytes: [UInt8]) -> [UInt8] {
        let isPlain = bytes.allSatisfy { byte in
            byte >= 0x80 || byte > 0x20 && byte < 0x7F && !#";,"\()@<"#.utf8.contains(byte)
        }
        if isPlain, bytes.first != UInt8(ascii: "=") { return bytes }
        let quote = UInt8(ascii: "\""), backslash = UInt8(ascii: "\\")
        return [quote] + bytes.flatMap { $0 == quote || $0 == backslash ? [backslash, $0] : [$0] } + [quote]
    }

    // MARK: - The shell

    private mutating func add(_ words: String...) {
        self.words += words.enumerated().map { index, word in
            index == 0 ? word : Self.shellWord(Array(word.utf8))
        }
    }

    private mutating func add(_ option: String, _ value: [UInt8]) {
        words += [option, Self.shellWord(value)]
    }

    /// One word of a POSIX shell's command line, for any bytes: what a terminal cannot show is written by `printf`.
    static func shellWord(_ bytes: [UInt8]) -> String {
        let plain = Set("-_./:@%+,=".utf8)
        let isPlain = bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"):
                true
            default: plain.contains(byte)
            }
        }
        if isPlain, !bytes.isEmpty { return String(decoding: bytes, as: UTF8.self) }
        var word = ""
        var shown = ""
        var hidden = ""
        func endShown() {
            if !shown.isEmpty { word += "'\(shown)'" }
            shown = ""
        }
        func endHidden() {
            // No such piece ends in a line break, which the shell would remove.
            if !hidden.isEmpty { word += "\"$(printf '\(hidden)')\"" }
            hidden = ""
        }
        for (scalar, bytes) in scalars(of: bytes) {
            if let scalar, scalar == "\n" || Terminal.printable(String(scalar)) == String(scalar) {
                endHidden()
                shown += scalar == "'" ? #"'\''"# : String(scalar)
            } else {
                endShown()
                hidden += bytes.map { "\\" + String(String(0o1000 + Int($0), radix: 8).dropFirst()) }.joined()
            }
        }
        endShown()
        endHidden()
        return word.isEmpty ? "''" : word
    }

    /// The characters of a text, with their bytes; `nil` for a byte that is not UTF-8.
    private static func scalars(of bytes: [UInt8]) -> [(Unicode.Scalar?, [UInt8])] {
        var result: [(Unicode.Scalar?, [UInt8])] = []
        var rest = bytes[...]
        while let first = rest.first {
            let count = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
            let piece = Array(rest.prefix(count))
            if let text = String(validating: piece, as: UTF8.self), text.unicodeScalars.count == 1 {
                result.append((text.unicodeScalars.first, piece))
                rest = rest.dropFirst(count)
            } else {
                result.append((nil, [first]))
                rest = rest.dropFirst()
            }
        }
        return result
    }
}

extension FormArgument.Part {
    /// Whether the policy removes any of the part's file.
    fileprivate func loses(_ policy: MetadataPolicy) -> Bool {
        guard case .file(let path) = source, path != "-", let file = try? SentFile(path) else { return false }
        return file.examined()?.loses(policy) ?? false
    }
}
