import Foundation
import PostcardCLibrary
import PostcardDoctor
import PostcardFiles
import PostcardForm
import SystemPackage

/// A file in an argument, with its path as the system opens it.
struct SentFile {
    let url: URL
    /// The last component of the path, as bytes.
    let name: ArgumentText
    private let path: ArgumentText

    /// Finds the file at a path. Throws ``CommandFailure`` for a directory, and for a path that is not UTF-8 and cannot
    /// be opened.
    init(_ path: ArgumentText) throws {
        if path.bytes.last == UInt8(ascii: "/") {
            throw CommandFailure.input(path.description, "is a directory, and only a regular file can be sent")
        }
        self.path = path
        name = ArgumentText(path.bytes.split(separator: UInt8(ascii: "/")).last ?? [])
        if let text = path.text {
            // A leading tilde is an ordinary character.
            url = URL(filePath: text.hasPrefix("~") ? "./\(text)" : text)
        } else {
            url = try Self.url(ofOpen: path)
        }
    }

    /// The kind of a file, which determines how it is sent.
    enum Kind: Equatable {
        case missing
        /// A file whose bytes can be read again.
        case regular
        /// A pipe, or a generated file such as those of /proc, of any length.
        case stream
        case device
    }

    /// The kind of the file, found without opening it, because the writer of a pipe would notice.
    var kind: Kind {
        guard let status = try? FilePath(url.path).stat() else { return .missing }
        switch status.type {
        case .fifo, .socket: return .stream
        case .characterSpecial, .blockSpecial: return .device
        case .regular where status.size == 0: return examined()?.firstBytes.isEmpty == false ? .stream : .regular
        // For a directory, the form's layout throws a more specific error.
        default: return .regular
        }
    }

    /// The system's path for a name of any bytes.
    static func path(_ bytes: some Sequence<UInt8>) -> FilePath {
        let terminated = bytes.map { CInterop.PlatformChar(truncatingIfNeeded: $0) } + [0]
        return FilePath(platformString: terminated)
    }

    var shownName: String { name.description }

    var isNamedInUTF8: Bool { path.text != nil }

    /// Opens a file whose path is not UTF-8. A URL cannot contain such a path, so the URL names the open descriptor.
    /// The descriptor stays open until the program ends.
    private static func url(ofOpen path: ArgumentText) throws -> URL {
        let descriptor = (path.bytes + [0]).withUnsafeBytes { bytes in
            bytes.baseAddress.map { open($0.assumingMemoryBound(to: CChar.self), O_RDONLY | O_NONBLOCK | O_CLOEXEC) }
                ?? -1
        }
        guard descriptor >= 0 else {
            throw CommandFailure.input(path.description, "cannot be read: \(Errno(rawValue: errno))")
        }
        return url(ofOpen: FileDescriptor(rawValue: descriptor))
    }

    /// A URL for a file. The file must stay open while the URL is used.
    static func url(ofOpen file: FileDescriptor) -> URL {
        #if os(Linux)
        URL(filePath: "/proc/self/fd/\(file.rawValue)")
        #else
        URL(filePath: "/dev/fd/\(file.rawValue)")
        #endif
    }

    /// Examines the file; `nil` if it cannot be read. The layout reports this later.
    func examined() -> ExaminedContent? { ExaminedContent(url) }
}

/// The facts about a content before the form is laid out.
struct ExaminedContent {
    let firstBytes: [UInt8]
    private let length: Int64
    private let read: (Int64, UnsafeMutableRawBufferPointer) throws -> Int

    /// Reads the facts about a file with a single opening. `nil` if the file cannot be read.
    init?(_ file: URL) {
        guard (try? FilePath(file.path).stat())?.type == .regular,
            let file = try? FileDescriptor.open(FilePath(file.path), .readOnly, options: [.nonBlocking, .closeOnExec])
        else { return nil }
        let held = HeldDescriptor(file)
        var bytes = [UInt8](repeating: 0, count: MediaType.firstBytesCount)
        guard let count = try? bytes.withUnsafeMutableBytes({ try file.read(fromAbsoluteOffset: 0, into: $0) }) else {
            return nil
        }
        // Files of /proc have no end to seek.
        let length = (try? file.seek(offset: 0, from: .end)) ?? 0
        (firstBytes, self.length) = (Array(bytes[..<count]), length)
        read = { try held.file.read(fromAbsoluteOffset: $0, into: $1) }
    }

    init(_ bytes: [UInt8]) {
        (firstBytes, length) = (Array(bytes.prefix(MediaType.firstBytesCount)), Int64(bytes.count))
        read = { offset, buffer in
            let rest = bytes.dropFirst(Int(clamping: offset)).prefix(buffer.count)
            buffer.copyBytes(from: rest)
            return rest.count
        }
    }

    /// The media type that the first bytes show; `nil` if unknown.
    var type: MediaType? { MediaType.forFirstBytes(firstBytes) }

    var isPicture: Bool { type?.value.hasPrefix("image/") ?? false }

    var isPictureOrVideo: Bool { isPicture || type?.value.hasPrefix("video/") ?? false }

    func edits(_ policy: MetadataPolicy) throws(MetadataError) -> FileEdits {
        try policy.edits(ofLength: length, reading: read)
    }

    /// Closes a file when this object is released.
    private final class HeldDescriptor {
        let file: FileDescriptor

        init(_ file: FileDescriptor) {
            self.file = file
        }

        deinit {
            try? file.close()
        }
    }
}

/// A file or standard input that is read as a whole: a text to send, header fields, tokens, rules or certificates. It
/// is usually UTF-8, but `<` sends any bytes, as in curl.
struct TextFile {
    static let standardInput = "Standard input"

    let bytes: [UInt8]
    let name: String

    /// Reads a whole file; `-` is standard input. Throws ``CommandFailure`` if the file cannot be read.
    init(_ path: ArgumentText) throws {
        name = path == "-" ? Self.standardInput : path.description
        do {
            bytes =
                path == "-"
                ? try SmallFile.bytes(of: .standardInput)
                : try SmallFile.bytes(of: FilePath(try SentFile(path).url.path))
        } catch let error as SmallFile.ReadError {
            throw CommandFailure.input(name, error.description)
        }
    }

    /// Reads a whole file; `-` is standard input. Throws ``CommandFailure`` if the file cannot be read.
    init(_ path: String) throws {
        try self.init(ArgumentText(path.utf8))
    }

    /// The lines that are not blank, without leading and trailing blanks. Throws ``CommandFailure`` if the file is not
    /// UTF-8.
    func lines() throws -> [String] {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure.input(name, "is not UTF-8")
        }
        return text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty }
    }

    /// The header fields in the file, one per line. A line that begins with a blank continues the line before it. A
    /// line that begins with `#` is a comment. Throws ``CommandFailure`` if the file is not UTF-8, or contains a NUL.
    func headerLines() throws -> [String] {
        guard !bytes.contains(0) else {
            throw CommandFailure.input(name, "has a NUL, which header fields must not have")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure.input(name, "is not UTF-8, which header fields must be")
        }
        var lines: [String] = []
        for line in text.split(whereSeparator: \.isNewline) where line.first != "#" {
            if line.first == " " || line.first == "\t", !lines.isEmpty {
                lines[lines.count - 1] += " " + line.trimmingCharacters(in: .whitespaces)
            } else if !line.allSatisfy(\.isWhitespace) {
                lines.append(String(line))
            }
        }
        return lines
    }
}

/// The error for a missing file of `-F`, with a guess at what the argument was meant to say.
struct MissingFile {
    private let path: ArgumentText
    private let argument: ArgumentText
    private let isText: Bool

    /// Checks whether the file of a part exists. `nil` if it does, and for a part without a file.
    init?(_ part: FormArgument.Part, of argument: FormArgument) {
        switch part.source {
        case .file(let path) where path != "-": (self.path, isText) = (path, false)
        case .textOfFile(let path) where path != "-": (self.path, isText) = (path, true)
        default: return nil
        }
        // Any error other than a missing file is reported when the file is opened.
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

    /// The argument with its path in quotes, if a file exists whose path has commas or semicolons; otherwise `nil`.
    private var quoted: String? {
        let bytes = argument.bytes
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), let first = path.bytes.first,
            let start = bytes[equals...].indices.first(where: {
                bytes[$0] == first && bytes[$0...].starts(with: path.bytes)
            })
        else { return nil }
        // Longer names are tried first. A name can end only where the syntax allows it.
        let rest = bytes[(start + path.bytes.count)...]
        let ends = [bytes.endIndex] + rest.indices.reversed().filter { ",;".utf8.contains(bytes[$0]) }
        guard !rest.isEmpty, let end = ends.prefix(Self.mostNames).first(where: { Self.exists(bytes[start..<$0]) })
        else { return nil }
        let name = bytes[start..<end].flatMap { "\"\\".utf8.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] }
        let quote = [UInt8(ascii: "\"")]
        return ShellWord.quoted(Array(bytes[..<start]) + quote + name + quote + bytes[end...])
    }

    private static let mostNames = 100

    /// The attribute name after the first semicolon, if the text before it is the name of a file; otherwise `nil`.
    private var unknownAttribute: String? {
        guard let semicolon = path.bytes.firstIndex(of: UInt8(ascii: ";")), semicolon > 0,
            Self.exists(path.bytes[..<semicolon])
        else { return nil }
        let name = path.bytes[(semicolon + 1)...].prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
        return ArgumentText(name).description.trimmingCharacters(in: .whitespaces)
    }
}
