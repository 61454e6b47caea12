import Foundation
import PostcardCLibrary
import PostcardDoctor
import PostcardForm
import SystemPackage

/// The folder that `--edit` writes: a text with a line for each part, and a file for each part that is not a short
/// text. `postcard send --config` sends the form again.
struct EditableForm {
    let folder: String
    /// The permissions of the folder's files. By default, only the owner can read them, because forms may contain
    /// passwords.
    var permissions = FilePermissions.ownerReadWrite

    static let name = "form.txt"

    /// A part of the form, and how it is written.
    private struct Part {
        let content: Explanation.Part
        /// The name of the file with the part's bytes; `nil` if the part's line has the bytes.
        let file: String?

        init(_ content: Explanation.Part, number: Int) {
            self.content = content
            let isInLine = content.filename == nil && content.text?.contains("\0") == false
            file = isInLine ? nil : "\(number)\(Self.fileExtension(of: content))"
        }

        /// The extension of the part's filename, if it is short and plain. The filename is untrusted.
        private static func fileExtension(of part: Explanation.Part) -> String {
            guard let last = part.filename?.split(separator: ".", omittingEmptySubsequences: false).dropFirst().last,
                (1...8).contains(last.utf8.count), last.utf8.allSatisfy(\.isLetterOrDigit)
            else { return "" }
            return ".\(last)"
        }
    }

    /// Writes the folder. An existing folder must be empty. `explanation` is the result of the first reading of the
    /// input, and `read` reads the input again. `request` extracts the request from the input; `nil` if the input is a
    /// body without a request. Throws ``CommandFailure`` if the folder cannot be written or the input cannot be read.
    func write(
        _ explanation: Explanation, from request: RequestInput?, read: ((RawSpan) throws -> Void) throws -> Void
    ) throws {
        guard !explanation.parts.isEmpty, explanation.parts.count == explanation.partCount else {
            let why = explanation.parts.isEmpty ? "it has no part that can be read" : "it has too many parts"
            throw CommandFailure(
                description: "The form cannot be edited: \(why).", status: ExitStatus.unreadableInput)
        }
        if let part = explanation.parts.first(where: { $0.name.contains("=") || $0.name.contains("\0") }) {
            throw CommandFailure(
                description: "The form cannot be edited: the name '\(Terminal.printable(part.name))' has a character "
                    + "that no option of 'postcard send' can write.",
                status: ExitStatus.unreadableInput)
        }
        let parts = explanation.parts.enumerated().map { Part($0.element, number: $0.offset + 1) }
        do {
            let folder = NewFolder(folder, permissions)
            do {
                try folder.make()
                try writeContents(of: parts, explanation, from: request, to: folder, read: read)
                try folder.write(text(of: parts, explanation), to: Self.name)
            } catch {
                folder.remove()
                throw error
            }
        } catch {
            throw CommandFailure(
                description: "\(Terminal.printable(folder)) cannot be written: \(error)",
                status: ExitStatus.unwritableOutput)
        }
    }

    // MARK: - The text

    private func text(of parts: [Part], _ explanation: Explanation) -> [UInt8] {
        var lines = [
            "# Each line is a part. After a change, send the form again, in this folder:",
            "# postcard send --metadata as-is --config \(Self.name)",
        ].flatMap { Array("\($0)\n".utf8) }
        lines += CurlWord.line("url", (explanation.curl?.url ?? "http://127.0.0.1:8080/uploads").utf8)
        if let method = explanation.curl?.method, method != "POST" {
            lines +=
                FormOptions.method(named: method) == nil
                ? Array("# Left out, because no form is sent with it: the method \(VisibleBytes.text(method))\n".utf8)
                : CurlWord.line("request", method.utf8)
        }
        for name in explanation.curl?.secretFields ?? [] { lines += Array("# header = \"\(name): …\"\n".utf8) }
        for part in parts { lines += Self.remark(on: part) + Self.line(part) }
        return lines
    }

    /// A comment about properties of a part that its line cannot express.
    private static func remark(on part: Part) -> [UInt8] {
        guard let type = part.content.contentType, (try? MediaType(type)) == nil else { return [] }
        return Array("# Left out, because it is not a media type: \(VisibleBytes.text(type))\n".utf8)
    }

    private static func line(_ part: Part) -> [UInt8] {
        let name = Array(part.content.name.utf8) + [UInt8(ascii: "=")]
        var attributes: [UInt8] = []
        if let type = part.content.contentType.flatMap({ try? MediaType($0) }) {
            attributes += ";type=\(needsQuotes(type.value) ? CurlWord.quoted(type.value) : type.value)".utf8
        }
        if let filename = part.content.filename { attributes += ";filename=\(CurlWord.quoted(filename))".utf8 }
        for field in part.content.headerFields
        where !["content-disposition", "content-type"].contains(field.name.lowercased()) {
            if (try? HeaderArgument("\(field.name): \(field.value)")) != nil {
                attributes += ";headers=\(CurlWord.quoted("\(field.name): \(field.value)"))".utf8
            }
        }
        guard let file = part.file else {
            let text = part.content.text ?? ""
            if attributes.isEmpty { return CurlWord.line("form-string", name + text.utf8) }
            return CurlWord.line("form", name + CurlWord.quoted(text).utf8 + attributes)
        }
        let mark = part.content.filename == nil ? UInt8(ascii: "<") : UInt8(ascii: "@")
        return CurlWord.line("form", name + [mark] + CurlWord.quoted(file).utf8 + attributes)
    }

    /// Whether a type would be misread without quotes. curl supports no quotes around a type, so other types get none.
    private static func needsQuotes(_ type: String) -> Bool {
        let words = type.utf8.filter { !$0.isBlank }.map(\.asciiLowercased)
        return words.contains { ",\"".utf8.contains($0) }
            || FormArgumentScanner.Attribute.allCases.contains { words.contains(";\($0.rawValue)=".utf8) }
    }

    // MARK: - The files

    private func writeContents(
        of parts: [Part], _ explanation: Explanation, from request: RequestInput?, to folder: NewFolder,
        read: ((RawSpan) throws -> Void) throws -> Void
    ) throws {
        var splitter = RequestSplitter(explanation)
        var files = PartFiles(
            parts.compactMap { part in part.file.map { (name: $0, part: part.content) } }, in: folder)
        var failure: (any Error)?
        func split(_ chunk: RawSpan) {
            guard failure == nil else { return }
            do {
                try splitter.read(chunk) { try files.write($0) }
            } catch {
                failure = error
            }
        }
        if var request {
            try read { try request.read($0, handOn: split) }
            try request.finish(handOn: split)
        } else {
            try read { split($0) }
        }
        if let failure { throw failure }
        try files.finish()
    }
}

/// The folder of an ``EditableForm`` while it is written. After a failure, everything that was made is removed.
private final class NewFolder {
    private let path: FilePath
    private let permissions: FilePermissions
    /// The folders that did not exist before, the innermost first.
    private var folders: [FilePath] = []
    private var files: [FilePath] = []

    /// Prepares to make a folder, but writes nothing yet. The files in the folder get the permissions.
    init(_ path: String, _ permissions: FilePermissions) {
        self.path = FilePath(path)
        self.permissions = permissions
    }

    /// Makes the folder. An existing folder must be empty.
    func make() throws {
        var missing = path
        while !missing.isEmpty, !FileManager.default.fileExists(atPath: missing.string) {
            folders.append(missing)
            missing.removeLastComponent()
        }
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
        guard try FileManager.default.contentsOfDirectory(atPath: path.string).isEmpty else {
            throw Errno.directoryNotEmpty
        }
    }

    func file(_ name: String) throws -> FileDescriptor {
        let file = path.appending(name)
        let descriptor = try FileDescriptor.open(
            file, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
            permissions: permissions)
        files.append(file)
        return descriptor
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        let file = try file(name)
        try file.closeAfter { _ = try file.writeAll(bytes) }
    }

    /// Removes the new folders and files.
    func remove() {
        for file in files { try? FileManager.default.removeItem(atPath: file.string) }
        // A folder that now contains anything else is kept.
        for folder in folders { _ = rmdir(folder.string) }
    }
}

/// Writes the contents of parts to files while the body is read.
private struct PartFiles {
    private var rest: ArraySlice<(name: String, part: Explanation.Part)>
    private let folder: NewFolder
    /// The open file of the current part; `nil` before the part's content.
    private var file: FileDescriptor?
    private var offset: Int64 = 0

    init(_ files: [(name: String, part: Explanation.Part)], in folder: NewFolder) {
        rest = files[...]
        self.folder = folder
    }

    /// Writes the next bytes of the body to the files of their parts.
    mutating func write(_ bytes: RawSpan) throws {
        let all = offset..<offset + Int64(bytes.byteCount)
        defer { offset = all.upperBound }
        while let (name, part) = rest.first, part.offset < all.upperBound {
            let piece = (part.offset..<part.offset + part.size).clamped(to: all)
            let start = Int(clamping: piece.lowerBound - all.lowerBound)
            try open(name).write(bytes.extracting(start..<start + piece.count))
            guard part.offset + part.size <= all.upperBound else { return }
            try close()
        }
    }

    /// Ends the body, and makes empty files for the remaining parts, which have no content.
    mutating func finish() throws {
        while let (name, _) = rest.first {
            _ = try open(name)
            try close()
        }
    }

    private mutating func open(_ name: String) throws -> FileDescriptor {
        if let file { return file }
        let opened = try folder.file(name)
        file = opened
        return opened
    }

    private mutating func close() throws {
        rest.removeFirst()
        try file.take()?.close()
    }
}
