import Foundation
import HTTPTypes
import PostcardForm
import PostcardPictures
import SystemPackage

/// Makes the form that the arguments of `-F` and `--form-string` describe.
struct FormBuilder {
    /// What is removed from files; `nil` for the default.
    var metadata: MetadataPolicy?
    /// What pictures must fit; `nil` if they are sent as they are.
    var fitting: PictureFitting?
    var lineBreaks = LineBreaks.asGiven

    /// The multiparts that are open: the form, and those within it.
    private var groups = [Group()]

    /// A multipart whose parts are being collected.
    private struct Group {
        var name: ArgumentText?
        /// The type; `nil` for the form.
        var type: MediaType?
        var headerFields = HTTPFields()
        var parts: [FormPart] = []

        /// What `Content-Disposition` calls its parts. Only those of a form are form data (RFC 7578 §4.2).
        var disposition: String {
            let type = type?.value.prefix { $0 != ";" && $0 != " " }.lowercased()
            return type == nil || type == "multipart/form-data" ? "form-data" : "attachment"
        }
    }

    init() {}

    /// Adds what an argument describes.
    ///
    /// - Throws: ``CommandFailure`` if a file cannot be read.
    mutating func append(_ argument: FormArgument) throws {
        switch argument.content {
        case .parts(let parts):
            for part in parts { groups[groups.count - 1].parts.append(try made(part, named: argument.name)) }
        case .groupStart(let type, let headers):
            groups.append(
                Group(
                    name: argument.name, type: try type ?? MediaType("multipart/mixed"),
                    headerFields: try Self.fields(of: headers)))
        case .groupEnd:
            guard groups.count > 1 else {
                throw CommandFailure(
                    description: "-F '=)' ends a multipart that -F '=(' did not begin.", status: ExitStatus.usage)
            }
            try closeGroup()
        }
    }

    /// The form. Multiparts that are still open end with it.
    mutating func form() throws -> MultipartForm {
        while groups.count > 1 { try closeGroup() }
        var form = MultipartForm(lineBreaks: lineBreaks)
        for part in groups[0].parts { form.append(part) }
        return form
    }

    /// Makes a part of the last multipart.
    private mutating func closeGroup() throws {
        let group = groups.removeLast()
        var inner = MultipartForm(lineBreaks: lineBreaks)
        for part in group.parts { inner.append(part) }
        let layout = try inner.layout()
        let chunks = layout.chunks()
        let stream =
            layout.isReplayable
            ? FormStream(length: layout.contentLength) { chunks } : FormStream(chunks, length: layout.contentLength)
        let boundary = inner.contentType.dropFirst("multipart/form-data".count)
        var part = FormPart(
            name: group.name?.description ?? "",
            contentType: try MediaType("\(group.type?.value ?? "multipart/mixed")\(boundary)"),
            headerFields: group.headerFields, content: .stream(stream))
        setHeaderLines(of: &part, named: group.name, filename: nil)
        groups[groups.count - 1].parts.append(part)
    }

    private func made(_ part: FormArgument.Part, named name: ArgumentText?) throws -> FormPart {
        var filename = part.filename
        var made = FormPart(
            name: name?.description ?? "", contentType: part.contentType,
            headerFields: try Self.fields(of: part.headers),
            content: .text(""))
        switch part.source {
        case .text(let text): made.content = content(text.bytes)
        case .textOfFile(let path): made.content = content(try TextFile(path).bytes)
        case .file("-"):
            made.content = .stream(StandardInput.stream())
            filename = filename ?? "-"
            made.metadata = metadata ?? .asIs
        case .file(let path):
            let file = try SentFile(path)
            made.content = .file(file.url)
            filename = filename ?? file.name
            made.filename = filename?.description
            try decide(on: file, of: &made, isEncoded: part.encoding != nil)
        }
        made.filename = filename?.description
        if let encoding = part.encoding { try encode(&made, as: encoding) }
        setHeaderLines(of: &made, named: name, filename: filename)
        return made
    }

    private static func fields(of headers: FormArgument.Headers) throws -> HTTPFields {
        var fields = headers.fields
        for path in headers.files {
            for line in try TextFile(path).headerLines() { fields.append(try HeaderArgument(line).field) }
        }
        return fields
    }

    private func content(_ bytes: [UInt8]) -> FormPart.Content {
        // A text that is not UTF-8 is sent as its bytes.
        String(validating: bytes, as: UTF8.self).map(FormPart.Content.text)
            ?? .bytes(Data(lineBreaks.applied(to: bytes)))
    }

    // MARK: - Files

    /// Decides what is removed from a file, what it must fit, and what its type is.
    private func decide(on file: SentFile, of part: inout FormPart, isEncoded: Bool) throws {
        part.metadata = metadata ?? .asIs
        guard metadata == nil || fitting != nil || part.contentType == nil, let examined = file.examined() else {
            return
        }
        let type = examined.type?.value ?? ""
        let isPicture = type.hasPrefix("image/")
        if metadata == nil, isPicture || type.hasPrefix("video/") {
            part.metadata = .withoutLocation.ifUnreadable(.sendAsIs)
            if examined.loses(part.metadata) {
                Terminal.say(
                    "postcard: \(file.shownName) is sent without its position and without what names persons and "
                        + "devices. To send it as it is, add: --metadata as-is")
            }
        }
        guard let fitting, isPicture else { return sayIfMisnamed(file, examined, part) }
        guard groups.count == 1, !isEncoded, file.isNamedInUTF8 else {
            throw CommandFailure(
                description:
                    "\(file.shownName) cannot be made to fit: its part is encoded, within another multipart, or has "
                    + "a name that is not UTF-8. Leave out --fit and --max-edge, or write the part as name=@file.",
                status: ExitStatus.usage)
        }
        part.preparation = fitting
    }

    /// Says that a file is not what the extension of its name promises, if its type depends on that.
    private func sayIfMisnamed(_ file: SentFile, _ examined: SentFile.Examined, _ part: FormPart) {
        guard part.contentType == nil, let filename = part.filename,
            let promised = MediaType.forExtension(of: filename),
            let type = MediaType.forFile(named: filename, firstBytes: examined.firstBytes), type != promised
        else { return }
        Terminal.say(
            "postcard: \(file.shownName) is not \(promised) but \(type), and is sent as that. To send it with another type, "
                + "add: ;type=\(promised)")
    }

    // MARK: - Headers and encodings

    /// Replaces the content with its encoded bytes.
    private func encode(_ part: inout FormPart, as encoding: ContentEncoding) throws {
        if let name = HTTPField.Name("Content-Transfer-Encoding") {
            let given = part.headerFields
            part.headerFields = [name: encoding.rawValue]
            for field in given { part.headerFields.append(field) }
        }
        let bytes: [UInt8]
        switch part.content {
        case .text(let text): bytes = Array(lineBreaks.applied(to: text).utf8)
        case .bytes(let given): bytes = Array(given)
        case .stream:
            part.content = .stream(FormStream(EncodedChunks(StandardInput(), in: encoding, named: part.name)))
            return
        case .file:
            var alone = MultipartForm()
            alone.append(part)
            let layout = try alone.layout()
            part.contentType = layout.parts.first?.contentType
            guard encoding != .binary, encoding != .eightBit, let content = layout.content else { return }
            part.content = .stream(encoding.stream(of: content, named: part.name))
            part.metadata = .asIs
            return
        }
        var encoder = ContentEncoder(encoding)
        let encoded = try encoder.encode(bytes, isLast: true, named: part.name)
        // All encodings but two have only ASCII.
        part.content = String(validating: encoded, as: UTF8.self).map(FormPart.Content.text) ?? .bytes(Data(encoded))
    }

    /// Writes the header of a part that a form of a browser cannot have: without a name, with a name that is not UTF-8, or
    /// in another multipart.
    private func setHeaderLines(of part: inout FormPart, named name: ArgumentText?, filename: ArgumentText?) {
        let disposition = groups[groups.count - 1].disposition
        let isRawText = if case .bytes = part.content { true } else { false }
        let isUsual = name?.text != nil && filename.map { $0.text != nil } ?? true && !isRawText
        if isUsual, disposition == "form-data" { return }
        let hasDisposition = name != nil || filename != nil || disposition == "form-data"
        part.headerLines = EncodedPartHeader.lines(
            disposition: hasDisposition ? disposition : nil, name: name?.bytes, filename: filename?.bytes,
            contentType: part.contentType ?? detectedType(of: part), headerFields: part.headerFields)
    }

    private func detectedType(of part: FormPart) -> MediaType? {
        switch part.content {
        case .text, .bytes: return part.filename.flatMap(MediaType.forExtension(of:))
        case .file, .stream:
            var alone = MultipartForm()
            alone.append(part)
            return (try? alone.layout())?.parts.first?.contentType
        }
    }
}

extension FormLayout {
    /// The content of the first part, as a body of its own.
    fileprivate var content: FormLayout? {
        contentRanges?.first.map { slice($0) }
    }
}
