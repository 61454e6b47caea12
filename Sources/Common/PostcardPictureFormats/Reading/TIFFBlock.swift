/// The byte order of the numbers in a TIFF structure (TIFF 6.0 §2).
struct TIFFByteOrder {
    private let isLittleEndian: Bool

    /// Reads the byte order from the first bytes of a TIFF structure; `nil` if the bytes do not begin a TIFF structure.
    init?(header: some Collection<UInt8>) {
        isLittleEndian = header.starts(with: [0x49, 0x49, 0x2A, 0])
        guard isLittleEndian || header.starts(with: [0x4D, 0x4D, 0, 0x2A]) else { return nil }
    }

    /// The number in up to seven bytes.
    func number(_ bytes: some Collection<UInt8>) -> Int64 { isLittleEndian ? bytes.littleEndian : bytes.bigEndian }

    func encoded(_ number: Int64, bytes count: Int) -> [UInt8] {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * Int64($0))) }
        return isLittleEndian ? bytes : bytes.reversed()
    }
}

/// The TIFF structure of EXIF, or its first bytes, in memory (TIFF 6.0 §2, Exif 3.0 §4.5).
package struct TIFFBlock {
    let bytes: [UInt8]
    let order: TIFFByteOrder

    /// Makes a block from its bytes. `nil` if they do not begin a TIFF structure.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count >= 8, let order = TIFFByteOrder(header: bytes) else { return nil }
        self.bytes = bytes
        self.order = order
    }

    /// A number of up to four bytes; `nil` if the offset is outside of the structure.
    func number(at offset: Int64, bytes count: Int) -> Int64? {
        guard offset >= 0, offset <= Int64(bytes.count - count) else { return nil }
        let start = Int(clamping: offset)
        return order.number(bytes[start..<(start + count)])
    }

    /// The offset of the entry with a tag in a directory; `nil` if there is none.
    func entry(tag: Int64, in directory: Int64) -> Int64? {
        guard let count = number(at: directory, bytes: 2) else { return nil }
        return (0..<count).lazy.map { directory + 2 + 12 * $0 }.first { number(at: $0, bytes: 2) == tag }
    }

    /// The offset of the entry for the GPS directory, if that directory has a latitude (Exif 3.0 §4.6.3).
    package var locationEntry: Int64? {
        guard let first = number(at: 4, bytes: 4), let entry = entry(tag: 0x8825, in: first),
            let directory = number(at: entry + 8, bytes: 4), self.entry(tag: 2, in: directory) != nil
        else { return nil }
        return entry
    }

    /// The orientation of the picture, from 1 to 8; `nil` if it is missing or invalid.
    package var orientation: Int64? {
        guard let first = number(at: 4, bytes: 4), let entry = entry(tag: 0x0112, in: first),
            number(at: entry + 2, bytes: 2) == 3, let value = number(at: entry + 8, bytes: 2), (1...8).contains(value)
        else { return nil }
        return value
    }
}

extension Collection<UInt8> {
    /// The bytes as a big-endian number. Up to seven bytes never make a negative number.
    var bigEndian: Int64 { reduce(0) { $0 << 8 | Int64($1) } }

    var littleEndian: Int64 { reversed().bigEndian }
}
