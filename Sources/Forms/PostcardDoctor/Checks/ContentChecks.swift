import Crypto
import PostcardForm
import PostcardFoundation
import PostcardPictureFormats

/// Checks the content of a part, once all of it has been read.
struct ContentChecks {
    let header: HeaderReading
    let content: PartContent
    /// The offset of the content, counted from the start of the body.
    let offset: Int64
    let partIndex: Int
    /// Whether the body ended inside the content.
    let isCutOff: Bool

    /// The damage to the file's bytes; `nil` if there is none, or if another finding reports it.
    private let damage: FileDamage?

    init(header: HeaderReading, content: PartContent, offset: Int64, partIndex: Int, isCutOff: Bool) {
        self.header = header
        self.content = content
        self.offset = offset
        self.partIndex = partIndex
        self.isCutOff = isCutOff
        damage = content.file.damage(isWhole: !isCutOff)
    }

    var findings: [Finding] {
        let type = type ?? HeaderChecks(header: header, partIndex: partIndex).mediaType
        var found = [value, mojibake, damaged, type, filename, textWithFilename, notUTF8, location].compactMap { $0 }
        if !isCutOff { found += [empty, extraLineBreak].compactMap({ $0 }) }
        return found
    }

    private func finding(
        _ code: FormProblem.Code, at place: Int64? = nil, length: Int = 0, _ message: String, advice: String? = nil,
        edits: [Edit]? = nil
    ) -> Finding {
        Finding(
            code, at: place ?? offset, length: length, part: partIndex, message, advice: advice, edits: edits)
    }

    /// The media type in the part's header, without parameters.
    private var announced: String? {
        header.contentType.map { type in
            let essence = type.utf8.prefix { $0 != .semicolon && !$0.isBlank }
            return String(streamSafe: essence.map { $0.asciiLowercased })
        }
    }

    private var detected: MediaType? { MediaType.forFirstBytes(content.start) }

    private static let pictures: Set<MediaType> = [
        .jpeg, .png, .gif, .webP, .heic, .heif, .avif, .tiff, .bmp, .pdf,
    ]

    /// The picture type that the part's header announces, with its spelling corrected.
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
        let isInPlaceOfFile =
            content.file.promisesBinary && detected == nil && damage.map { $0.cause == .text } ?? true
        guard !header.isFile || isInPlaceOfFile, announced != "application/json", let text = content.text,
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
        // A blank that is not ASCII may be a byte of a misread character, so it separates no words.
        let words = text.split { $0.isASCII && $0.isWhitespace }
        guard let word = words.first(where: { Mojibake.undone(String($0)) != nil }) else { return nil }
        let place = offset + Int64(text.utf8.distance(from: text.startIndex, to: word.startIndex))
        let meant = Mojibake.undone(String(word)) ?? ""
        let example = word.count > 30 ? "." : ": \(String(word).debugDescription) was \(meant.debugDescription)."
        return finding(.mojibake, at: place, length: word.utf8.count, "The text is UTF-8 read as Latin-1\(example)")
    }

    private var notUTF8: Finding? {
        // A charset that the form names for its texts makes no difference, because few receivers read it.
        guard !header.isFile, let malformed, fileWithoutFilename == nil else { return nil }
        return finding(.textNotUTF8, at: offset + malformed, length: 1, "The text is not in UTF-8.")
    }

    /// The offset in the content of the first bytes that are not UTF-8.
    private var malformed: Int64? { content.firstMalformed(isWhole: !isCutOff) }

    private var textWithFilename: Finding? {
        guard let filename = header.filename, !filename.isEmpty, content.size > 0, content.size <= 200,
            !filename.utf8.contains(UInt8(ascii: ".")), header.contentType == nil || announced == "text/plain",
            let text = content.text,
            text.unicodeScalars.allSatisfy({ $0.value >= 0x20 || $0 == "\n" || $0 == "\r" || $0 == "\t" })
        else { return nil }
        return finding(
            .textWithFilename, at: header.filenameValue?.offset, length: filename.utf8.count,
            "A short text has the filename \(filename.quoted), which makes a file of it.")
    }
}

// MARK: - Types

extension ContentChecks {
    private var type: Finding? {
        guard let field = header.contentTypeField, let announcedPicture, content.size > 0 else { return nil }
        if let damage, damage.cause != .cut, damage.cause != .text { return nil }
        if let detected {
            guard detected != announcedPicture, !Self.areAlike(detected, announcedPicture) else { return nil }
            return finding(
                .contentContradictsType, at: field.offset, length: field.bytes.count,
                "The Content-Type is \(announced ?? "") and the bytes are \(detected).",
                // Without a slash, the Content-Type is no media type, so it is unknown which type the sender meant.
                edits: field.essence.contains(.slash)
                    ? [Edit(at: field.offset, length: Int64(field.essence.count), detected.value.utf8)] : nil)
        }
        guard damage?.cause == .text, content.size >= 16, value == nil else { return nil }
        return finding(
            .contentContradictsType, at: field.offset, length: field.bytes.count,
            "The Content-Type is \(announced ?? "") and the content is text.")
    }

    /// Whether files of both types may have the same first bytes, as HEIC, HEIF and AVIF pictures do.
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
                || (malformed != nil && !type.hasPrefix("text/"))
        }
        guard isPicture || isAnnounced == true else { return nil }
        // Receivers read a part without a filename as text. They replace bytes that are not UTF-8: the file is damaged.
        return finding(
            .fileWithoutFilename, at: header.offset,
            "The part is a file by its \(isAnnounced == true ? "type" : "content") and has no filename."
        ).weighing(malformed == nil ? .warning : .error)
    }
}

// MARK: - Bytes

extension ContentChecks {
    private var damaged: Finding? {
        guard let damage, value == nil else { return nil }
        let place = offset + damage.offset
        // If the header announces a picture, another finding reports that the content is text.
        if damage.cause == .text, announcedPicture != nil || content.size < 16 { return nil }
        let found = finding(damage.code, at: place, length: damage.length, damage.message)
        return damage.isProven ? found : found.weighing(.warning)
    }

    private var empty: Finding? {
        guard let filename = header.filename, !filename.isEmpty, content.size == 0 else { return nil }
        return finding(.emptyFile, "The file \(filename.quoted) has no bytes.")
    }

    /// The length of the line break after the end of the picture; `nil` if there is none.
    var lineBreakBehindPicture: Int? {
        guard let end = content.picture.end, damage == nil else { return nil }
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

    private var location: Finding? {
        guard let index = TIFFBlock(content.picture.exif)?.locationEntry else { return nil }
        return finding(
            .locationInPhoto, at: offset + content.picture.exifOffset + index, length: 12,
            "The photo's EXIF contains the place where it was taken.")
    }
}

/// Facts about a part's content, collected while it is read: digest, first and last bytes, and a picture's end.
struct PartContent: Sendable {
    private(set) var size: Int64 = 0
    private(set) var start: [UInt8] = []
    /// The last bytes of the content.
    private(set) var tail: [UInt8] = []
    private(set) var file: FileDamageDetector
    private var hash = SHA256()
    /// Whether the part has no filename, so that its content may be text. All of the content is then checked for UTF-8.
    private let mayBeText: Bool
    private var decoder = UTF8Decoder()
    private var malformed: Int64?
    /// The number of bytes to keep from the start of the content.
    private let sample: Int

    /// Begins to collect facts about a part's content. `isPolicy` says whether the part is the policy of a form for an
    /// object store. More bytes of a policy are kept than of other parts.
    init(contentType: String?, filename: String?, isPolicy: Bool = false) {
        file = FileDamageDetector(contentType: contentType, filename: filename)
        sample = isPolicy ? Self.policySample : Self.textSample
        mayBeText = filename == nil
    }

    var picture: ArrivingPicture { file.picture }

    /// The number of first bytes that are enough to distinguish text from other content.
    static let textSample = 4 << 10
    /// The number of bytes to keep of a policy: more than object stores accept before the file.
    private static let policySample = 64 << 10
    private static let tailBytes = 8

    /// Whether the content seems complete: a JPEG or PNG with its end, or content whose first bytes have no line break.
    /// A text with line breaks may have lost its end.
    var seemsWhole: Bool {
        switch MediaType.forFirstBytes(start) {
        case .jpeg?: tail.suffix(2).elementsEqual(PictureEnd.jpeg)
        case .png?: tail.elementsEqual(PictureEnd.png)
        default: !start.contains(.lineFeed)
        }
    }

    var sha256: String { hash.finalize().hexadecimal }

    mutating func read(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        if mayBeText, malformed == nil { decode(bytes) }
        size += Int64(bytes.count)
        hash.update(bufferPointer: bytes)
        start += bytes.prefix(max(sample - start.count, 0))
        file.read(bytes)
        // The buffer is a collection, so `suffix` reads only the last bytes.
        tail += UnsafeRawBufferPointer(rebasing: bytes.suffix(Self.tailBytes))
        tail.removeFirst(max(tail.count - Self.tailBytes, 0))
    }

    var isWhole: Bool { size == Int64(start.count) }

    /// The whole content as text, if it is short and in UTF-8.
    var text: String? { isWhole && size <= Int64(sample) ? String(validating: start, as: UTF8.self)?.streamSafe : nil }

    /// The whole content as text, or the first words of a long content; `nil` if the content is not in UTF-8.
    var words: String? {
        if isWhole { return String(validating: start, as: UTF8.self)?.streamSafe }
        let beginning = (0...3).lazy.compactMap { String(validating: start.dropLast($0), as: UTF8.self)?.streamSafe }
            .first
        return beginning.map { String($0[..<($0.lastIndex { $0.isASCII && $0.isWhitespace } ?? $0.endIndex)]) }
    }

    private mutating func decode(_ bytes: UnsafeRawBufferPointer) {
        let start = bytes.prefix(decoder.missing).count
        let cut = bytes[start...].suffix(3).lastIndex { $0 >= 0xC0 } ?? bytes.endIndex
        decode(bytes, in: 0..<start)
        guard malformed == nil else { return }
        // `String(validating:)` does not report the position of the first invalid character.
        let isValid = String(validating: bytes[start..<cut], as: UTF8.self) != nil
        decode(bytes, in: isValid ? cut..<bytes.endIndex : start..<bytes.endIndex)
    }

    private mutating func decode(_ bytes: UnsafeRawBufferPointer, in range: Range<Int>) {
        for index in range {
            guard case .malformed(let before) = decoder.decode(bytes[index]) else { continue }
            return malformed = size + Int64(index - before)
        }
    }

    /// The offset of the first bytes that are not UTF-8, in a part without a filename; `nil` if all bytes are UTF-8. If
    /// the content is whole, a character cut off at its end is malformed.
    func firstMalformed(isWhole: Bool) -> Int64? {
        malformed ?? (isWhole && decoder.pending > 0 ? size - Int64(decoder.pending) : nil)
    }
}
