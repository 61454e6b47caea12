import ArgumentParser
import Dispatch
import Foundation
import HTTPTypes
import PostcardForm
import PostcardPictures
import SystemPackage

/// The options that make a form and the request around it.
struct FormOptions: ParsableArguments {
    @Option(
        name: [.customShort("F"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A part of the form. Repeat it for more parts, which are sent in this order.",
            discussion: """
                name=value is a text field, name=@path[;type=MIME][;filename=NAME] a file, and name=<path a text field \
                whose value is the file's text. The path - is standard input. Unlike curl, a text keeps its blanks and \
                semicolons, and a comma does not separate two paths.
                """,
            valueName: "name=value"))
    var form: [String] = []

    /// What is removed from the pictures and videos of a form.
    enum Metadata: String, ExpressibleByArgument, CaseIterable {
        case asIs = "as-is"
        case withoutLocation = "without-location"
        case none

        var policy: MetadataPolicy {
            switch self {
            case .asIs: .asIs
            case .withoutLocation: .withoutLocation
            case .none: .none
            }
        }
    }

    @Option(
        help: ArgumentHelp(
            "What is left of the metadata of the files that are sent.",
            discussion: """
                without-location removes positions, names of persons and serial numbers; none removes everything but the \
                orientation and the color profile. The files stay as they are, and so does every pixel. A file whose \
                metadata cannot be removed, such as a PDF, is an error. Defaults to without-location for pictures and \
                videos in a known format, and as-is for other files.
                """))
    var metadata: Metadata?

    /// What the pictures of a form must fit into.
    enum Fit: ExpressibleByArgument {
        case bytes(Int64)
        case server

        init?(argument: String) {
            if argument == "server" {
                self = .server
            } else if let count = ByteCount(argument) {
                self = .bytes(count.bytes)
            } else {
                return nil
            }
        }
    }

    @Option(
        help: ArgumentHelp(
            "The maximum number of bytes of each picture, such as 1MB, or server for as many as the server accepts.",
            discussion: """
                A picture that does not fit becomes the best JPEG that does: upright, and without metadata. So does any HEIC \
                picture. With server, pictures are sent as they are, and once more if the server refuses the form and \
                reports its limit; a queue stores them as they are. Files that are no pictures stay as they are.
                """,
            valueName: "size"))
    var fit: Fit?

    @Option(
        help: ArgumentHelp(
            "The maximum number of pixels of a picture's longer edge.",
            discussion:
                "Defaults to 2560 with --fit. With --fit server, only pictures that are too large are scaled to it.",
            valueName: "pixels"))
    var maxEdge: Int?

    /// Whether pictures are made to fit what the server says.
    var fitsServer: Bool {
        if case .server = fit { true } else { false }
    }

    /// What the pictures must fit into; `nil` if they are sent as they are.
    private var fitting: PictureFitting? {
        switch (fit, maxEdge) {
        case (nil, nil): nil
        case (.server, nil): .serverLimit
        case (.server, let edge?): .serverLimit(maximumEdge: edge)
        case (.bytes(let bytes), nil): .each(PictureLimit(maximumBytes: bytes))
        case (.bytes(let bytes), let edge?): .each(PictureLimit(maximumBytes: bytes, maximumEdge: edge))
        case (nil, let edge?): .each(PictureLimit(maximumBytes: .max, maximumEdge: edge))
        }
    }

    @Option(name: [.customShort("X"), .long], help: "The request's method: POST, PUT or PATCH.")
    var request = "POST"

    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A header field of the request; repeatable.", valueName: "Name: value"))
    var header: [String] = []

    @Option(
        name: [.customShort("u"), .long],
        help: ArgumentHelp(
            "Authenticate with a name and a password (RFC 7617). Other users of this machine can see them.",
            valueName: "name:password"))
    var user: String?

    func validate() throws {
        if form.isEmpty {
            throw ValidationError("There is nothing to send. Add a part with -F name=value or -F name=@file.")
        }
        if try arguments().count(where: \.readsStandardInput) > 1 {
            throw ValidationError("Standard input can be sent only once.")
        }
        if case .bytes(let bytes) = fit, bytes < 1 {
            throw ValidationError("A picture cannot fit into less than one byte.")
        }
        if let maxEdge, maxEdge < 1 { throw ValidationError("The edge must be at least one pixel.") }
        _ = try headerFields()
        _ = try method()
    }

    /// The form that the options describe.
    ///
    /// - Throws: ``CommandFailure`` if a text's file cannot be read.
    func multipartForm() throws -> MultipartForm {
        var multipartForm = MultipartForm()
        for argument in try arguments() {
            var part = try argument.part(metadata?.policy ?? .asIs)
            let type = part.typeOfFile ?? ""
            let isPicture = type.hasPrefix("image/")
            if metadata == nil, isPicture || type.hasPrefix("video/") {
                part.metadata = .withoutLocation.ifUnreadable(.sendAsIs)
                if part.losesMetadata { Self.sayWhatIsRemoved(from: part) }
            }
            if let fitting, isPicture { part.preparation = fitting }
            multipartForm.append(part)
        }
        return multipartForm
    }

    private static func sayWhatIsRemoved(from part: FormPart) {
        guard case .file(let url) = part.content else { return }
        Terminal.say(
            "postcard: \(url.lastPathComponent) is sent without its position and without what names persons and "
                + "devices. To send it as it is, add: --metadata as-is")
    }

    private func arguments() throws -> [FormArgument] {
        try form.map { argument in try Self.valid { try FormArgument(argument) } }
    }

    /// The header fields that the options name.
    func headerFields() throws -> HTTPFields {
        var fields = HTTPFields()
        for argument in header { fields.append(try Self.valid { try HeaderArgument(argument).field }) }
        if let user {
            guard user.contains(":") else {
                throw ValidationError("Write -u name:password. The password may be empty.")
            }
            guard fields[.authorization] == nil else {
                throw ValidationError("There are two authorizations: -u and -H Authorization.")
            }
            fields[.authorization] = "Basic \(Data(user.utf8).base64EncodedString())"
        }
        return fields
    }

    /// The method that the options name.
    func method() throws -> HTTPRequest.Method {
        guard let method = HTTPRequest.Method(request.uppercased()), [.post, .put, .patch].contains(method) else {
            throw ValidationError("A form is sent with POST, PUT or PATCH, not with '\(request)'.")
        }
        return method
    }

    /// Turns an argument's error into a usage error.
    private static func valid<Value>(_ make: () throws -> Value) throws -> Value {
        do {
            return try make()
        } catch {
            throw ValidationError("\(error)")
        }
    }
}

extension FormArgument {
    fileprivate var readsStandardInput: Bool {
        source == .file(path: "-") || source == .textOfFile(path: "-")
    }

    /// The part that the argument describes.
    fileprivate func part(_ metadata: MetadataPolicy) throws -> FormPart {
        let content: FormPart.Content
        var filename = filename
        switch source {
        case .text(let text):
            content = .text(text)
        case .textOfFile(let path):
            content = .text(try Self.text(ofFile: path))
        case .file("-"):
            content = .stream(StandardInput.stream())
            filename = filename ?? "-"
        case .file(let path):
            content = .file(try Self.url(ofFile: path))
        }
        return FormPart(
            name: name, filename: filename, contentType: contentType, headerFields: headerFields, content: content,
            metadata: metadata)
    }

    /// The file as the system would open it: a tilde is an ordinary character, and a slash at the end means a
    /// directory.
    private static func url(ofFile path: String) throws -> URL {
        if path.hasSuffix("/") {
            throw CommandFailure.input(path, "is a directory, and only a regular file can be sent")
        }
        return URL(filePath: path.hasPrefix("~") ? "./\(path)" : path)
    }

    private static func text(ofFile path: String) throws -> String {
        let bytes: Data
        do {
            let input = path == "-" ? FileDescriptor.standardInput : try FileDescriptor.open(FilePath(path), .readOnly)
            defer { if path != "-" { try? input.close() } }
            bytes = try FileHandle(fileDescriptor: input.rawValue).readToEnd() ?? Data()
        } catch {
            throw CommandFailure.input(path == "-" ? "Standard input" : path, "cannot be read: \(error)")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure.input(path, "is not a text in UTF-8. Send it as a file, with @ in place of <.")
        }
        return text
    }
}

extension FormPart {
    /// The media type of the part's file by its first bytes; `nil` if it is unknown, or the content is no file. A file
    /// that cannot be read is reported when the form is laid out.
    fileprivate var typeOfFile: String? {
        try? withFile { file in
            var bytes = [UInt8](repeating: 0, count: MediaType.firstBytesCount)
            let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
            return MediaType.forFirstBytes(bytes[..<count])?.value
        }
    }

    /// Whether the policy removes any of the file.
    fileprivate var losesMetadata: Bool {
        let edits = try? withFile { file in
            let length = try file.seek(offset: 0, from: .end)
            return try metadata.edits(ofLength: length) { try file.read(fromAbsoluteOffset: $0, into: $1) }
        }
        return edits?.isEmpty == false
    }

    private func withFile<Value>(_ body: (FileDescriptor) throws -> Value?) throws -> Value? {
        guard case .file(let url) = content else { return nil }
        // Without nonBlocking the open of a named pipe would wait for a writer.
        let file = try FileDescriptor.open(FilePath(url.path), .readOnly, options: .nonBlocking)
        return try file.closeAfter { try body(file) }
    }
}

/// Standard input as the content of a part: any length, read only as fast as it is sent.
struct StandardInput: AsyncSequence, AsyncIteratorProtocol, Sendable {
    private static let chunkSize = 256 << 10

    static func stream() -> FormStream {
        FormStream(StandardInput())
    }

    func makeAsyncIterator() -> StandardInput { self }

    func next() async throws -> Data? {
        // Reading waits for the writer, which must not block a thread of the concurrency pool.
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Data?, any Error>) in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try Self.read() })
            }
        }
    }

    private static func read() throws -> Data? {
        var chunk = Data(count: chunkSize)
        do {
            let count = try chunk.withUnsafeMutableBytes { try FileDescriptor.standardInput.read(into: $0) }
            return count > 0 ? chunk.prefix(count) : nil
        } catch {
            throw CommandFailure.input("Standard input", "cannot be read: \(error)")
        }
    }
}
