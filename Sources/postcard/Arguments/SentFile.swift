import Foundation
import PostcardCLibrary
import PostcardForm
import SystemPackage

/// A file that an argument names: a path as the system would open it.
struct SentFile {
    let url: URL
    /// The last component of its path, as its bytes.
    let name: ArgumentText
    private let path: ArgumentText

    /// - Throws: ``CommandFailure`` for a directory, and for a path that is not UTF-8 and cannot be opened.
    init(_ path: ArgumentText) throws {
        if path.bytes.last == UInt8(ascii: "/") {
            throw CommandFailure.input(path.description, "is a directory, and only a regular file can be sent")
        }
        self.path = path
        name = ArgumentText(path.bytes.split(separator: UInt8(ascii: "/")).last ?? [])
        if let text = path.text {
            // A tilde is an ordinary character.
            url = URL(filePath: text.hasPrefix("~") ? "./\(text)" : text)
        } else {
            url = try Self.url(ofOpen: path)
        }
    }

    /// How the file is called in messages.
    var shownName: String { name.description }

    var isNamedInUTF8: Bool { path.text != nil }

    /// The URL of a file whose path is not UTF-8. A URL cannot have such a path, so it names an open descriptor, which
    /// stays open until the program ends.
    private static func url(ofOpen path: ArgumentText) throws -> URL {
        let descriptor = (path.bytes + [0]).withUnsafeBytes { bytes in
            bytes.baseAddress.map { open($0.assumingMemoryBound(to: CChar.self), O_RDONLY | O_NONBLOCK | O_CLOEXEC) }
                ?? -1
        }
        guard descriptor >= 0 else {
            throw CommandFailure.input(path.description, "cannot be read: \(Errno(rawValue: errno))")
        }
        #if os(Linux)
        return URL(filePath: "/proc/self/fd/\(descriptor)")
        #else
        return URL(filePath: "/dev/fd/\(descriptor)")
        #endif
    }

    /// What is known of the content before the form is laid out.
    struct Examined {
        let firstBytes: [UInt8]
        fileprivate let edits: (MetadataPolicy) -> FileEdits?

        /// The media type by the first bytes; `nil` if it is unknown.
        var type: MediaType? { MediaType.forFirstBytes(firstBytes) }

        /// Whether the policy removes any of the file.
        func loses(_ policy: MetadataPolicy) -> Bool { edits(policy)?.isEmpty == false }
    }

    /// Looks at the file, which is opened once for all questions; `nil` if it cannot be read, which is reported when the
    /// form is laid out.
    func examined() -> Examined? {
        // Without nonBlocking the open of a named pipe would wait for a writer.
        guard
            let file = try? FileDescriptor.open(FilePath(url.path), .readOnly, options: [.nonBlocking, .closeOnExec])
        else { return nil }
        let held = HeldDescriptor(file)
        var bytes = [UInt8](repeating: 0, count: MediaType.firstBytesCount)
        guard let count = try? bytes.withUnsafeMutableBytes({ try file.read(fromAbsoluteOffset: 0, into: $0) }) else {
            return nil
        }
        return Examined(firstBytes: Array(bytes[..<count])) { policy in
            guard let length = try? held.file.seek(offset: 0, from: .end) else { return nil }
            return try? policy.edits(ofLength: length) { try held.file.read(fromAbsoluteOffset: $0, into: $1) }
        }
    }

    /// Closes a file with the last use of it.
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

/// The content of a file or of standard input that is sent as a text, or that has header fields. It is usually UTF-8,
/// as texts of forms should be, but `<` sends any bytes, as in curl.
struct TextFile {
    let bytes: [UInt8]
    private let name: String

    /// - Parameter path: The file; `-` is standard input.
    /// - Throws: ``CommandFailure`` if it cannot be read.
    init(_ path: ArgumentText) throws {
        name = path == "-" ? "Standard input" : path.description
        do {
            let input: FileDescriptor =
                path == "-" ? .standardInput : try .open(FilePath(try SentFile(path).url.path), .readOnly)
            defer { if path != "-" { try? input.close() } }
            bytes = Array(try FileHandle(fileDescriptor: input.rawValue).readToEnd() ?? Data())
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure.input(name, "cannot be read: \(error)")
        }
    }

    /// The header fields in the file, one in each line. A line that begins with a blank continues the line before it, and
    /// a line that begins with `#` is a comment.
    ///
    /// - Throws: ``CommandFailure`` if the file is not UTF-8, or has a NUL.
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
