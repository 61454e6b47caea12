/// Writes EXIF again with the same offsets and without what must be removed.
///
/// What is kept is copied to its old place, and every other byte becomes zero. This removes values even if their entry
/// is not understood, and remains that editors leave.
struct EXIFRewriter {
    private let tiff: TIFFBlock
    private let depth: Int
    private var output: [UInt8]
    /// Directories and rewritten values, which nothing else may share bytes with, and the values that are copied.
    private var claims: [(range: Range<Int>, isCopied: Bool)] = []
    private var entriesLeft = 10_000
    private var directoriesLeft = 64
    /// Values may share bytes, within a limit that keeps copying fast.
    private var copiesLeft: Int

    private enum Directory {
        case main, other
    }

    /// - Parameters:
    ///   - block: EXIF from its TIFF structure on, or zeros.
    ///   - depth: How many pictures it is in.
    static func rewritten(
        _ block: [UInt8], _ removal: MetadataScan.Removal, depth: Int
    ) throws(BlockFault) -> [UInt8] {
        // Other programs clear it in the same way.
        if block.allSatisfy({ $0 == 0 }) { return block }
        guard let tiff = TIFFBlock(block) else { throw BlockFault(at: 0, "the EXIF has no TIFF header") }
        if removal == .everything { return orientation(of: tiff) }
        var rewriter = EXIFRewriter(tiff: tiff, depth: depth, output: [UInt8](repeating: 0, count: block.count))
        try rewriter.rewrite()
        return rewriter.output
    }

    private init(tiff: TIFFBlock, depth: Int, output: [UInt8]) {
        self.tiff = tiff
        self.depth = depth
        self.output = output
        copiesLeft = 4 * output.count
    }

    /// EXIF with the orientation alone, filled with zeros.
    private static func orientation(of tiff: TIFFBlock) -> [UInt8] {
        let entries = tiff.encoded(1, bytes: 2) + orientationEntry(tiff.orientation ?? 1, tiff)
        let bytes = tiff.bytes[..<4] + tiff.encoded(8, bytes: 4) + entries + [0, 0, 0, 0]
        let count = tiff.bytes.count
        // One that has no room for an entry had no orientation.
        return bytes.count > count
            ? [UInt8](repeating: 0, count: count) : bytes + [UInt8](repeating: 0, count: count - bytes.count)
    }

    private static func orientationEntry(_ value: Int64, _ tiff: TIFFBlock) -> [UInt8] {
        tiff.encoded(0x0112, bytes: 2) + tiff.encoded(3, bytes: 2) + tiff.encoded(1, bytes: 4)
            + tiff.encoded(value, bytes: 2) + [0, 0]
    }

    private mutating func rewrite() throws(BlockFault) {
        let header = 0..<8
        output.replaceSubrange(header, with: tiff.bytes[header])
        claims.append((header, isCopied: false))
        var next = tiff.number(at: 4, bytes: 4) ?? 0
        while next != 0 { next = try rewrite(directory: next, .main, namedAt: 4) }
        let ordered = claims.sorted { $0.range.lowerBound < $1.range.lowerBound }
        var end: (copied: Int, exclusive: Int) = (0, 0)
        for claim in ordered where !claim.range.isEmpty {
            let start = claim.range.lowerBound
            if start < end.exclusive || (!claim.isCopied && start < end.copied) {
                throw BlockFault(at: start, "two pieces of the EXIF overlap")
            }
            if claim.isCopied {
                end.copied = max(end.copied, claim.range.upperBound)
            } else {
                end.exclusive = max(end.exclusive, claim.range.upperBound)
            }
        }
    }
}

// MARK: - Directories

extension EXIFRewriter {
    /// An entry of a directory.
    private struct Entry {
        let tag: Int64
        let bytes: ArraySlice<UInt8>
        /// The range of the entry's value. A short value is in the entry itself.
        let value: Range<Int64>
        let type: Int64
        let count: Int64

        var isInline: Bool { value.upperBound - value.lowerBound <= 4 }
    }

    /// Rewrites a directory and what it names.
    ///
    /// - Returns: The offset of the next one; 0 if there is none.
    private mutating func rewrite(
        directory offset: Int64, _ kind: Directory, namedAt place: Int64
    ) throws(BlockFault) -> Int64 {
        guard let count = tiff.number(at: offset, bytes: 2), offset + 2 + 12 * count <= Int64(tiff.bytes.count) else {
            throw BlockFault(at: Int(clamping: place), "the EXIF has a directory at \(offset), where none fits")
        }
        entriesLeft -= Int(clamping: count)
        directoriesLeft -= 1
        guard entriesLeft >= 0, directoriesLeft >= 0 else {
            throw BlockFault(at: Int(clamping: place), "the EXIF has too many entries")
        }
        let start = Int(clamping: offset)
        let next = tiff.number(at: offset + 2 + 12 * count, bytes: 4)
        let table = start..<(start + 2 + 12 * Int(clamping: count) + (next == nil ? 0 : 4))
        // A directory that refers to itself or an earlier one would never end.
        guard !claims.contains(where: { !$0.isCopied && $0.range.overlaps(table) }) else {
            throw BlockFault(at: start, "the directories of the EXIF overlap or name one another")
        }
        claims.append((table, isCopied: false))

        var kept: [Entry] = []
        for index in 0..<count {
            let entry = try entry(at: offset + 2 + 12 * index)
            if try rewrite(entry) { kept.append(entry) }
        }
        try copyPictures(of: kept)
        // A directory without entries is not valid.
        let filler = kind == .main ? Self.orientationEntry(1, tiff) : versionEntry
        let entries = kept.isEmpty && count > 0 ? filler : kept.flatMap(\.bytes)
        let followed = kind == .main ? next ?? 0 : 0
        var written = tiff.encoded(Int64(entries.count / 12), bytes: 2) + entries
        if next != nil { written += tiff.encoded(followed, bytes: 4) }
        output.replaceSubrange(start..<(start + written.count), with: written)
        return followed
    }

    private var versionEntry: [UInt8] {
        tiff.encoded(0x9000, bytes: 2) + tiff.encoded(7, bytes: 2) + tiff.encoded(4, bytes: 4) + Array("0232".utf8)
    }

    private func entry(at offset: Int64) throws(BlockFault) -> Entry {
        let start = Int(clamping: offset)
        guard let tag = tiff.number(at: offset, bytes: 2), let type = tiff.number(at: offset + 2, bytes: 2),
            let count = tiff.number(at: offset + 4, bytes: 4), let place = tiff.number(at: offset + 8, bytes: 4)
        else { throw BlockFault(at: start, "an entry of the EXIF is cut off") }
        let length = count * Self.size(ofType: type)
        let begin = length <= 4 ? offset + 8 : place
        return Entry(
            tag: tag, bytes: tiff.bytes[start..<(start + 12)], value: begin..<(begin + length), type: type, count: count
        )
    }

    private static func size(ofType type: Int64) -> Int64 {
        switch type {
        case 1, 2, 6, 7, 129: 1
        case 3, 8: 2
        case 4, 9, 11, 13: 4
        case 5, 10, 12: 8
        // A value of unknown type is assumed to be in the entry.
        default: 0
        }
    }

    /// The numbers of a value, which must be few.
    private func numbers(of entry: Entry) -> [Int64] {
        let size = entry.type == 3 ? 2 : 4
        guard [3, 4, 13].contains(entry.type), entry.count <= 4096 else { return [] }
        return (0..<entry.count).compactMap {
            tiff.number(at: entry.value.lowerBound + $0 * Int64(size), bytes: size)
        }
    }

    /// Rewrites what an entry names. False if the entry has to go.
    private mutating func rewrite(_ entry: Entry) throws(BlockFault) -> Bool {
        switch entry.tag {
        case _ where Self.removedTags.contains(entry.tag):
            return false
        case 0x8769, 0xA005, 0x014A,
            _ where entry.type == 13:
            let place = entry.value.lowerBound
            let directories = numbers(of: entry)
            guard !directories.isEmpty, directories.count == Int(clamping: entry.count) else {
                throw BlockFault(at: Int(clamping: place), "the EXIF names a directory without saying where")
            }
            if !entry.isInline { try copy(entry.value) }
            for directory in directories { _ = try rewrite(directory: directory, .other, namedAt: place) }
            return true
        case _ where entry.isInline:
            break
        case 0x02BC:
            try rewrite(entry.value, by: XMPPacket.withoutLocation)
        case 0x83BB:
            try rewrite(entry.value, by: IPTCRecords.withoutLocation)
        case 0x8649:
            try rewrite(entry.value, by: PhotoshopResources.withoutLocation)
        default:
            try copy(entry.value)
        }
        return true
    }

    /// Positions, persons, devices, and what is written in a format of the camera's own.
    private static let removedTags: Set<Int64> = [
        0x8825,  // the directory with the GPS position
        0x927C,  // MakerNote
        0x013B, 0x013C,  // Artist, HostComputer
        0x9C9D,  // XPAuthor
        0xA420,  // ImageUniqueID, in which some cameras have their own
        0xA430, 0xA431, 0xA435, 0xA437, 0xA438,  // owner, serial numbers of body and lens, photographer, editor
        0xC62F, 0xC634, 0xC68C,  // of DNG: the serial number, private data, the file that it was made of
        0x830E, 0x8480, 0x8482, 0x85D8, 0x87AF, 0x87B0, 0x87B1,  // GeoTIFF
    ]

    // MARK: - Values

    private mutating func copy(_ value: Range<Int64>) throws(BlockFault) {
        // Values outside the EXIF are not kept.
        guard let range = range(value) else { return }
        copiesLeft -= range.count
        guard copiesLeft >= 0 else { throw BlockFault(at: range.lowerBound, "the values of the EXIF overlap") }
        output.replaceSubrange(range, with: tiff.bytes[range])
        claims.append((range, isCopied: true))
    }

    private mutating func rewrite(
        _ value: Range<Int64>, by rewriting: ([UInt8]) throws(BlockFault) -> [UInt8]
    ) throws(BlockFault) {
        guard let range = range(value) else {
            throw BlockFault(at: Int(clamping: value.lowerBound), "the EXIF names metadata outside of itself")
        }
        do {
            output.replaceSubrange(range, with: try rewriting(Array(tiff.bytes[range])))
        } catch {
            throw BlockFault(at: range.lowerBound + error.index, error.reason)
        }
        claims.append((range, isCopied: false))
    }

    private func range(_ value: Range<Int64>) -> Range<Int>? {
        guard value.lowerBound >= 0, value.upperBound <= Int64(tiff.bytes.count) else { return nil }
        return Int(clamping: value.lowerBound)..<Int(clamping: value.upperBound)
    }

    /// Copies the thumbnail: a JPEG without its own metadata, or strips or tiles of pixels.
    private mutating func copyPictures(of entries: [Entry]) throws(BlockFault) {
        func numbers(_ tag: Int64) -> [Int64] {
            entries.first { $0.tag == tag }.map { self.numbers(of: $0) } ?? []
        }
        if let offset = numbers(0x0201).first, let length = numbers(0x0202).first, length > 0 {
            let depth = depth
            try rewrite(offset..<(offset + length)) { picture throws(BlockFault) in
                guard picture.starts(with: [0xFF, 0xD8]) else {
                    throw BlockFault(at: 0, "the EXIF's thumbnail is not a JPEG")
                }
                do throws(PictureFault) {
                    return try MetadataScan.applied(.location, to: picture, depth: depth + 1)
                } catch {
                    throw BlockFault(at: Int(clamping: error.offset), "in the EXIF's thumbnail \(error.reason)")
                }
            }
        }
        for (offsets, lengths) in [(0x0111, 0x0117), (0x0144, 0x0145)] as [(Int64, Int64)] {
            for (offset, length) in zip(numbers(offsets), numbers(lengths)) { try copy(offset..<(offset + length)) }
        }
    }
}
