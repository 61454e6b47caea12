import Foundation
import PostcardDoctor
import PostcardForm
import SystemPackage

/// A file of `-F` that does not exist: often the argument means something else than a file of this name.
struct MissingFile {
    private let path: ArgumentText
    private let argument: ArgumentText
    private let isText: Bool

    /// - Returns: `nil` for a part without a file, and for a file that is there.
    init?(_ part: FormArgument.Part, of argument: FormArgument) {
        switch part.source {
        case .file(let path) where path != "-": (self.path, isText) = (path, false)
        case .textOfFile(let path) where path != "-": (self.path, isText) = (path, true)
        default: return nil
        }
        // What cannot be looked at for another reason is reported when it is opened.
        guard !Self.exists(path.bytes[...]) else { return nil }
        self.argument = argument.text
    }

    private static func exists(_ path: ArraySlice<UInt8>) -> Bool {
        do {
            _ = try SentFile.path(path).stat()
            return true
        } catch {
            return error != .noSuchFileOrDirectory
        }
    }

    var failure: CommandFailure {
        CommandFailure(
            description: "No such file \(path): \(advice)", status: ExitStatus.unreadableInput,
            code: FormError.Code.fileMissing.rawValue)
    }

    private var advice: String {
        let sign = isText ? "<" : "@"
        if let quoted { return "the name needs quotes within the argument, so write -F \(quoted)." }
        if let attribute = unknownAttribute {
            return
                "-F has no attribute '\(attribute)', so write ;type=, ;filename=, ;headers= or ;encoder=, or leave it out."
        }
        if path.bytes.starts(with: "~/".utf8) {
            return "a shell replaces ~ only at the start of a word, so write -F \"…=\(sign)$HOME/…\"."
        }
        if path.bytes.contains(where: { "*?[{".utf8.contains($0) }) {
            return "a shell replaces * only in the name of a file alone, so write one -F for each file."
        }
        let literal = ShellWord.quoted(argument.bytes)
        return "check the path after \(sign), or to send the text itself write --form-string \(literal)."
    }

    /// The argument with quotes around a name with commas or semicolons; `nil` if there is no such file.
    private var quoted: String? {
        let bytes = argument.bytes
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), let first = path.bytes.first,
            let start = bytes[equals...].indices.first(where: {
                bytes[$0] == first && bytes[$0...].starts(with: path.bytes)
            })
        else { return nil }
        // Longer names first, each up to where the grammar may end one.
        let rest = bytes[(start + path.bytes.count)...]
        let ends = [bytes.endIndex] + rest.indices.reversed().filter { ",;".utf8.contains(bytes[$0]) }
        guard !rest.isEmpty, let end = ends.prefix(Self.mostNames).first(where: { Self.exists(bytes[start..<$0]) })
        else { return nil }
        let name = bytes[start..<end].flatMap { "\"\\".utf8.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] }
        let quote = [UInt8(ascii: "\"")]
        return ShellWord.quoted(Array(bytes[..<start]) + quote + name + quote + bytes[end...])
    }

    private static let mostNames = 100

    /// The name behind the first semicolon, if there is a file before it.
    private var unknownAttribute: String? {
        guard let semicolon = path.bytes.firstIndex(of: UInt8(ascii: ";")), semicolon > 0,
            Self.exists(path.bytes[..<semicolon])
        else { return nil }
        let name = path.bytes[(semicolon + 1)...].prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
        return ArgumentText(name).description.trimmingCharacters(in: .whitespaces)
    }
}
