package import PostcardPictureFormats

/// Finds damage to a file by a program that treated its bytes as text. The bytes arrive in chunks of any size.
///
/// The detector compares the declared type, the first bytes, and the lengths in the file's container. It ignores files
/// that may be text.
package struct FileDamageDetector: Sendable {
    /// The structure of the file as a picture, as far as it was read.
    package private(set) var picture = ArrivingPicture()
    package private(set) var size: Int64 = 0

    private var start: DamagedStart
    private var tail = FileTail()
    private var text = TextTally()
    private var breaks = LineBreakTally()
    private var state = State.beginning

    private enum State {
        case beginning
        case counting(FileFormat)
        case passing
    }

    /// The number of bytes to read before the format is determined.
    private static let beginningBytes = 48

    /// Begins to read a file with this declared media type and filename, if the part has them.
    package init(contentType: String?, filename: String?) {
        start = DamagedStart(contentType: contentType, filename: filename)
        if start.promise == .text { state = .passing }
    }

    /// Whether the declared type or the filename promises a format that is not text.
    package var promisesBinary: Bool { start.promise.format != nil }

    package mutating func read(_ bytes: UnsafeRawBufferPointer) {
        let offset = size
        size += Int64(bytes.count)
        picture.read(bytes)
        start.read(bytes)
        if case .beginning = state, start.bytes.count >= Self.beginningBytes {
            state = start.format.map { .counting($0) } ?? .passing
        }
        if case .passing = state { return }
        text.read(bytes)
        readLineBreaks(bytes, from: offset)
        let isKept = if case .counting(let format) = state { format == .zip || format == .pdf } else { true }
        tail.read(bytes, isKept: isKept)
    }

    /// Counts the line breaks in the next bytes. In a JPEG, only the pixels count as compressed data. In any other
    /// file, all bytes do.
    private mutating func readLineBreaks(_ bytes: UnsafeRawBufferPointer, from offset: Int64) {
        guard picture.isJPEG else { return breaks.read(bytes, isData: true) }
        func index(of place: Int64?) -> Int { Int(min(max((place ?? .max) - offset, 0), Int64(bytes.count))) }
        let first = index(of: picture.pixelsStart), end = max(index(of: picture.end), first)
        for (range, isData) in [(0..<first, false), (first..<end, true), (end..<bytes.count, false)] {
            breaks.read(UnsafeRawBufferPointer(rebasing: bytes[range]), isData: isData)
        }
    }

    private var format: FileFormat? {
        switch state {
        case .beginning: start.format
        case .counting(let format): format
        case .passing: nil
        }
    }

    /// Whether the first bytes are those of a format.
    private func begins(as format: FileFormat) -> Bool { FileFormat(firstBytes: start.bytes) == format }

    /// The damage to the bytes; `nil` if there is no sign of damage. `isWhole` says whether no bytes follow.
    package func damage(isWhole: Bool) -> FileDamage? {
        if let damage = start.damage { return damage }
        guard let format else { return nil }
        let container = isWhole ? container(format) : .unknown
        if let damage = decoded(format, container) ?? lineBreaks(format, container) { return damage }
        return container == .cut ? FileDamage(.cut, at: size) : nil
    }
}

// MARK: - Containers

extension FileDamageDetector {
    /// The result of comparing the lengths in a file with the size of the file.
    private enum Container: Equatable {
        /// The lengths in the file contradict the size of the file.
        case broken
        case cut
        /// The file has this many more bytes than its lengths add up to, or fewer if the number is negative.
        case shifted(Int64)
        case unknown

        static let intact = shifted(0)
    }

    private func container(_ format: FileFormat) -> Container {
        guard begins(as: format) else { return .broken }
        switch format {
        case .zip: return container(tail.archive(of: size), of: format)
        case .pdf: return container(tail.document(of: size), of: format)
        case .other: return .unknown
        default: break
        }
        if picture.isCut(at: size) {
            guard let missing = picture.missing(at: size), breaks.mayLack(missing, before: breaks.loneLineFeeds)
            else { return .cut }
            return .shifted(-missing)
        }
        if picture.firstStray != nil || picture.endsInTrailer { return .broken }
        let isExact = format == .webP || format == .gif || format == .boxes
        // Other data often follows a JPEG or PNG, so additional bytes are no sign of damage.
        return isExact ? .shifted(max(size - (picture.lastEnd ?? size), 0)) : .intact
    }

    private func container(_ end: FileTail.End, of format: FileFormat) -> Container {
        switch end {
        case .missing: return size < 4 ? .unknown : .cut
        case .unreadable: return .unknown
        case .shifted(0, _): return .intact
        case .shifted(let count, let lineFeeds):
            let isExplained =
                count < 0
                ? breaks.mayLack(-count, before: breaks.loneLineFeeds - lineFeeds)
                : format == .zip || count == Int64(breaks.pairs - lineFeeds)
            if isExplained { return .shifted(count) }
            // In a linearized PDF, the last cross-reference table is not at the end.
            return format == .zip ? .broken : .unknown
        }
    }
}

// MARK: - Text

extension FileDamageDetector {
    /// The comment that marks a PDF as binary by bytes outside of ASCII (ISO 32000-1 §7.5.2).
    private var comment: String {
        let line = start.bytes.drop { $0 != .lineFeed && $0 != .carriageReturn }.drop { $0 < 0x20 }
        guard begins(as: .pdf), line.first == .percent else { return "" }
        return String(decoding: line.dropFirst().prefix { $0 >= 0x20 }, as: UTF8.self)
    }

    /// Whether the binary bytes of a PDF's comment were decoded as text. Some programs write the comment in UTF-8.
    private var showsDecodedComment: Bool {
        comment.hasPrefix("????") || comment.unicodeScalars.first.map { $0.value >= 0x80 } == true
    }

    private var showsDecodedLatin: Bool {
        let first = comment.unicodeScalars.prefix(4)
        return first.count == 4 && first.allSatisfy { $0.value >= 0x80 } && !comment.hasPrefix("äüöß")
    }

    private func decoded(_ format: FileFormat, _ container: Container) -> FileDamage? {
        guard text.isUTF8, size > 0 else { return nil }
        let characters = text.replacements + text.latin + text.others
        // In formats that begin with ASCII, an intact file may contain text.
        let isKnown = begins(as: format) && (container != .unknown || showsDecodedComment)
        let enough = isKnown ? 1 : 8
        // A text that replaces the file has no control characters.
        let holdsData =
            text.controls >= (format == .pdf && isKnown ? 0 : enough) && (isKnown || text.controls * 64 >= size)
        guard holdsData else { return nil }
        if characters > 0 {
            // Only ZIP, PDF, and files with few characters outside of ASCII may contain text.
            let mayHoldText = format == .zip || format == .pdf || characters < 16
            guard container != .intact || !mayHoldText, characters >= enough else { return nil }
            let place = text.firstCharacter ?? 0
            if text.replacements * 4 >= characters { return FileDamage(.replaced, at: place, length: 3) }
            // People may write a PDF by hand, in UTF-8.
            let isDecoded = text.replacements == 0 && (format != .pdf || (showsDecodedLatin && text.controls > 0))
            return isDecoded ? FileDamage(.reencoded, at: place, length: 2) : nil
        }
        let marks = text.questionMarks
        let isUsual = marks < 4 || marks * 32 < size || marks < 8 * text.neighbors / 2
        let isBroken = container == .broken && format != .zip && FileFormat(firstBytes: start.bytes) != nil && marks > 0
        let isInDirectory = format == .zip && isKnown && tail.archiveHoldsQuestionMarks
        guard !isUsual || isBroken || isInDirectory else { return nil }
        return FileDamage(.ascii, at: text.firstQuestionMark ?? 0, length: 1)
    }
}

// MARK: - Line breaks

extension FileDamageDetector {
    private func lineBreaks(_ format: FileFormat, _ container: Container) -> FileDamage? {
        // The signature of a PNG already shows converted line breaks.
        guard format != .png, format != .other, begins(as: format) else { return nil }
        // The lengths in a JPEG do not include its pixels, so the pixels may be damaged although the lengths fit.
        if container == .intact, format != .jpeg { return nil }
        let isAtEnd = breaks.pairs == 1 && breaks.firstPair == size - 2
        if breaks.loneLineFeeds == 0, breaks.pairs > 0, !isAtEnd, isLengthened(container) {
            return FileDamage(.addedCarriageReturns, at: breaks.firstPair ?? 0, length: 2)
        }
        let isShortened = !text.isUTF8 && breaks.pairs == 0 && breaks.loneLineFeeds > 0
        guard isShortened, breaks.lacksPairs || explainsShortening(container) else { return nil }
        return FileDamage(.removedCarriageReturns, at: picture.firstStray ?? 0)
    }

    private func isLengthened(_ container: Container) -> Bool {
        switch container {
        case .broken: return true
        case .shifted(let count) where count != 0: return true
        case .cut where breaks.pairs >= 2: return true
        default:
            // A JPEG may contain text before its pixels. If the first CRLF is in the pixels, two of them show damage.
            if let start = picture.pixelsStart, let pair = breaks.firstPair, pair >= start { return breaks.pairs >= 2 }
            return breaks.isVaried && breaks.expected >= 8 && Double(breaks.pairs) >= max(6, breaks.expected / 4)
        }
    }

    private func explainsShortening(_ container: Container) -> Bool {
        switch container {
        case .broken, .cut: picture.resumesEarlier
        case .shifted(let count): count < 0
        case .unknown: false
        }
    }
}
