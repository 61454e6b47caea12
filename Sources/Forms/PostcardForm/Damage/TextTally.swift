import PostcardPictureFormats

/// Counts characters of a file that may be UTF-8. The bytes arrive in chunks of any size.
struct TextTally: Sendable {
    private(set) var isUTF8 = true
    /// The numbers of characters that are not ASCII.
    private(set) var replacements = 0, latin = 0, others = 0
    /// The offset of the first character that is not ASCII.
    private(set) var firstCharacter: Int64?
    /// The number of control characters that text does not have.
    private(set) var controls = 0
    /// The numbers of `?`, and of its neighbors in ASCII, `>` and `@`.
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
/// In compressed data all bytes are equally frequent, and so are all pairs of bytes. A pair of CR and LF therefore
/// occurs soon, and the rest of the file is not read.
struct LineBreakTally: Sendable {
    /// The number of line feeds without a CR before them. It is exact as long as there is no pair of CR and LF.
    private(set) var loneLineFeeds = 0
    /// The number of pairs of CR and LF. It is exact as long as there is no lone line feed.
    private(set) var pairs = 0
    private(set) var firstPair: Int64?
    private(set) var carriageReturns = 0
    /// The number of pairs of LF and CR in compressed data, where they are as frequent as CR and LF.
    private(set) var otherPairs = 0

    /// The number of bytes of compressed data that are in ``controls``, and which of these bytes occurred.
    private var controlCount = 0
    private var kinds: UInt16 = 0

    private var position: Int64 = 0
    private var previous: UInt8 = 0

    /// The control bytes that texts do not have.
    private static let controls: ClosedRange<UInt8> = 0x0E...0x1D

    /// How often each byte value occurs in the compressed data, on average.
    var expected: Double { Double(controlCount) / Double(Self.controls.count) }
    /// Whether many different bytes were seen. A repeated pattern has only a few.
    var isVaried: Bool { kinds == .max }

    /// - Parameter isData: Whether the bytes are compressed data.
    mutating func read(_ bytes: UnsafeRawBufferPointer, isData: Bool) {
        var index = 0
        while index < bytes.count, loneLineFeeds == 0 || carriageReturns == 0 || pairs == 0 {
            // The byte after a CR is examined too.
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

    /// Counts the bytes of a piece without CR.
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

    /// Whether compressed data has too few pairs of CR and LF for that to be chance.
    var lacksPairs: Bool {
        guard pairs == 0 else { return false }
        if carriageReturns == 0 { return isVaried && expected >= 16 }
        return otherPairs >= 12 && otherPairs * 64 <= loneLineFeeds
    }

    /// Whether this many CRs before LFs may have been removed.
    ///
    /// - Parameter lineFeeds: The number of lone line feeds in the bytes that lack the CRs.
    func mayLack(_ count: Int64, before lineFeeds: Int) -> Bool {
        guard pairs == 0, count <= lineFeeds else { return false }
        let count = Double(count)
        // The number in compressed data alone.
        let ofData = expected / 256
        if abs(count - ofData) <= max(1, 3 * ofData.squareRoot() + 0.4) { return true }
        // All lines of a text ended in CRLF.
        let spread = (expected + 1).squareRoot()
        return count > 2 * spread + 3 && abs(count - (Double(lineFeeds) - expected)) <= 3 * spread
    }
}
