/// The directory of the items in a HEIC or AVIF file: the `meta` box (ISO/IEC 14496-12 §8.11), or its first bytes.
package struct ItemDirectory {
    /// The ranges of an item's bytes, in the file or in the directory.
    struct Location {
        /// The start of an item's offsets: the file, the `idat` box or another item.
        enum Origin: Int64 {
            case file, itemData, item
        }

        let origin: Origin
        let isInFile: Bool
        /// The ranges of bytes that make up the item. If `origin` is `item`, each range is in one of the item's
        /// `sources`, and `index` is that source's number, from 1.
        let extents: [(index: Int64, offset: Int64, length: Int64)]
    }

    enum Kind: Equatable {
        case exif, xmp, jpeg, other
        case encodedXMP
    }

    /// The items of known types, such as EXIF.
    private(set) var items: [(number: Int64, kind: Kind)] = []
    private(set) var locations: [Int64: Location] = [:]
    /// The range of the `idat` box, with the data of small items, counted from the start of the `meta` content.
    private(set) var itemData: Range<Int64>?
    /// The numbers of the items that contain an item, by the number of the contained item.
    private(set) var sources: [Int64: [Int64]] = [:]

    /// The error in the directory and its index; `nil` if the whole directory was read.
    private(set) var readError: BlockError?

    /// Reads the content of a `meta` box.
    package init(meta: [UInt8]) {
        do {
            // Skips the version and flags. Only a part of the last box may be in memory.
            for box in try Self.boxes(in: NumberReader(meta[...], skipping: 4), areWhole: false) {
                switch box.type {
                case "iinf": try readItems(box.content)
                case "iloc": try readLocations(box.content)
                case "iref": try readReferences(box.content)
                case "idat": itemData = Int64(box.content.position)..<Int64(box.content.end)
                default: break
                }
            }
        } catch {
            readError = error
        }
    }

    /// The offset and length of the item with EXIF; `nil` if there is none, or if it has several extents.
    package var exif: (offset: Int64, length: Int64)? {
        guard let item = items.first(where: { $0.kind == .exif }), let location = locations[item.number],
            location.origin == .file, let extent = location.extents.first, extent.length > 0
        else { return nil }
        return (extent.offset, extent.length)
    }

    private static func boxes(
        in reader: NumberReader, areWhole: Bool = true
    ) throws(BlockError) -> [(type: String, content: NumberReader)] {
        var reader = reader
        var boxes: [(type: String, content: NumberReader)] = []
        while areWhole ? !reader.isAtEnd : reader.rest >= 8 {
            let size = try reader.number(4)
            let type = String(decoding: try reader.bytes(4), as: UTF8.self)
            guard size >= 8 || size == 0 else {
                throw BlockError(at: reader.position - 8, "a box of the directory has \(size) bytes")
            }
            let count = size == 0 ? Int64(reader.rest) : size - 8
            boxes.append((type, NumberReader(try reader.bytes(areWhole ? count : min(count, Int64(reader.rest))))))
        }
        return boxes
    }

    private mutating func readItems(_ content: NumberReader) throws(BlockError) {
        var reader = content
        let version = try reader.number(1)
        try reader.skip(3 + (version == 0 ? 2 : 4))
        for entry in try Self.boxes(in: reader) where entry.type == "infe" {
            var reader = entry.content
            let version = try reader.number(1)
            try reader.skip(3)
            let number = try reader.number(version < 3 ? 2 : 4)
            try reader.skip(2)
            // The first versions of the entry contain only media types.
            let type = version < 2 ? ArraySlice("mime".utf8) : try reader.bytes(4)
            items.append((number, Self.kind(type, &reader)))
        }
    }

    private static func kind(_ type: ArraySlice<UInt8>, _ reader: inout NumberReader) -> Kind {
        switch String(decoding: type, as: UTF8.self) {
        case "Exif": return .exif
        case "jpeg": return .jpeg
        case "mime":
            // The first text is the item's name, and the second its media type.
            _ = reader.text()
            guard reader.text() == "application/rdf+xml" else { return .other }
            return reader.text().isEmpty ? .xmp : .encodedXMP
        default: return .other
        }
    }

    private mutating func readLocations(_ content: NumberReader) throws(BlockError) {
        var reader = content
        let version = try reader.number(1)
        guard version <= 2 else {
            throw BlockError(at: content.position, "the places of the items have version \(version)")
        }
        try reader.skip(3)
        let sizes = try reader.number(2)
        let (offsetSize, lengthSize) = (sizes >> 12, sizes >> 8 & 0xF)
        let (baseSize, indexSize) = (sizes >> 4 & 0xF, version == 0 ? 0 : sizes & 0xF)
        for size in [offsetSize, lengthSize, baseSize, indexSize] where ![0, 4, 8].contains(size) {
            throw BlockError(at: reader.position - 2, "the places of the items have numbers of \(size) bytes")
        }
        let count = try reader.number(version < 2 ? 2 : 4)
        for _ in 0..<count {
            let number = try reader.number(version < 2 ? 2 : 4)
            let method = version == 0 ? 0 : try reader.number(2) & 0xF
            let isInFile = try reader.number(2) == 0
            let base = try reader.number(baseSize)
            var extents: [(index: Int64, offset: Int64, length: Int64)] = []
            for _ in 0..<(try reader.number(2)) {
                let index = try reader.number(indexSize)
                let (offset, isTooFar) = try reader.number(offsetSize).addingReportingOverflow(base)
                guard !isTooFar else { throw BlockError(at: reader.position, "an item is too far away") }
                extents.append((index, offset, try reader.number(lengthSize)))
                // Extents without bytes would be read endlessly.
                if indexSize + offsetSize + lengthSize == 0 { break }
            }
            guard let origin = Location.Origin(rawValue: method) else {
                throw BlockError(at: reader.position, "an item is constructed by method \(method)")
            }
            locations[number] = Location(origin: origin, isInFile: isInFile, extents: extents)
        }
    }

    private mutating func readReferences(_ content: NumberReader) throws(BlockError) {
        var reader = content
        let version = try reader.number(1)
        try reader.skip(3)
        for reference in try Self.boxes(in: reader) where reference.type == "iloc" {
            var reader = reference.content
            let from = try reader.number(version == 0 ? 2 : 4)
            for _ in 0..<(try reader.number(2)) {
                sources[from, default: []].append(try reader.number(version == 0 ? 2 : 4))
            }
        }
    }
}

/// Reads consecutive big-endian numbers.
private struct NumberReader {
    private var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>, skipping count: Int = 0) {
        self.bytes = bytes.dropFirst(count)
    }

    var position: Int { bytes.startIndex }
    var end: Int { bytes.endIndex }
    var rest: Int { bytes.count }
    var isAtEnd: Bool { bytes.isEmpty }

    /// Reads a number of up to eight bytes, which is never negative.
    mutating func number(_ count: Int64) throws(BlockError) -> Int64 {
        let found = try bytes(count)
        guard count < 8 || count == 8 && found.first.map({ $0 < 0x80 }) == true else {
            throw BlockError(at: position, "the directory of the items has a number that is too large")
        }
        return found.bigEndian
    }

    mutating func bytes(_ count: Int64) throws(BlockError) -> ArraySlice<UInt8> {
        guard count >= 0, count <= Int64(bytes.count) else {
            throw BlockError(at: position, "the directory of the items ends too early")
        }
        let found = bytes.prefix(Int(clamping: count))
        bytes = bytes.dropFirst(Int(clamping: count))
        return found
    }

    mutating func skip(_ count: Int64) throws(BlockError) {
        _ = try bytes(count)
    }

    /// Reads a text and the zero byte after it.
    mutating func text() -> String {
        let text = bytes.prefix { $0 != 0 }
        bytes = bytes.dropFirst(text.count + 1)
        return String(decoding: text, as: UTF8.self)
    }
}
