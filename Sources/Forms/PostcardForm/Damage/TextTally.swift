import PostcardPictureFormats

/// Counts characters in a file that may be UTF-8. The bytes arrive in chunks of any size.
struct TextTally: Sendable {
    private(set) var isUTF8 = true
    /// The numbers of U+FFFD, of Latin-1 characters, and of other characters outside of ASCII.
    private(set) var replacements = 0, latin = 0, others = 0
    /// The offset of the first character outside of ASCII.
    private(set) var firstCharacter: Int64?
    /// The number of control characters that do not occur in texts.
    private(set) var controls = 0
    /// The number of `?`. For comparison, `neighbors` counts `>` and `@`, the characters next to `?` in ASCII.
    private(set) var questionMarks = 0, neighbors = 0
    private(set) var firstQuestionMark: Int64?

    private var position: Int64 = 0
    private var decoder = UTF8Decoder()

    mutating func read(_ bytes: UnsafeRawBufferPointer) {
        var index = 0
        while index < bytes.count, isUTF8 {
            switch decoder.decode(bytes[index]) {
            case .incomplete: break
            case .malformed: isUTF8 = false
            case .scalar(let scalar, length: 1): count(UInt8(truncatingIfNeeded: scalar.value))
            case .scalar(let scalar, let length):
                firstCharacter = firstCharacter ?? position - Int64(length - 1)
                switch scalar.value {
                case 0xFFFD: replacements += 1
                case ..<0x100: latin += 1
                default: others += 1
                }
            }
            index += 1
            position += 1
        }
    }

    private mutating func count(_ byte: UInt8) {
        switch byte {
        case .tab, .lineFeed, .carriageReturn, 0x0C: break
        case 0..<0x20: controls += 1
        case 0x3E, 0x40: neighbors += 1
        case 0x3F:
            questionMarks += 1
            firstQuestionMark = firstQuestionMark ?? position
        default: break
        }
    }
}

/// Counts the line breaks of a file. The bytes arrive in chunks of any size.
///
/// Counting stops once a CR, an LF without CR and a pair of CR and LF have occurred. In compressed data, that is soon,
/// because all bytes and all pairs of bytes are equally frequent.
struct LineBreakTally: Sendable {
    /// The number of LFs without CR. It is exact until the first pair of CR and LF.
    private(set) var loneLineFeeds = 0
    /// The number of pairs of CR and LF. It is exact until the first LF without CR.
    private(set) var pairs = 0
    private(set) var firstPair: Int64?
    private(set) var carriageReturns = 0
    /// The number of pairs of LF and CR in compressed data, where both orders are equally frequent.
    private(set) var otherPairs = 0

    /// The number of ``controls`` in compressed data. `kinds` has a bit for each value that occurred.
    private var controlCount = 0
    private var kinds: UInt16 = 0

    private var position: Int64 = 0
    private var previous: UInt8 = 0

    /// Control bytes that do not occur in texts.
    private static let controls: ClosedRange<UInt8> = 0x0E...0x1D

    /// The average number of times that a byte value occurs in the compressed data.
    var expected: Double { Double(controlCount) / Double(Self.controls.count) }
    /// Whether all control bytes occurred, which excludes a repeated pattern.
    var isVaried: Bool { kinds == .max }

    /// Counts the line breaks in the next bytes. `isData` says whether the bytes are compressed data.
    mutating func read(_ bytes: UnsafeRawBufferPointer, isData: Bool) {
        var index = 0
        while index < bytes.count, loneLineFeeds == 0 || carriageReturns == 0 || pairs == 0 {
            // The byte after a CR may complete a pair.
            if loneLineFeeds > 0, carriageReturns > 0, previous != .carriageReturn {
                let next = bytes.firstIndex(of: .carriageReturn, from: index)
                if next > index {
                    pass(UnsafeRawBufferPointer(rebasing: bytes[index..<next]), isData: isData)
                    index = next
                }
            }
            if index < bytes.count { read(bytes[index], isData: isData) }
            index += 1
        }
        position += Int64(max(bytes.count - index, 0))
        if let last = bytes.last { previous = last }
    }

    /// Counts LFs and controls in bytes that contain no CR.
    private mutating func pass(_ bytes: UnsafeRawBufferPointer, isData: Bool) {
        var lineFeeds = 0, found = 0
        for byte in bytes {
            lineFeeds += byte == .lineFeed ? 1 : 0
            found += byte &- Self.controls.lowerBound < 16 ? 1 : 0
        }
        loneLineFeeds += lineFeeds
        if isData { controlCount += found }
        position += Int64(bytes.count)
        previous = bytes.last ?? previous
    }

    @inline(__always)
    private mutating func read(_ byte: UInt8, isData: Bool) {
        switch byte {
        case .lineFeed where previous == .carriageReturn:
            pairs += 1
            firstPair = firstPair ?? position - 1
        case .lineFeed: loneLineFeeds += 1
        case .carriageReturn:
            carriageReturns += 1
            if isData, previous == .lineFeed { otherPairs += 1 }
        case Self.controls where isData:
            controlCount += 1
            kinds |= 1 << UInt16(byte - Self.controls.lowerBound)
        default: break
        }
        previous = byte
        position += 1
    }

    /// Whether compressed data has fewer pairs of CR and LF than chance would produce.
    var lacksPairs: Bool {
        guard pairs == 0 else { return false }
        if carriageReturns == 0 { return isVaried && expected >= 16 }
        return otherPairs >= 12 && otherPairs * 64 <= loneLineFeeds
    }

    /// Whether it is plausible that this many CRs were removed before LFs. `lineFeeds` is the number of LFs without CR
    /// in the damaged bytes.
    func mayLack(_ count: Int64, before lineFeeds: Int) -> Bool {
        guard pairs == 0, count <= lineFeeds else { return false }
        let count = Double(count)
        // The expected number if all bytes are compressed data.
        let ofData = expected / 256
        if abs(count - ofData) <= max(1, 3 * ofData.squareRoot() + 0.4) { return true }
        // The expected number if all lines of a text ended in CRLF.
        let spread = (expected + 1).squareRoot()
        return count > 2 * spread + 3 && abs(count - (Double(lineFeeds) - expected)) <= 3 * spread
    }
}
