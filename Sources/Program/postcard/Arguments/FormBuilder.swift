import Foundation
import HTTPTypes
import PostcardFiles
import PostcardForm
import PostcardPictures
import Synchronization
import SystemPackage

/// Makes the form from the arguments of `-F` and `--form-string`.
struct FormBuilder {
    /// The metadata to remove from files; `nil` for the default.
    var metadata: MetadataPolicy?
    /// The way to make pictures fit; `nil` to send them unchanged.
    var fitting: PictureFitting?
    var lineBreaks = LineBreaks.asGiven

    /// The unfinished multiparts: the form, and those nested in it.
    private var groups = [Group()]

    /// A multipart whose parts are being collected.
    private struct Group {
        var name: ArgumentText?
        /// The media type of the multipart; `nil` for the form.
        var type: MediaType?
        var headerFields = HTTPFields()
        var parts: [FormPart] = []

        /// The type in `Content-Disposition`. Only parts of a form have `form-data` (RFC 7578 §4.2).
        var disposition: String {
            let type = type?.value.prefix { $0 != ";" && $0 != " " }.lowercased()
            return type == nil || type == "multipart/form-data" ? "form-data" : "attachment"
        }
    }

    init() {}

    /// Adds the parts that an argument describes. Throws ``CommandFailure`` if a file cannot be read.
    mutating func append(_ argument: FormArgument) throws {
        switch argument.content {
        case .parts(let parts):
            for part in parts {
                if let missing = MissingFile(part, of: argument) { throw missing.failure }
                groups[groups.count - 1].parts.append(try made(part, named: argument.name))
                if !argument.isLiteral { sayIfNameOfFile(part) }
            }
        case .groupStart(let type, let headers):
            groups.append(
                Group(
                    name: argument.name, type: type ?? "multipart/mixed",
                    headerFields: try Self.fields(of: headers)))
        case .groupEnd:
            guard groups.count > 1 else {
                throw CommandFailure(
                    description: "-F '=)' ends a multipart that -F '=(' did not begin.", status: ExitStatus.usage)
            }
            try closeGroup()
        }
    }

    /// Makes the form. Ends all unfinished multiparts.
    mutating func form() throws -> MultipartForm {
        while groups.count > 1 { try closeGroup() }
        var form = MultipartForm(lineBreaks: lineBreaks)
        for part in groups[0].parts { form.append(part) }
        return form
    }

    /// Ends the last multipart, and makes a part from it.
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
        // Texts are sent unchanged. For a file, `decide` may replace this policy.
        made.metadata = .asIs
        var pipe: PipeInput?
        switch part.source {
        case .text(let text): made.content = content(text.bytes)
        case .textOfFile(let path): made.content = try content(TextFile(path))
        case .file("-"):
            do {
                try SmallFile.checkEnd(of: .standardInput)
            } catch {
                throw CommandFailure.input(TextFile.standardInput, error.description)
            }
            filename = filename ?? "-"
            made.filename = filename?.description
            pipe = try setContent(of: &made, to: PipeInput(), isFittable: part.encoding == nil)
        case .file(let path):
            let file = try SentFile(path)
            filename = filename ?? file.name
            made.filename = filename?.description
            switch file.kind {
            case .stream:
                pipe = try setContent(
                    of: &made, to: PipeInput(FilePath(file.url.path)), isFittable: part.encoding == nil)
            case .device:
                made.content = .bytes(try treated(TextFile(path)))
                made.contentType =
                    part.contentType ?? filename.flatMap { .forExtension(of: $0.description) } ?? .octetStream
            case .regular, .missing:
                made.content = .file(file.url)
                try decide(
                    on: file.examined(), file.shownName, of: &made,
                    isFittable: part.encoding == nil && file.isNamedInUTF8)
            }
        }
        made.filename = filename?.description
        if let encoding = part.encoding { try encode(&made, from: pipe, as: encoding) }
        setHeaderLines(of: &made, named: name, filename: filename)
        return made
    }

    /// Makes a pipe the content of a part. Only a picture or video that must be changed is stored first. Returns the
    /// pipe, including the bytes that were already read from it.
    private func setContent(of part: inout FormPart, to pipe: PipeInput, isFittable: Bool) throws -> PipeInput {
        var pipe = pipe
        guard metadata != .asIs || fitting != nil, try isTreated(ExaminedContent(pipe.firstBytes())) else {
            part.content = .stream(FormStream(pipe))
            return pipe
        }
        let url = try pipe.stored()
        part.content = .file(url)
        let examined = ExaminedContent(url)
        try checkMetadata(of: examined, pipe.name)
        try decide(on: examined, pipe.name, of: &part, isFittable: isFittable)
        return pipe
    }

    private static func fields(of headers: FormArgument.Headers) throws -> HTTPFields {
        var fields = headers.fields
        for path in headers.files {
            for line in try TextFile(path).headerLines() { fields.append(try HeaderArgument(line).field) }
        }
        return fields
    }

    private func content(_ bytes: [UInt8]) -> FormPart.Content {
        // A text that is not UTF-8 is sent as bytes.
        String(validating: bytes, as: UTF8.self).map(FormPart.Content.text)
            ?? .bytes(Data(lineBreaks.applied(to: bytes)))
    }

    /// The content of a file that is sent as a text field. Pictures and videos are changed as in file parts.
    private func content(_ file: TextFile) throws -> FormPart.Content {
        let examined = ExaminedContent(file.bytes)
        let isText = String(validating: file.bytes, as: UTF8.self) != nil
        // The line breaks in a picture must not be converted.
        guard examined.isPictureOrVideo || !isText && isTreated(examined) else { return content(file.bytes) }
        return .bytes(try treated(file))
    }

    /// The bytes of a file that was read, without the metadata to remove.
    private func treated(_ file: TextFile) throws -> Data {
        let examined = ExaminedContent(file.bytes)
        let bytes = Data(file.bytes)
        var part = FormPart(name: "", content: .bytes(bytes))
        try checkMetadata(of: examined, file.name)
        try decide(on: examined, file.name, of: &part, isFittable: false)
        return (try? part.metadata.applied(to: bytes)) ?? bytes
    }

    /// Throws an error if metadata cannot be removed. The form itself reports such an error only for a file with a
    /// path.
    private func checkMetadata(of examined: ExaminedContent?, _ name: String) throws {
        do throws(MetadataError) {
            if let metadata { _ = try examined?.edits(metadata) }
        } catch {
            throw CommandFailure(description: "\(name): \(error)", status: ExitStatus.unreadableInput)
        }
    }

    // MARK: - Files

    /// Whether content may have to be changed before it is sent, judged by its first bytes.
    private func isTreated(_ content: ExaminedContent) -> Bool {
        if let metadata, metadata != .asIs { return true }
        return metadata == nil && content.isPictureOrVideo || fitting != nil && content.isPicture
    }

    /// Decides which metadata is removed from a part's file, and whether its picture is made to fit. `examined` is
    /// `nil` if the file cannot be read. `name` is the name of the file in messages. `isFittable` says whether a
    /// smaller picture may replace the part's picture.
    private func decide(
        on examined: ExaminedContent?, _ name: String, of part: inout FormPart, isFittable: Bool
    ) throws {
        if let metadata { part.metadata = metadata }
        guard let examined else { return }
        if metadata == nil, examined.isPictureOrVideo {
            part.metadata = .withoutLocation.ifUnreadable(.sendAsIs)
        }
        let fitting = examined.isPicture ? fitting : nil
        say(whatIsRemovedFrom: examined, name, by: part.metadata, isFitted: fitting != nil)
        guard let fitting else { return sayIfMisnamed(name, examined, part) }
        guard groups.count == 1, isFittable else {
            throw CommandFailure(
                description:
                    "\(name) cannot be made to fit: its part is encoded, a text, within another multipart, or has "
                    + "a name that is not UTF-8. Leave out --fit and --max-edge, or write the part as name=@file.",
                status: ExitStatus.usage)
        }
        part.preparation = ReportedFitting(fitting)
    }

    /// Prints what is removed from a file. With `--metadata`, prints only removed content that is not metadata.
    private func say(
        whatIsRemovedFrom examined: ExaminedContent, _ name: String, by policy: MetadataPolicy, isFitted: Bool
    ) {
        do throws(MetadataError) {
            let edits = try examined.edits(policy)
            let removed = metadata == nil ? edits.removed : edits.removedContent
            guard !removed.isEmpty else { return }
            let others = removed.dropLast().joined(separator: ", ")
            let list = (others.isEmpty ? "" : others + " and ") + removed.suffix(1).joined()
            Terminal.say("postcard: \(name) is sent without \(list). To send it as it is, add: --metadata as-is")
        } catch {
            // The layout reports errors of reading the file later and, with `--metadata`, all other errors too.
            guard metadata == nil, error.underlyingError == nil else { return }
            let condition = isFitted ? ", if it fits," : ""
            Terminal.say("postcard: \(name) is sent as it is\(condition) with all its metadata. \(error.message)")
        }
    }

    /// Prints a note if the content of a file contradicts the type of its extension.
    private func sayIfMisnamed(_ name: String, _ examined: ExaminedContent, _ part: FormPart) {
        guard part.contentType == nil, let filename = part.filename,
            let promised = MediaType.forExtension(of: filename),
            let type = MediaType.forFile(named: filename, firstBytes: examined.firstBytes), type != promised
        else { return }
        Terminal.say(
            "postcard: \(name) is not \(promised) but \(type), and is sent as that. To send it with another type, add: "
                + ";type=\(promised)")
    }

    /// Prints a note if a text is the name of an existing file: the file was probably meant.
    private func sayIfNameOfFile(_ part: FormArgument.Part) {
        guard case .text(let text) = part.source, let path = text.text, MediaType.forExtension(of: path) != nil,
            FileManager.default.fileExists(atPath: path)
        else { return }
        Terminal.say(
            "postcard: \(text) is a file, and its name is sent as a text. To send the file, write @ before it.")
    }

    // MARK: - Headers and encodings

    /// Replaces the content of a part with its encoded bytes.
    private func encode(_ part: inout FormPart, from pipe: PipeInput?, as encoding: ContentEncoding) throws {
        if let name = HTTPField.Name("Content-Transfer-Encoding") {
            let given = part.headerFields
            part.headerFields = [name: encoding.rawValue]
            for field in given { part.headerFields.append(field) }
        }
        let bytes: [UInt8]
        switch part.content {
        case .text(let text): bytes = Array(lineBreaks.applied(to: text).utf8)
        case .bytes(let given): bytes = Array(given)
        case .picked: return
        case .stream:
            part.content = .stream(FormStream(EncodedChunks(pipe ?? PipeInput(), in: encoding, named: part.name)))
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
        // All encodings but two produce only ASCII.
        part.content = String(validating: encoded, as: UTF8.self).map(FormPart.Content.text) ?? .bytes(Data(encoded))
    }

    /// Writes the header of a part that browsers cannot send: without a name, with a name that is not UTF-8, or in a
    /// nested multipart.
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
        case .file, .stream, .picked:
            var alone = MultipartForm()
            alone.append(part)
            return (try? alone.layout())?.parts.first?.contentType
        }
    }
}

extension FormLayout {
    /// The content of the first part, as a separate layout.
    fileprivate var content: FormLayout? {
        contentRanges?.first.map { slice($0) }
    }
}

/// Makes pictures fit, and reports which lose their video.
struct ReportedFitting: FormPreparation {
    private let fitting: PictureFitting
    /// The files that were already reported, because a form may be prepared several times.
    private static let reported = Mutex<Set<URL>>([])

    init(_ fitting: PictureFitting) {
        self.fitting = fitting
    }

    var followsServerLimit: Bool { fitting.followsServerLimit }

    func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart] {
        let prepared = try await fitting.prepare(parts, in: context)
        for (part, new) in zip(parts, prepared) {
            guard case .file(let file) = part.content, case .file(let newFile) = new.content, file != newFile,
                let edits = try? ExaminedContent(file)?.edits(.withoutLocation), edits.hasVideo,
                Self.reported.withLock({ $0.insert(file).inserted })
            else { continue }
            Terminal.say(
                "postcard: \(part.filename ?? part.name) is sent as a still picture, without its video. To send it as it "
                    + "is, leave out --fit and --max-edge.")
        }
        return prepared
    }
}
