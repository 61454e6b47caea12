import ArgumentParser
import PostcardForm

/// A text on the command line. It is usually UTF-8, but may have any bytes except NUL.
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

    /// The text as a `String`, with U+FFFD for bytes that are not UTF-8.
    var description: String { String(decoding: bytes, as: UTF8.self) }
}

/// The value of `-F` or `--form-string`, encoded for the argument parser.
///
/// The parser supports only UTF-8, and loses the order of different options. ``CommandLineArguments`` therefore writes
/// values that are not UTF-8 in hexadecimal digits, and values of `--form-string` as values of `--form`. Both begin
/// with a NUL, which real arguments cannot contain.
struct RawValue: ExpressibleByArgument, Hashable {
    let text: ArgumentText
    /// Whether the value is plain text without any syntax, as in `--form-string`.
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

    /// The argument that the parser converts to this value.
    var argument: String {
        if !isLiteral, let text = text.text { return text }
        let digits = text.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return "\0" + (isLiteral ? "s" : "f") + digits
    }
}

/// Rewrites the program's arguments for the argument parser.
///
/// - Short options are separated from each other and from their values: curl accepts `-Fname=value` and `-sSXPUT`. The
///   parser would read everything before the equals sign as the option's name.
/// - Values that may begin with a dash, such as `-F -=v`, are attached to their option.
/// - For `send` and `queue add`, a `--config` file is replaced by its lines. Options that only curl has are left out or
///   refused, on the command line and in the file.
enum CommandLineArguments {
    private static let short: Set<String> = ["-F", "-X", "-H", "-u", "-x", "-K", "-m"]
    /// Options whose values may begin with a dash, with the long option for the argument parser.
    private static let dashed = [
        "-F": "--form", "--form": "--form", "--form-string": "--form", "-H": "--header", "--header": "--header",
    ]

    /// The option that names an ``ArgumentsFile``.
    static let config = ["-K", "--config"]

    /// The arguments of this process, without its name.
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

    /// Rewrites the arguments for the parser. Throws `ValidationError` if an argument that must be text is not UTF-8.
    static func readable(_ arguments: [[UInt8]]) throws -> [String] {
        var result: [String] = []
        let isQueued = arguments.starts(with: ["queue", "add"]) { $0.elementsEqual($1.utf8) }
        let makesForm = isQueued || arguments.first?.elementsEqual("send".utf8) == true
        var rest = (makesForm ? separated(try withConfigurations(separated(arguments))) : arguments)[...]
        while let bytes = rest.popFirst() {
            if bytes.elementsEqual("--".utf8) {
                return result + (try ([bytes] + rest).map(text))
            }
            let (name, attached) = parted(bytes)
            guard let long = dashed[name] else {
                if makesForm, !isNumber(bytes, after: result.last), try isIgnored(name, &rest, isQueued: isQueued) {
                    continue
                }
                result +=
                    try [text(attached == nil ? bytes : Array(name.utf8))] + [attached].compactMap(\.self).map(text)
                // The value of a short option is not an option, even if it looks like one.
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

    /// Whether an argument such as `-1` is the value of the option before it, not the curl option `-1`.
    private static func isNumber(_ argument: [UInt8], after option: String?) -> Bool {
        guard let option, option.hasPrefix("--"), !option.utf8.contains(.equals) else { return false }
        return argument.count > 1 && argument[0] == .dash && argument.dropFirst().allSatisfy(\.isDigit)
    }

    /// Whether an argument is an option of curl that can be ignored. If so, removes its value from `rest`. Throws
    /// `ValidationError` for an option of curl that is refused, with advice on what to write instead.
    private static func isIgnored(
        _ argument: String, _ rest: inout ArraySlice<[UInt8]>, isQueued: Bool
    ) throws -> Bool {
        let name = String(argument.prefix { $0 != "=" })
        // For curl, `--json` has the body as its value; for `send`, it has no value.
        let isBody = name == "--json" && (isQueued || rest.first?.first.map { "{[@".utf8.contains($0) } == true)
        switch CurlOptions.meaning(of: isBody ? "--data" : name, isQueued: isQueued) {
        case nil: return false
        case .ignored(let hasValue):
            if hasValue, name == argument { rest = rest.dropFirst() }
            return true
        case .refused(let advice):
            throw ValidationError("curl's \(name) is not an option of postcard: \(advice)")
        }
    }

    /// The arguments with separate short options: curl reads `-sSF a=b` as `-s -S -F a=b`.
    private static func separated(_ arguments: [[UInt8]]) -> [[UInt8]] {
        var result: [[UInt8]] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument.elementsEqual("--".utf8) { return result + [argument] + rest }
            guard argument.count > 1, argument[0] == .dash, argument[1] != .dash else {
                result.append(argument)
                // A value is not an option, even if it looks like one.
                if dashed[String(decoding: argument, as: UTF8.self)] != nil {
                    result += rest.popFirst().map { [$0] } ?? []
                }
                continue
            }
            var letters = argument.dropFirst()
            while let letter = letters.popFirst() {
                result.append([.dash, letter])
                guard CurlOptions.lettersWithValue.contains(letter) else { continue }
                if let value = letters.isEmpty ? rest.popFirst() : Array(letters) { result.append(value) }
                break
            }
        }
        return result
    }

    /// Replaces each `--config` file among the arguments with its lines.
    private static func withConfigurations(_ arguments: [[UInt8]]) throws -> [[UInt8]] {
        var result: [[UInt8]] = []
        var rest = arguments[...]
        while let bytes = rest.popFirst() {
            if bytes.elementsEqual("--".utf8) { return result + [bytes] + rest }
            let (name, attached) = parted(bytes)
            guard config.contains(name) else {
                result.append(bytes)
                // A value is not an option, even if it looks like one.
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

    /// The name of an option, and its attached value.
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
