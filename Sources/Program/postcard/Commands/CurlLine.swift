import Foundation
import HTTPTypes
import PostcardDoctor
import PostcardForm

/// The output of `send --as-curl`: a curl command that sends the same form.
struct CurlLine {
    private var words: [String] = ["curl"]
    /// The parts of the request that curl cannot send.
    private var losses: [String] = []

    /// Makes the command for the form of a `send` command. Throws `ValidationError` if an option is invalid.
    init(_ command: Send) throws {
        words += CurlCommand.options(forURL: command.target.text)
        let method = try command.options.method()
        if method != .post { add("-X", method.rawValue) }
        for field in command.options.header where !FormOptions.isDetermined(byFormInstead: field) { add("-H", field) }
        if let user = command.options.user { add("-u", user) }
        add(command.connection)
        if command.timeout != 60 {
            words += ["--speed-limit", "1", "--speed-time", "\(Int(command.timeout.rounded(.up)))"]
        }
        if let seconds = command.totalTime { add("-m", "\(seconds)") }
        if command.silent { words.append("-s") }
        if command.retries > 0 { words += ["--retry", "\(command.retries)"] }
        if let rate = command.limitRate { add("--limit-rate", "\(rate.bytes)") }
        words.append(ShellWord.quoted(Array(command.target.text.utf8)))
        for argument in try command.options.arguments() { add(argument) }
        losses += Self.losses(of: command)
    }

    func write() throws {
        if !losses.isEmpty { Terminal.say("postcard: curl cannot do this: \(losses.joined(separator: ", "))") }
        try Terminal.writeLine(words.joined(separator: " "))
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
        if let lowest = connection.lowestTLS { words.append("--\(lowest.rawValue)") }
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
                losses.append("removing metadata of pictures and videos")
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
            // curl would send several files in a nested multipart, which RFC 7578 §4.3 deprecates.
            for part in parts { add(part, named: name) }
        }
    }

    private mutating func add(_ part: FormArgument.Part, named name: [UInt8]) {
        let attributes = Self.attributes(
            type: part.contentType, filename: part.filename, headers: part.headers, encoding: part.encoding)
        switch part.source {
        case .text(let text) where attributes.isEmpty && !name.isEmpty:
            // The value of --form-string is plain text.
            add("--form-string", name + [UInt8(ascii: "=")] + text.bytes)
        case .text(let text): add("-F", name + [UInt8(ascii: "=")] + Self.quoted(text.bytes) + attributes)
        case .file(let path):
            var attributes = attributes
            // curl recognizes fewer types, and only by the extension.
            if part.contentType == nil, let type = Self.type(ofFile: path, named: part.filename) {
                attributes += ";type=\(type)".utf8
            }
            add("-F", name + Array("=@".utf8) + Self.quoted(path.bytes) + attributes)
        case .textOfFile(let path): add("-F", name + Array("=<".utf8) + Self.quoted(path.bytes) + attributes)
        }
    }

    private static func type(ofFile path: ArgumentText, named filename: ArgumentText?) -> MediaType? {
        // curl sends no type for standard input.
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

    /// A word in curl's syntax, in quotes if it contains special characters.
    private static func quoted(_ bytes: [UInt8]) -> [UInt8] {
        let isPlain = bytes.allSatisfy { byte in
            byte >= 0x80 || byte > 0x20 && byte < 0x7F && !#";,"\()@<"#.utf8.contains(byte)
        }
        if isPlain, bytes.first != UInt8(ascii: "=") { return bytes }
        let quote = UInt8(ascii: "\""), backslash = UInt8(ascii: "\\")
        return [quote] + bytes.flatMap { $0 == quote || $0 == backslash ? [backslash, $0] : [$0] } + [quote]
    }

    // MARK: - Words

    private mutating func add(_ option: String, _ value: String) { add(option, Array(value.utf8)) }

    private mutating func add(_ option: String, _ value: [UInt8]) {
        words += [option, ShellWord.quoted(value)]
    }
}

extension FormArgument.Part {
    /// Whether the policy would remove metadata from the part's file.
    fileprivate func loses(_ policy: MetadataPolicy) -> Bool {
        switch source {
        case .file(let path), .textOfFile(let path):
            guard path != "-", let file = try? SentFile(path), let examined = file.examined() else { return false }
            return (try? examined.edits(policy))?.isEmpty == false
        case .text: return false
        }
    }
}
