/// An entry of a directory (TIFF 6.0 §2).
struct TIFFEntry {
    let tag: Int64
    let type: Int64
    let count: Int64
    let bytes: ArraySlice<UInt8>
    /// The range of the value in the file. A short value is inside the entry.
    let value: Range<Int64>

    init(_ bytes: ArraySlice<UInt8>, at offset: Int64, _ order: TIFFByteOrder) {
        func number(_ start: Int, _ count: Int) -> Int64 { order.number(bytes.dropFirst(start).prefix(count)) }
        self.bytes = bytes
        (tag, type, count) = (number(0, 2), number(2, 2), number(4, 4))
        let length = count * Self.size(ofType: type)
        let start = length <= 4 ? offset + 8 : number(8, 4)
        value = start..<(start + length)
    }

    var isInline: Bool { value.upperBound - value.lowerBound <= 4 }

    var namesDirectories: Bool { [0x8769, 0x8825, 0xA005, 0x014A, 0x0190].contains(tag) || type == 13 }

    /// The size of each number in the value; `nil` if the value has no integers that could be offsets.
    var numberBytes: Int? { [3: 2, 4: 4, 13: 4][type] }

    /// The tags for the position, number and compression of pixels.
    static let layoutTags: Set<Int64> = [
        0x0100, 0x0101, 0x0102, 0x0103, 0x0106, 0x0111, 0x0115, 0x0117, 0x0144, 0x0145, 0x0201, 0x0202,
    ]

    private static func size(ofType type: Int64) -> Int64 {
        switch type {
        case 1, 2, 6, 7, 129: 1
        case 3, 8: 2
        case 4, 9, 11, 13: 4
        case 5, 10, 12, 16, 17, 18: 8
        // A value of unknown type is assumed to be inside the entry.
        default: 0
        }
    }
}

/// The findings about a TIFF structure.
struct TIFFScan {
    let order: TIFFByteOrder
    let use: MetadataScan.TIFFUse
    /// The ranges of kept values and pixels. They may overlap.
    private var kept: [Range<Int64>] = []
    /// The ranges of directories, metadata and previews. They are rewritten and overlap no other ranges.
    var written: [Range<Int64>] = []
    /// The ranges of the values and directories of removed entries.
    var removed: [Range<Int64>] = []
    /// The tags of the entries whose metadata was rewritten, by the range of the metadata. Several pages may share
    /// metadata.
    var metadata: [Range<Int64>: Int64] = [:]
    /// The offsets of directories that were read.
    var directories: Set<Int64> = []
    /// The offsets of the directories of removed entries.
    var forgotten: Set<Int64> = []
    var entriesLeft: Int64
    var directoriesLeft: Int
    var hasSensorPixels = false
    private(set) var isDNG = false

    init(order: TIFFByteOrder, use: MetadataScan.TIFFUse) {
        self.order = order
        self.use = use
        entriesLeft = use == .picture ? Int64(MetadataScan.Limit.directoryEntries) : 10_000
        directoriesLeft = use == .picture ? MetadataScan.Limit.directories : 64
    }

    var name: String { use == .picture ? "the TIFF" : "the EXIF" }

    /// The error for a camera's raw picture that is not a DNG, because its pixels need data in a private format.
    var rawPicture: ScanError {
        ScanError(at: 0, "metadata cannot be removed from such a file: it is a camera's raw picture, and not DNG")
    }

    mutating func note(_ entry: TIFFEntry) {
        if entry.tag == 0xC612 { isDNG = true }
    }

    /// Keeps the range of a value or of pixels, up to `length`, the file's size. Returns `false` if the range is empty
    /// or was joined to the last kept range, which it directly follows.
    @discardableResult
    mutating func keep(_ range: Range<Int64>, of length: Int64) -> Bool {
        let range = range.lowerBound..<max(min(range.upperBound, length), range.lowerBound)
        if let last = kept.last, last.upperBound == range.lowerBound, !last.isEmpty {
            kept[kept.count - 1] = last.lowerBound..<range.upperBound
            return false
        }
        if !range.isEmpty { kept.append(range) }
        return !range.isEmpty
    }

    /// The ranges to clear, in ascending order: values of removed entries, and bytes that no entry uses.
    ///
    /// In a picture, a long run of unused bytes is kept. It is not an editor's old content, but pixels whose offset is
    /// in a private entry, as in the files of microscopes.
    func unnamedRanges(
        of length: Int64
    ) throws(ScanError) -> (removed: [Range<Int64>], remains: [Range<Int64>]) {
        let claims =
            (kept.map { (range: $0, isWritten: false) } + written.map { (range: $0, isWritten: true) })
            .sorted { $0.range.lowerBound < $1.range.lowerBound }
        var gaps: [Range<Int64>] = []
        var end: (kept: Int64, written: Int64) = (0, 0)
        for claim in claims where !claim.range.isEmpty {
            let (start, stop) = (claim.range.lowerBound, claim.range.upperBound)
            if start < end.written || (claim.isWritten && start < end.kept) {
                throw ScanError(at: start, "two pieces of \(name) overlap")
            }
            let last = max(end.kept, end.written)
            if start > last { gaps.append(last..<start) }
            if claim.isWritten { end.written = max(end.written, stop) } else { end.kept = max(end.kept, stop) }
        }
        let last = max(end.kept, end.written)
        if last < length { gaps.append(last..<length) }
        let named = Self.united(removed)
        let remains = Self.difference(gaps, named).filter {
            use == .exif || $0.upperBound - $0.lowerBound <= MetadataScan.Limit.remainingBytes
        }
        return (Self.common(gaps, named), remains)
    }

    /// The ranges in ascending order, joined where they touch.
    private static func united(_ ranges: [Range<Int64>]) -> [Range<Int64>] {
        var united: [Range<Int64>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = united.last, range.lowerBound <= last.upperBound {
                united[united.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                united.append(range)
            }
        }
        return united
    }

    /// The parts of one list's ranges that are not in another list. Both lists are in ascending order.
    private static func difference(_ one: [Range<Int64>], _ other: [Range<Int64>]) -> [Range<Int64>] {
        var difference: [Range<Int64>] = []
        var first = 0
        for range in one {
            var start = range.lowerBound
            while first < other.count, other[first].upperBound <= start { first += 1 }
            for taken in other[first...].prefix(while: { $0.lowerBound < range.upperBound }) {
                if taken.lowerBound > start { difference.append(start..<taken.lowerBound) }
                start = max(start, min(taken.upperBound, range.upperBound))
            }
            if start < range.upperBound { difference.append(start..<range.upperBound) }
        }
        return difference
    }

    /// The parts of ranges that two lists have in common. Both lists are in ascending order.
    private static func common(_ one: [Range<Int64>], _ other: [Range<Int64>]) -> [Range<Int64>] {
        var common: [Range<Int64>] = []
        var (first, second) = (0, 0)
        while first < one.count, second < other.count {
            let shared = one[first].clamped(to: other[second])
            if !shared.isEmpty { common.append(shared) }
            if one[first].upperBound < other[second].upperBound { first += 1 } else { second += 1 }
        }
        return common
    }
}

/// The kinds of content in TIFF entries, by their tags (TIFF 6.0, Exif 3.0, DNG 1.7).
enum TIFFTags {
    /// The kind of content in an entry with this tag if the entry must be removed; `nil` if it stays.
    static func kind(ofRemoved tag: Int64, _ removal: MetadataScan.Removal) -> RemovedContent? {
        sensitive[tag] ?? (removal == .everything && !isNeeded(tag) ? .other : nil)
    }

    /// The tags that are always removed: positions, persons, devices, and data in private formats of cameras.
    private static let sensitive: [Int64: RemovedContent] = [
        // The GPS directory, and GeoTIFF.
        0x8825: .position, 0x830E: .position, 0x8480: .position, 0x8482: .position, 0x85D8: .position,
        0x87AF: .position, 0x87B0: .position, 0x87B1: .position,
        // Artist, HostComputer, XPAuthor, the owner, the photographer, the editor.
        0x013B: .names, 0x013C: .names, 0x9C9D: .names, 0xA430: .names, 0xA437: .names, 0xA438: .names,
        // Serial numbers of the body and the lens, and the serial number in DNG.
        0xA431: .serialNumbers, 0xA435: .serialNumbers, 0xC62F: .serialNumbers,
        // MakerNote, and private data in DNG.
        0x927C: .makerNote, 0xC634: .makerNote,
        // ImageUniqueID, which some cameras use for other values, and the name of the original file in DNG.
        0xA420: .other, 0xC68C: .other,
        // Further color profiles of DNG, whose offsets count from their own starts.
        0xC6F5: .other,
        // JUMBF: a signature of the picture, which removing metadata makes invalid.
        0xCD41: .unknown,
        // GDAL's metadata, and the projection of pixels onto the earth.
        0xA480: .unknown, 0xC69C: .unknown,
    ]

    /// Whether an entry with this tag is needed to decode the picture, or to keep its look.
    private static func isNeeded(_ tag: Int64) -> Bool {
        switch tag {
        case 0x00FE...0x010A,  // size, samples, compression, colors
            0x0111...0x011C,  // strips, orientation, resolution, how planes are stored
            0x0122...0x0125, 0x0128, 0x012D, 0x013D...0x0145,  // codings, resolution's unit, transfer, colors, tiles
            0x014A,  // the directories of further pictures
            0x014C, 0x014E, 0x0150, 0x0152...0x0156,  // inks, transparency, the format of samples
            0x015B, 0x0200...0x0209, 0x0211...0x0214,  // JPEG, YCbCr
            0x828D, 0x828E,  // the color filters of a sensor
            0x8773:  // the color profile
            true
        // These tags of DNG describe the rendering of a raw picture, and the camera's model, which readers require.
        case 0xC612...0xC7FF, 0xCD2C...0xCD60:
            !remarks.contains(tag)
        default:
            false
        }
    }

    /// The tags in DNG's ranges that readers do not need: names of files and settings, programs, times, labels.
    private static let remarks: Set<Int64> = [
        0xC68B, 0xC6FE, 0xC716, 0xC717, 0xC718, 0xC719, 0xC71B, 0xC763, 0xC764, 0xC772, 0xC789, 0xC7A1,
    ]
}

/// The EXIF in a picture of another format, without the bytes before its TIFF structure.
enum EXIFBlock {
    /// Rewrites EXIF without the removed content, and keeps all offsets. EXIF of zeros, cleared by another program,
    /// stays as it is. `inheritance` has the settings of the picture's scan. `removed` receives the kinds of removed
    /// content.
    static func rewritten(
        _ block: [UInt8], _ inheritance: MetadataScan.Inheritance, _ removed: inout RemovedContent
    ) throws(BlockError) -> [UInt8] {
        // Other programs clear EXIF with zeros.
        if block.allSatisfy({ $0 == 0 }) { return block }
        guard let tiff = TIFFBlock(block) else { throw BlockError(at: 0, "the EXIF has no TIFF header") }
        if inheritance.removal == .everything { return orientation(of: tiff) }
        do throws(ScanError) {
            // The thumbnail in the EXIF may have its own EXIF.
            return try MetadataScan.applied(inheritance, to: block, &removed) { scan throws(ScanError) in
                try scan.scanTIFF(as: .exif)
            }
        } catch {
            throw BlockError(at: Int(clamping: error.offset), error.finding)
        }
    }

    /// EXIF with only the orientation, padded with zeros.
    private static func orientation(of tiff: TIFFBlock) -> [UInt8] {
        let order = tiff.order
        let entries = order.encoded(1, bytes: 2) + order.orientationEntry(tiff.orientation ?? 1)
        let bytes = tiff.bytes[..<4] + order.encoded(8, bytes: 4) + entries + [0, 0, 0, 0]
        let count = tiff.bytes.count
        // EXIF that is too short for one entry has no orientation.
        return bytes.count > count
            ? [UInt8](repeating: 0, count: count) : bytes + [UInt8](repeating: 0, count: count - bytes.count)
    }
}

extension TIFFByteOrder {
    func orientationEntry(_ value: Int64) -> [UInt8] {
        encoded(0x0112, bytes: 2) + encoded(3, bytes: 2) + encoded(1, bytes: 4) + encoded(value, bytes: 2) + [0, 0]
    }

    /// An entry with the version of EXIF, for a directory that would otherwise be empty.
    var exifVersionEntry: [UInt8] {
        encoded(0x9000, bytes: 2) + encoded(7, bytes: 2) + encoded(4, bytes: 4) + Array("0232".utf8)
    }
}
