/// The directory of the items in a HEIC or AVIF file: the `meta` box of ISO/IEC 14496-12 §8.11.
enum PhotoItems {
    /// Where the item with the EXIF stands, counted from the file's start; `nil` where there is none that can be told.
    ///
    /// - Parameter meta: The box's content, as much of it as is there.
    static func exif(inMeta meta: [UInt8]) -> (offset: Int64, length: Int64)? {
        // Version and flags come first.
        let boxes = boxes(in: meta.dropFirst(4))
        guard let information = boxes.first(where: { $0.type == "iinf" }),
            let locations = boxes.first(where: { $0.type == "iloc" }), let item = item(in: information.content)
        else { return nil }
        return location(of: item, in: locations.content)
    }

    private static func boxes(in bytes: ArraySlice<UInt8>) -> [(type: String, content: ArraySlice<UInt8>)] {
        var boxes: [(type: String, content: ArraySlice<UInt8>)] = []
        var reader = NumberReader(bytes: bytes)
        while let size = reader.number(4), let type = reader.bytes(4), size >= 8 {
            let content = reader.rest.prefix(Int(clamping: size) - 8)
            boxes.append((String(decoding: type, as: UTF8.self), content))
            reader.skip(size - 8)
        }
        return boxes
    }

    /// The number of the item that is EXIF.
    private static func item(in information: ArraySlice<UInt8>) -> Int64? {
        var reader = NumberReader(bytes: information)
        guard let version = reader.number(1) else { return nil }
        reader.skip(3 + (version == 0 ? 2 : 4))
        for entry in boxes(in: reader.rest) where entry.type == "infe" {
            var reader = NumberReader(bytes: entry.content)
            guard let version = reader.number(1), version >= 2 else { continue }
            reader.skip(3)
            let number = reader.number(version == 2 ? 2 : 4)
            reader.skip(2)
            if let type = reader.bytes(4), type.elementsEqual("Exif".utf8) { return number }
        }
        return nil
    }

    private static func location(of item: Int64, in locations: ArraySlice<UInt8>) -> (offset: Int64, length: Int64)? {
        var reader = NumberReader(bytes: locations)
        guard let version = reader.number(1), version <= 2 else { return nil }
        reader.skip(3)
        guard let sizes = reader.number(2) else { return nil }
        let (offsetSize, lengthSize) = (sizes >> 12, sizes >> 8 & 0xF)
        let (baseSize, indexSize) = (sizes >> 4 & 0xF, version == 0 ? 0 : sizes & 0xF)
        guard let count = reader.number(version < 2 ? 2 : 4) else { return nil }
        for _ in 0..<count {
            guard let number = reader.number(version < 2 ? 2 : 4) else { return nil }
            let method = version == 0 ? 0 : reader.number(2).map { $0 & 0xF }
            reader.skip(2)
            guard let base = reader.number(baseSize), let extents = reader.number(2) else { return nil }
            guard number == item else {
                reader.skip(extents * (indexSize + offsetSize + lengthSize))
                continue
            }
            reader.skip(indexSize)
            // Other methods count from elsewhere than the file's start.
            guard method == 0, extents > 0, let offset = reader.number(offsetSize),
                let length = reader.number(lengthSize), length > 0
            else { return nil }
            let sum = base.addingReportingOverflow(offset)
            return sum.overflow ? nil : (sum.partialValue, length)
        }
        return nil
    }
}

/// Reads numbers whose first byte is the greatest, one after the other.
private struct NumberReader {
    private(set) var rest: ArraySlice<UInt8>

    init(bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    /// The number in the next bytes, of which there may be none; `nil` where they are missing, or hold more than fits.
    mutating func number(_ count: Int64) -> Int64? {
        guard let bytes = bytes(count) else { return nil }
        let number = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int64(exactly: number)
    }

    mutating func bytes(_ count: Int64) -> ArraySlice<UInt8>? {
        guard count <= 8, rest.count >= Int(clamping: count) else { return nil }
        let bytes = rest.prefix(Int(clamping: count))
        rest = rest.dropFirst(Int(clamping: count))
        return bytes
    }

    mutating func skip(_ count: Int64) {
        rest = rest.dropFirst(Int(min(count, Int64(rest.count))))
    }
}
