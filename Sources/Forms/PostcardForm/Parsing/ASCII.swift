/// Bytes and classes of bytes in the grammars of forms.
extension UInt8 {
    package static let tab = UInt8(ascii: "\t")
    package static let lineFeed = UInt8(ascii: "\n")
    package static let carriageReturn = UInt8(ascii: "\r")
    package static let space = UInt8(ascii: " ")
    package static let quote = UInt8(ascii: "\"")
    package static let percent = UInt8(ascii: "%")
    package static let dash = UInt8(ascii: "-")
    package static let slash = UInt8(ascii: "/")
    package static let colon = UInt8(ascii: ":")
    package static let comma = UInt8(ascii: ",")
    package static let semicolon = UInt8(ascii: ";")
    package static let equals = UInt8(ascii: "=")
    package static let backslash = UInt8(ascii: "\\")

    package var isDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }

    package var isLetter: Bool { asciiLowercased >= UInt8(ascii: "a") && asciiLowercased <= UInt8(ascii: "z") }

    package var isLetterOrDigit: Bool { isLetter || isDigit }

    /// Whether the byte is a space or tab: `WSP` of RFC 5234, which may also pad a delimiter.
    package var isBlank: Bool { self == .space || self == .tab }

    /// Whether the byte is a `tchar` of RFC 9110 §5.6.2.
    package var isTokenCharacter: Bool { ByteClass.token.contains(self) }

    /// Whether the byte is a `bchars` of RFC 2046 §5.1.1.
    package var isBoundaryCharacter: Bool { ByteClass.boundary.contains(self) }

    /// Whether the byte is a control character that is forbidden in a header field's value (RFC 9110 §5.5).
    var isForbiddenInValue: Bool { (self < 0x20 && self != .tab) || self == 0x7F }

    package var asciiLowercased: UInt8 {
        self >= UInt8(ascii: "A") && self <= UInt8(ascii: "Z") ? self | 0x20 : self
    }

    /// The value of a hexadecimal digit; `nil` for any other byte.
    package var hexadecimalValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension Collection<UInt8> {
    /// Whether the bytes equal a text, ignoring case.
    package func isEqualIgnoringCase(_ text: String) -> Bool { isEqualIgnoringCase(text.utf8) }

    /// Whether the bytes equal other bytes, ignoring case.
    package func isEqualIgnoringCase(_ other: some Collection<UInt8>) -> Bool {
        guard count == other.count else { return false }
        // Comparing contiguous storage avoids a call for each byte, because the generic function is not specialized
        // across modules.
        let isEqual = withContiguousStorageIfAvailable { bytes in
            other.withContiguousStorageIfAvailable { isEqualIgnoringCase(bytes, $0) }
        }
        return (isEqual ?? nil) ?? Array(self).isEqualIgnoringCase(Array(other))
    }

    private func isEqualIgnoringCase(_ one: UnsafeBufferPointer<UInt8>, _ other: UnsafeBufferPointer<UInt8>) -> Bool {
        zip(one, other).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }
}

extension Sequence<UInt8> {
    /// The bytes as hexadecimal digits in lower case, two for each byte.
    package var hexadecimal: String {
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value }
        // An array is read without a call for each byte, which matters because signing a request takes several digests.
        let bytes = Array(self)
        return String(unsafeUninitializedCapacity: 2 * bytes.count) { digits in
            for (index, byte) in bytes.enumerated() {
                digits[2 * index] = digit(byte >> 4)
                digits[2 * index + 1] = digit(byte & 15)
            }
            return 2 * bytes.count
        }
    }
}

/// A set of ASCII bytes as 128 bits, for fast lookup of every byte in a header.
private struct ByteClass {
    private let bits: (low: UInt64, high: UInt64)

    // Literals need no initialization check, unlike computed constants.
    /// Token characters: letters, digits and ``!#$%&'*+-.^_`|~``.
    static let token = ByteClass(bits: (low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE))
    /// Boundary characters: letters, digits and `'()+_,-./:=? `.
    static let boundary = ByteClass(bits: (low: 0xA7FF_FB81_0000_0000, high: 0x07FF_FFFE_87FF_FFFE))

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        switch byte {
        case 0..<64: bits.low >> UInt64(byte) & 1 == 1
        case 64..<128: bits.high >> UInt64(byte - 64) & 1 == 1
        default: false
        }
    }
}

/// Decodes percent-encoded bytes: `%` and two hexadecimal digits (RFC 3986 §2.1).
package enum PercentEncoding {
    /// The decoded bytes. A percent sign that begins no escape is kept, and the result is then not well-formed.
    package static func decoded(_ bytes: some Collection<UInt8>) -> (bytes: [UInt8], isWellFormed: Bool) {
        let bytes = Array(bytes)
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var isWellFormed = true
        var index = 0
        while index < bytes.count {
            let escaped = escapedByte(in: bytes, at: index)
            if escaped == nil, bytes[index] == .percent { isWellFormed = false }
            decoded.append(escaped ?? bytes[index])
            index += escaped == nil ? 1 : 3
        }
        return (decoded, isWellFormed)
    }

    /// The offset of a decoded byte in the encoded bytes.
    static func offset(ofDecoded index: Int, in bytes: [UInt8]) -> Int {
        (0..<index).reduce(0) { offset, _ in offset + (escapedByte(in: bytes, at: offset) == nil ? 1 : 3) }
    }

    private static func escapedByte(in bytes: [UInt8], at index: Int) -> UInt8? {
        guard bytes[index] == .percent, index + 2 < bytes.count, let high = bytes[index + 1].hexadecimalValue,
            let low = bytes[index + 2].hexadecimalValue
        else { return nil }
        return high << 4 | low
    }
}
