import Crypto
import PostcardForm
import PostcardFoundation
import PostcardPictureFormats

/// What is odd about a part's content, once it has gone by.
struct ContentChecks {
    let header: HeaderReading
    let content: PartContent
    /// The offset of the content, counted from the start of the body.
    let offset: Int64
    let partIndex: Int
    /// Whether the body ended inside the content.
    let isCutOff: Bool

    var findings: [Finding] {
        let type = type ?? HeaderChecks(header: header, partIndex: partIndex).mediaType
        var found = [value, mojibake, base64, type, filename, textWithFilename, notUTF8, location].compactMap(\.self)
        if !isCutOff { found += [empty, extraLineBreak, truncated].compactMap(\.self) }
        return found
    }

    private func finding(
        _ code: FormProblem.Code, at place: Int64? = nil, length: Int = 0, _ message: String, fix: String? = nil,
        edits: [Edit]? = nil
    ) -> Finding {
        Finding(
            code, at: place ?? offset, length: length, part: partIndex, message, fix: fix, edits: edits)
    }

    /// The media type that the header announces, without parameters.
    private var announced: String? {
        header.contentType?.prefix { $0 != ";" && $0 != " " && $0 != "\t" }.lowercased()
    }

    private var detected: MediaType? { MediaType.forFirstBytes(content.start) }

    private static let pictures: Set<MediaType> = [
        .jpeg, .png, .gif, .webP, .heic, .heif, .avif, .tiff, .bmp, .pdf,
    ]

    /// The picture that the header announces, well or badly spelled.
    private var announcedPicture: MediaType? {
        announced.flatMap { announced in
            let meant = HeaderChecks.registered(announced) ?? announced
            return Self.pictures.first { $0.value == meant }
        }
    }
}

// MARK: - Values

extension ContentChecks {
    private var value: Finding? {
        guard !header.isFile, announced != "application/json", let text = content.text,
            let code = TextValue.code(of: text, named: header.name)
        else {
            return nil
        }
        let message =
            switch code {
            case .optionalDescription: "The value is what Swift prints of an optional: Optional(…)."
            case .nullText: "The value is the word \(text), which means no value."
            case .objectDescription: "The value is the description of an object."
            case .pathInsteadOfFile: "The value is the path or the address of a file, and not its content."
            case .surprisingNumber: "The number is written with separators for people."
            default: "The date is written for people."
            }
        return finding(code, length: Int(clamping: content.size), message)
    }

    private var mojibake: Finding? {
        guard !header.isFile, detected == nil, let text = content.words, Mojibake.undone(text) != nil else {
            return nil
        }
        // A non-ASCII blank may be a byte of a character.
        let words = text.split { $0.isASCII && $0.isWhitespace }
        guard let word = words.first(where: { Mojibake.undone(String($0)) != nil }) else { return nil }
        let place = offset + Int64(text.utf8.distance(from: text.startIndex, to: word.startIndex))
        let meant = Mojibake.undone(String(word)) ?? ""
        let example = word.count > 30 ? "." : ": \(String(word).debugDescription) was \(meant.debugDescription)."
        return finding(.mojibake, at: place, length: word.utf8.count, "The text is UTF-8 read as Latin-1\(example)")
    }

    private var notUTF8: Finding? {
        guard !header.isFile, header.contentType == nil || announced == "text/plain",
            header.contentType?.lowercased().contains("charset") != true, !content.isUTF8, detected == nil
        else { return nil }
        return finding(
            .textNotUTF8, at: offset + Int64(content.validUTF8Count), length: 1, "The text is not in UTF-8.")
    }

    private var textWithFilename: Finding? {
        guard let filename = header.filename, !filename.isEmpty, !filename.contains("."), content.size > 0,
            content.size <= 200, header.contentType == nil || announced == "text/plain", let text = content.text,
            text.unicodeScalars.allSatisfy({ $0.value >= 0x20 || $0 == "\n" || $0 == "\r" || $0 == "\t" })
        else { return nil }
        return finding(
            .textWithFilename, at: header.filenameValue?.offset, length: filename.utf8.count,
            "A short text has the filename \(filename.debugDescription), which makes a file of it.")
    }
}

// MARK: - Types

extension ContentChecks {
    private var type: Finding? {
        guard let field = header.contentTypeField, let announcedPicture, content.size > 0, base64 == nil else {
            return nil
        }
        if let detected {
            guard detected != announcedPicture, !Self.areAlike(detected, announcedPicture) else { return nil }
            return finding(
                .contentContradictsType, at: field.offset, length: field.bytes.count,
                "The Content-Type is \(announced ?? "") and the bytes are \(detected).",
                edits: [Edit(at: field.offset, length: Int64(field.essence.count), detected.value.utf8)])
        }
        guard content.start.count >= 16,
            content.start.prefix(64).allSatisfy({ (0x20..<0x7F).contains($0) || $0 == 10 || $0 == 13 || $0 == 9 })
        else { return nil }
        return finding(
            .contentContradictsType, at: field.offset, length: field.bytes.count,
            "The Content-Type is \(announced ?? "") and the content is text.")
    }

    /// Whether two types share one container and have brands that overlap.
    private static func areAlike(_ one: MediaType, _ other: MediaType) -> Bool {
        let family: Set<MediaType> = [.heic, .heif, .avif]
        return family.contains(one) && family.contains(other)
    }

    private var filename: Finding? {
        guard let filename = header.filename else { return fileWithoutFilename }
        guard let announcedPicture, let value = header.filenameValue, type == nil,
            let byName = MediaType.forExtension(of: filename), byName != announcedPicture,
            Self.pictures.contains(byName), !Self.areAlike(byName, announcedPicture)
        else { return nil }
        return finding(
            .extensionContradictsType, at: value.offset, length: value.bytes.count,
            "The filename's extension is that of \(byName), and the Content-Type is \(announcedPicture).")
    }

    private var fileWithoutFilename: Finding? {
        let isPicture = detected.map { Self.pictures.contains($0) } == true
        let isAnnounced = announced.map { type in
            ["image/", "video/", "audio/"].contains { type.hasPrefix($0) }
                || ["application/octet-stream", "application/pdf", "application/zip"].contains(type)
        }
        guard isPicture || isAnnounced == true else { return nil }
        // As a text field it is read as UTF-8, and bytes that are not are replaced.
        return finding(
            .fileWithoutFilename, at: header.offset,
            "The part is a file by its \(isAnnounced == true ? "type" : "content") and has no filename."
        ).weighing(content.isUTF8 ? .warning : .error)
    }
}

// MARK: - Bytes

extension ContentChecks {
    private var base64: Finding? {
        guard content.size >= 64 else { return nil }
        let text = content.start.prefix(256)
        let isDataURL = text.starts(with: "data:".utf8) && text.prefix(64).contains(UInt8(ascii: ";"))
        let isKnown = Self.base64Starts.contains { text.starts(with: $0.utf8) } || isBoxInBase64(text)
        let isText = text.allSatisfy { byte in
            byte.isLetter || byte.isDigit
                || [.slash, .equals, .carriageReturn, .lineFeed, UInt8(ascii: "+")].contains(byte)
        }
        guard isDataURL || (isText && (isKnown || announcedPicture != nil)) else { return nil }
        return finding(
            .base64Content, length: Int(min(content.size, 64)),
            isDataURL ? "The content is a data: URL, not bytes." : "The content is base64 text, not bytes.")
    }

    /// What JPEG, PNG, GIF, WebP and PDF begin with in base64.
    private static let base64Starts = ["/9j/", "iVBORw0KGgo", "R0lGOD", "UklGR", "JVBERi0"]

    /// What HEIC begins with: the length of a box, whose two last digits may be any, and its type, `ftyp`.
    private func isBoxInBase64(_ text: ArraySlice<UInt8>) -> Bool {
        text.starts(with: "AAAA".utf8) && text.dropFirst(6).starts(with: "Z0eX".utf8)
    }

    private var empty: Finding? {
        guard let filename = header.filename, !filename.isEmpty, content.size == 0 else { return nil }
        return finding(.emptyFile, "The file \(filename.debugDescription) has no bytes.")
    }

    /// How long the line break is that follows the picture's end.
    var lineBreakBehindPicture: Int? {
        let end: Int64
        if let known = content.picture.end {
            end = known
        } else if detected == .gif, content.tail.suffix(3).elementsEqual([0x3B, 0x0D, 0x0A]) {
            end = content.size - 2
        } else {
            return nil
        }
        let excess = content.size - end
        if excess == 2, content.tail.suffix(2).elementsEqual("\r\n".utf8) { return 2 }
        return excess == 1 && content.tail.last == .lineFeed ? 1 : nil
    }

    private var extraLineBreak: Finding? {
        guard let length = lineBreakBehindPicture else { return nil }
        let place = offset + content.size - Int64(length)
        return finding(
            .extraLineBreakBeforeDelimiter, at: place, length: length,
            "The picture has ended, and a line break follows it that is part of the file.",
            edits: [Edit(at: place, length: Int64(length), [])])
    }

    private var truncated: Finding? {
        guard content.picture.isCut(at: content.size) else { return nil }
        return finding(
            .truncatedPicture, at: offset + content.size,
            "The picture breaks off after \(content.size) bytes, before its format ends.")
    }

    private var location: Finding? {
        guard let index = TIFFBlock(content.picture.exif)?.locationEntry else { return nil }
        return finding(
            .locationInPhoto, at: offset + content.picture.exifOffset + index, length: 12,
            "The photo's EXIF contains the place where it was taken.")
    }
}

/// What is kept of a part's content while it is read: its digest, its first and last bytes, and where its format ends.
struct PartContent: Sendable {
    private(set) var size: Int64 = 0
    private(set) var start: [UInt8] = []
    /// The last bytes.
    private(set) var tail: [UInt8] = []
    private(set) var picture = ArrivingPicture()
    private var hash = SHA256()
    /// How many of the first bytes are kept.
    private let sample: Int

    /// - Parameter isPolicy: Whether it is the policy of a form for an object store, which is read whole.
    init(isPolicy: Bool = false) {
        sample = isPolicy ? Self.policySample : Self.textSample
    }

    /// Enough to distinguish text from other bytes.
    static let textSample = 4 << 10
    /// More than stores accept before a file.
    private static let policySample = 64 << 10
    private static let tailBytes = 8

    var sha256: String { hash.finalize().hexadecimal }

    mutating func read(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        size += Int64(bytes.count)
        hash.update(bufferPointer: bytes)
        start += bytes.prefix(max(sample - start.count, 0))
        picture.read(bytes)
        tail += bytes.suffix(Self.tailBytes)
        tail.removeFirst(max(tail.count - Self.tailBytes, 0))
    }

    /// Whether all of it is in ``start``.
    var isWhole: Bool { size == Int64(start.count) }

    /// The whole text, of a short content in UTF-8.
    var text: String? { isWhole && size <= Int64(sample) ? String(validating: start, as: UTF8.self)?.streamSafe : nil }

    /// The text, or as many of its first words as there are; `nil` if it is not in UTF-8.
    var words: String? {
        if isWhole { return String(validating: start, as: UTF8.self)?.streamSafe }
        let beginning = (0...3).lazy.compactMap { String(validating: start.dropLast($0), as: UTF8.self)?.streamSafe }
            .first
        return beginning.map { String($0[..<($0.lastIndex { $0.isASCII && $0.isWhitespace } ?? $0.endIndex)]) }
    }

    /// How many of the first bytes are UTF-8.
    var validUTF8Count: Int {
        var iterator = start.makeIterator()
        var parser = Unicode.UTF8.ForwardParser()
        var count = 0
        while case .valid(let scalar) = parser.parseScalar(from: &iterator) { count += scalar.count }
        return count
    }

    /// Whether the first bytes are UTF-8, a character that is cut off at their end aside.
    var isUTF8: Bool {
        if isWhole { return String(validating: start, as: UTF8.self) != nil }
        return (0...3).contains { String(validating: start.dropLast($0), as: UTF8.self) != nil }
    }
}
