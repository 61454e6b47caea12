/// Bytes of URLs and extended values that are written as `%` and two hexadecimal digits (RFC 3986 §2.1).
package enum PercentEncoding {
    /// The bytes with their escapes undone. A percent sign that begins no escape stays, and is not well-formed.
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

    /// The offset at which a decoded byte was written.
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
