import ArgumentParser

/// A text of the command line: usually UTF-8, but any bytes without a NUL are possible.
struct ArgumentText: Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    let bytes: [UInt8]

    init(_ bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
    }

    init(stringLiteral text: String) {
        bytes = Array(text.utf8)
    }

    /// The text; `nil` if it is not UTF-8.
    var text: String? { String(validating: bytes, as: UTF8.self) }

    /// The text, with U+FFFD for what is not UTF-8.
    var description: String { String(decoding: bytes, as: UTF8.self) }

    var isEmpty: Bool { bytes.isEmpty }
}

/// The value of `-F` or `--form-string`: its bytes, in a form that the argument parser passes on.
///
/// The parser knows only text, and it keeps each option's values apart. So ``CommandLineArguments`` writes a value that is
/// not UTF-8 in hexadecimal digits, and one of `--form-string` as one of `--form`. Both begin with a NUL, which no
/// argument has.
struct RawValue: ExpressibleByArgument, Hashable {
    let text: ArgumentText
    /// Whether nothing in it has a meaning, as in `--form-string`.
    var isLiteral = false

    init(_ bytes: some Sequence<UInt8>, isLiteral: Bool = false) {
        text = ArgumentText(bytes)
        self.isLiteral = isLiteral
    }

    init?(argument: String) {
        guard argument.utf8.first == 0 else {
            self.init(argument.utf8)
            return
        }
        let digits = Array(argument.utf8.dropFirst(2))
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count - 1, by: 2) {
            guard let byte = UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(byte)
        }
        self.init(bytes, isLiteral: argument.utf8.dropFirst().first == Self.literalMark)
    }

    private static let literalMark = UInt8(ascii: "s")

    /// The argument from which the parser makes this value.
    var argument: String {
        if !isLiteral, let text = text.text { return text }
        let digits = text.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return "\0" + (isLiteral ? "s" : "f") + digits
    }
}

/// The arguments of the program as the argument parser can read them.
///
/// - Short options with their value attached, as in curl, are separated: `-Fname=value`, `-XPUT`. The parser would read
///   everything before the equals sign as the option's name.
/// - Values that may begin with a dash, such as `-F -=v`, are attached to their option.
/// - The lines of a `--config` file of `send` and `queue add` stand in its place.
enum CommandLineArguments {
    /// Short options with a value.
    private static let short: Set<String> = ["-F", "-X", "-H", "-u", "-x", "-K", "-m"]
    /// Options whose values may begin with a dash, with the long name by which the parser gets them.
    private static let dashed = [
        "-F": "--form", "--form": "--form", "--form-string": "--form", "-H": "--header", "--header": "--header",
    ]

    /// What to write instead of options that only curl has.
    private static let foreign: [String: String] = {
        let body = "A form has no other body: write each field as -F name=value."
        var advice = [
            "-A": "Write -H 'User-Agent: …'.", "-b": "Write -H 'Cookie: …'.", "-e": "Write -H 'Referer: …'.",
            "-i": "To see the status and the header fields of the response, add --json.",
            "-o": "The response goes to standard output: write > FILE.",
            "-v": "To see the request, add --dry-run. To see it as a receiver does: postcard explain --listen 9000.",
            "-w": "To see the status, the bytes and the seconds, add --json.",
        ]
        for option in ["-d", "--data", "--data-binary", "--data-raw", "--data-urlencode", "-T", "-G", "-I"] {
            advice[option] = body
        }
        let long = [
            "--user-agent": "-A", "--cookie": "-b", "--referer": "-e", "--include": "-i", "--output": "-o",
            "--verbose": "-v", "--write-out": "-w", "--upload-file": "-T", "--get": "-G", "--head": "-I",
        ]
        for (name, short) in long { advice[name] = advice[short] }
        return advice
    }()

    /// The names of the option for an ``ArgumentsFile``.
    static let config = ["-K", "--config"]

    /// The arguments of this process, after its name.
    static var ofProcess: [[UInt8]] {
        (1..<max(Int(CommandLine.argc), 1)).compactMap { index in
            CommandLine.unsafeArgv[index].map { argument in
                Array(UnsafeRawBufferPointer(start: argument, count: length(of: argument)))
            }
        }
    }

    private static func length(of text: UnsafePointer<CChar>) -> Int {
        var length = 0
        while text[length] != 0 { length += 1 }
        return length
    }

    /// - Throws: `ValidationError` for bytes where only text is possible.
    static func readable(_ arguments: [[UInt8]]) throws -> [String] {
        var result: [String] = []
        let makesForm = [["send"], ["queue", "add"]].contains { command in
            arguments.starts(with: command) { $0.elementsEqual($1.utf8) }
        }
        var rest = (makesForm ? try withConfigurations(arguments) : arguments)[...]
        while let bytes = rest.popFirst() {
            if bytes.elementsEqual("--".utf8) {
                return result + (try ([bytes] + rest).map(text))
            }
            let (name, attached) = parted(bytes)
            guard let long = dashed[name] else {
                let word = String(name.prefix { $0 != "=" })
                if makesForm, let advice = foreign[word] {
                    throw ValidationError("curl's \(word) is not an option of postcard. \(advice)")
                }
                result +=
                    try [text(attached == nil ? bytes : Array(name.utf8))] + [attached].compactMap(\.self).map(text)
                // The value of a short option, which is not an option whatever it looks like.
                if attached == nil, short.contains(name), let value = rest.popFirst() { result.append(try text(value)) }
                continue
            }
            guard let value = attached ?? rest.popFirst() else {
                result.append(name)
                break
            }
            let isForm = long == "--form"
            let text = isForm ? RawValue(value, isLiteral: name == "--form-string").argument : try text(value)
            result.append("\(long)=\(text)")
        }
        return result
    }

    /// The arguments with the lines of the files that `--config` names.
    private static func withConfigurations(_ arguments: [[UInt8]]) throws -> [[UInt8]] {
        var result: [[UInt8]] = []
        var rest = arguments[...]
        while let bytes = rest.popFirst() {
            if bytes.elementsEqual("--".utf8) { return result + [bytes] + rest }
            let (name, attached) = parted(bytes)
            guard config.contains(name) else {
                result.append(bytes)
                // A value is not an option, whatever it looks like.
                if attached == nil, dashed[name] != nil || short.contains(name), let value = rest.popFirst() {
                    result.append(value)
                }
                continue
            }
            guard let value = attached ?? rest.popFirst() else { throw ValidationError("--config needs a file.") }
            result += try ArgumentsFile(try text(value)).arguments
        }
        return result
    }

    /// The name of an option, and the value that is attached to it.
    private static func parted(_ bytes: [UInt8]) -> (name: String, value: [UInt8]?) {
        let start = String(decoding: bytes.prefix(2), as: UTF8.self)
        if short.contains(start) { return (start, bytes.count > 2 ? Array(bytes[2...]) : nil) }
        if let equals = bytes.firstIndex(of: UInt8(ascii: "=")) {
            let name = String(decoding: bytes[..<equals], as: UTF8.self)
            if dashed[name] != nil || config.contains(name) { return (name, Array(bytes[(equals + 1)...])) }
        }
        return (String(decoding: bytes, as: UTF8.self), nil)
    }

    private static func text(_ bytes: [UInt8]) throws -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ValidationError(
                "'\(ArgumentText(bytes))' is not UTF-8. Only -F and --form-string accept other bytes.")
        }
        return text
    }
}
