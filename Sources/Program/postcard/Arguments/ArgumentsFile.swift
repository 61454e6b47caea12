import ArgumentParser
import PostcardDoctor
import PostcardFiles
import PostcardForm
import SystemPackage

/// A `--config` file: one option per line, in the syntax of curl's `-K`.
///
/// ```
/// # A form that can be edited.
/// form-string = "title=At the sea"
/// form = "photo=@1.jpg;type=image/jpeg"
/// ```
struct ArgumentsFile {
    /// The arguments that the lines of the file stand for.
    let arguments: [[UInt8]]

    /// The reason why a line is invalid.
    private struct SyntaxError: Error {
        let line: Int
        let message: String
    }

    /// Reads a `--config` file; `-` is standard input. Throws `ValidationError` if it cannot be read or understood.
    init(_ name: String) throws {
        do {
            try self.init(
                name == "-" ? SmallFile.bytes(of: .standardInput) : SmallFile.bytes(of: FilePath(name)))
        } catch let error as SyntaxError {
            throw ValidationError("Line \(error.line) of \(name): \(error.message)")
        } catch {
            throw ValidationError("The file \(name) of --config \(error)")
        }
    }

    private init(_ bytes: [UInt8]) throws(SyntaxError) {
        var arguments: [[UInt8]] = []
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() { arguments += try Self.arguments(line, number: index + 1) }
        self.arguments = arguments
    }

    private static func arguments(_ line: ArraySlice<UInt8>, number: Int) throws(SyntaxError) -> [[UInt8]] {
        var rest = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        rest = rest.drop(while: \.isBlank)
        guard let first = rest.first, first != UInt8(ascii: "#") else { return [] }
        let isDashed = first == UInt8(ascii: "-")
        let name = rest.prefix { !$0.isBlank && (isDashed || $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ":")) }
        rest = rest[name.endIndex...].drop(while: \.isBlank)
        if !isDashed, let separator = rest.first, [UInt8(ascii: "="), UInt8(ascii: ":")].contains(separator) {
            rest = rest.dropFirst().drop(while: \.isBlank)
        }
        let option = isDashed ? Array(name) : Array("--".utf8) + name
        if CommandLineArguments.config.contains(String(decoding: option, as: UTF8.self)) {
            throw SyntaxError(line: number, message: "A file of --config cannot name another one.")
        }
        return [option] + (try value(rest, number: number).map { [$0] } ?? [])
    }

    /// The value of an option in a line; `nil` if the line has no value.
    private static func value(_ text: ArraySlice<UInt8>, number: Int) throws(SyntaxError) -> [UInt8]? {
        guard let first = text.first else { return nil }
        guard first == UInt8(ascii: "\"") else {
            let value = text.prefix { !$0.isBlank }
            let rest = text[value.endIndex...].drop(while: \.isBlank)
            guard rest.isEmpty || rest.first == UInt8(ascii: "#") else {
                throw SyntaxError(line: number, message: "A value with blanks needs quotes around it: \"…\".")
            }
            return Array(value)
        }
        var value: [UInt8] = []
        var index = text.startIndex + 1
        while index < text.endIndex, text[index] != UInt8(ascii: "\"") {
            if text[index] == UInt8(ascii: "\\"), index + 1 < text.endIndex {
                index += 1
                value.append(CurlWord.escapes[text[index]] ?? text[index])
            } else {
                value.append(text[index])
            }
            index += 1
        }
        guard index < text.endIndex else { throw SyntaxError(line: number, message: "The quotes are not closed.") }
        return value
    }
}
