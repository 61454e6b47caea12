/// Reads UTF-8 byte by byte (RFC 3629 §4).
package struct UTF8Decoder: Sendable {
    package enum Result {
        case incomplete
        /// A character is complete, with its length in bytes.
        case scalar(Unicode.Scalar, length: Int)
        /// The bytes are not UTF-8. The first wrong byte is `start` bytes before the byte that was decoded.
        case malformed(start: Int)
    }

    /// How many bytes of an incomplete character have been read.
    package private(set) var pending = 0
    /// How many bytes an incomplete character still needs.
    package private(set) var missing = 0
    private var value: UInt32 = 0
    /// What the next byte may be, which is how overlong forms, surrogates and too large values are kept out.
    private var next: ClosedRange<UInt8> = 0x80...0xBF

    package init() {}

    package mutating func decode(_ byte: UInt8) -> Result {
        guard missing > 0 else { return begin(byte) }
        guard next.contains(byte) else { return .malformed(start: pending) }
        value = value << 6 | UInt32(byte & 0x3F)
        pending += 1
        missing -= 1
        next = 0x80...0xBF
        guard missing == 0 else { return .incomplete }
        let length = pending
        pending = 0
        return Unicode.Scalar(value).map { .scalar($0, length: length) } ?? .malformed(start: length - 1)
    }

    private mutating func begin(_ byte: UInt8) -> Result {
        switch byte {
        case 0..<0x80: return .scalar(Unicode.Scalar(byte), length: 1)
        case 0xC2...0xDF: expect(1, byte & 0x1F, 0x80...0xBF)
        case 0xE0: expect(2, byte & 0x0F, 0xA0...0xBF)
        case 0xED: expect(2, byte & 0x0F, 0x80...0x9F)
        case 0xE1...0xEF: expect(2, byte & 0x0F, 0x80...0xBF)
        case 0xF0: expect(3, byte & 0x07, 0x90...0xBF)
        case 0xF1...0xF3: expect(3, byte & 0x07, 0x80...0xBF)
        case 0xF4: expect(3, byte & 0x07, 0x80...0x8F)
        default: return .malformed(start: 0)
        }
        return .incomplete
    }

    private mutating func expect(_ count: Int, _ bits: UInt8, _ range: ClosedRange<UInt8>) {
        missing = count
        value = UInt32(bits)
        next = range
        pending = 1
    }
}
