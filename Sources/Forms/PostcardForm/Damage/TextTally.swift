/// Counts the characters of a file, as its bytes arrive in chunks of any size, as long as they are UTF-8.
struct TextTally: Sendable {
    private(set) var isUTF8 = true
    /// Characters that are not ASCII.
    private(set) var replacements = 0, latin = 0, others = 0
    /// The offset of the first character that is not ASCII.
    private(set) var firstCharacter: Int64?
    /// Control characters that no text has.
    private(set) var controls = 0
    /// `>` and `@` are the neighbors of `?`.
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
