/// TIFF (TIFF 6.0 §2), the structure of DNG (DNG 1.7) and EXIF (Exif 3.0 §4.5). The entries of a directory refer to
/// values and other directories by offset.
///
/// A directory is rewritten without the removed entries. Kept bytes stay in place, and all others become zero,
/// including values of unknown entries and old content that editors leave.
extension MetadataScan {
    /// The purpose of a TIFF structure.
    enum TIFFUse {
        /// A file with pixels.
        case picture
        /// The EXIF of a picture in another format. It has no pixels, except for those of a thumbnail.
        case exif
    }

    private enum TIFFDirectory {
        /// A page of the file. Its directory refers to the directory of the next page.
        case page
        case other
    }

    mutating func scanTIFF(as use: TIFFUse) throws(ScanError) {
        let header = try bytes(at: 0, upTo: 16)
        guard header.count >= 8, let order = TIFFByteOrder(header: header) else {
            throw ScanError(at: 0, "the file ends in the middle of its TIFF header")
        }
        var tiff = TIFFScan(order: order, use: use)
        tiff.written.append(0..<8)
        // Canon's and Phase One's cameras record the position of pixels in private formats.
        let mark = header[8...]
        guard use == .exif || !["CR\u{2}", "IIII", "MMMM"].contains(where: { mark.starts(with: $0.utf8) }) else {
            throw tiff.rawPicture
        }
        var next = order.number(header[4..<8])
        while next != 0 { next = try scanDirectory(at: next, .page, namedAt: 4, &tiff) }
        if use == .picture, tiff.hasSensorPixels, !tiff.isDNG { throw tiff.rawPicture }
        let unnamed = try tiff.unnamedRanges(of: length)
        // No kind of content, because removing the entries has already reported it.
        for range in unnamed.removed { clear(range, []) }
        for range in unnamed.remains { clear(range, .unused) }
    }

    // MARK: - Directories

    /// Rewrites a directory and its values. Returns the offset of the next directory; 0 if there is none. `place` is
    /// where the file refers to this directory, for errors. `depth` is the number of directories that contain it.
    private mutating func scanDirectory(
        at offset: Int64, _ kind: TIFFDirectory, namedAt place: Int64, depth: Int = 0, _ tiff: inout TIFFScan
    ) throws(ScanError) -> Int64 {
        guard depth < Limit.depth else {
            throw ScanError(at: place, "the directories of \(tiff.name) are nested too deeply")
        }
        let table = try readDirectory(at: offset, namedAt: place, &tiff)
        // References to the same or an earlier directory would never end.
        guard tiff.directories.insert(offset).inserted else {
            throw ScanError(at: offset, "the directories of \(tiff.name) overlap or name one another")
        }
        let order = tiff.order
        tiff.written.append(offset..<(offset + Int64(table.bytes.count)))

        var kept: [TIFFEntry] = []
        var removed: RemovedContent = []
        for entry in table.entries {
            if try scan(entry, depth: depth, &tiff, &removed) { kept.append(entry) }
        }
        try scanPixels(of: kept, &tiff)
        // A directory must have at least one entry.
        let filler = kind == .page ? order.orientationEntry(1) : order.exifVersionEntry
        let entries = kept.isEmpty && !table.entries.isEmpty ? filler : kept.flatMap(\.bytes)
        let next = kind == .page ? table.next ?? 0 : 0
        var written = order.encoded(Int64(entries.count / 12), bytes: 2) + entries
        if table.next != nil { written += order.encoded(next, bytes: 4) }
        written += [UInt8](repeating: 0, count: table.bytes.count - written.count)
        replace(table.bytes, with: written, in: [offset..<(offset + Int64(table.bytes.count))], removed)
        return next
    }

    private mutating func readDirectory(
        at offset: Int64, namedAt place: Int64, _ tiff: inout TIFFScan
    ) throws(ScanError) -> (bytes: [UInt8], entries: [TIFFEntry], next: Int64?) {
        let start = try bytes(at: offset, upTo: 2)
        let count = tiff.order.number(start)
        guard start.count == 2, 2 + 12 * count <= length - offset else {
            throw ScanError(at: place, "\(tiff.name) has a directory at \(offset), where none fits")
        }
        tiff.entriesLeft -= count
        tiff.directoriesLeft -= 1
        guard tiff.entriesLeft >= 0, tiff.directoriesLeft >= 0 else {
            throw ScanError(at: place, "\(tiff.name) has too many entries")
        }
        let table = try bytes(at: offset, upTo: 2 + 12 * Int(clamping: count) + 4)
        // The file may have become shorter.
        guard table.count >= 2 + 12 * Int(clamping: count) else {
            throw ScanError(at: offset, "the file ends in the middle of its structure")
        }
        let entries = (0..<Int(clamping: count)).map { index in
            let start = 2 + 12 * index
            return TIFFEntry(table[start..<(start + 12)], at: offset + Int64(start), tiff.order)
        }
        let end = 2 + 12 * entries.count
        // Some programs leave out the offset of the next directory at the end of the file.
        guard table.count == end + 4 else { return (Array(table[..<end]), entries, nil) }
        return (table, entries, tiff.order.number(table[end...]))
    }

    /// Rewrites the value of an entry. Returns `false` to remove the entry.
    private mutating func scan(
        _ entry: TIFFEntry, depth: Int, _ tiff: inout TIFFScan, _ removed: inout RemovedContent
    ) throws(ScanError) -> Bool {
        if removal == .location, try isAppleNote(entry) {
            try rewrite(entry, &tiff, by: AppleNote.withoutLocation)
            return true
        }
        if let kind = TIFFTags.kind(ofRemoved: entry.tag, removal) {
            removed.formUnion(entry.tag == 0x8825 ? try kindOfPosition(entry, tiff.order) : kind)
            try forget(entry, &tiff)
            return false
        }
        switch entry.tag {
        case _ where entry.namesDirectories:
            let directories = try numbers(of: entry, tiff.order)
            guard !directories.isEmpty, directories.count == Int(clamping: entry.count) else {
                throw ScanError(
                    at: entry.value.lowerBound, "\(tiff.name) names a directory without saying where")
            }
            if !entry.isInline { tiff.keep(entry.value, of: length) }
            let place = entry.value.lowerBound
            for directory in directories {
                _ = try scanDirectory(at: directory, .other, namedAt: place, depth: depth + 1, &tiff)
            }
        // Metadata does not fit in the four bytes of an entry.
        case _ where entry.isInline:
            break
        case 0x02BC:
            try rewrite(entry, &tiff, by: XMPPacket.withoutLocation)
        case 0x83BB:
            try rewrite(entry, &tiff, by: IPTCRecords.withoutLocation)
        case 0x8649:
            try rewrite(entry, &tiff, by: PhotoshopResources.withoutLocation)
        default:
            tiff.keep(entry.value, of: length)
        }
        tiff.note(entry)
        return true
    }

    private mutating func isAppleNote(_ entry: TIFFEntry) throws(ScanError) -> Bool {
        let count = entry.value.upperBound - entry.value.lowerBound
        guard entry.tag == 0x927C, count > AppleNote.headerBytes + 2, entry.value.upperBound <= length else {
            return false
        }
        return AppleNote.isOne(try bytes(at: entry.value.lowerBound, upTo: AppleNote.headerBytes))
    }

    /// The kind of content in a GPS directory. Some cameras write this directory without a position.
    private mutating func kindOfPosition(
        _ entry: TIFFEntry, _ order: TIFFByteOrder
    ) throws(ScanError) -> RemovedContent {
        guard let offset = try numbers(of: entry, order).first else { return .other }
        let count = order.number(try bytes(at: offset, upTo: 2))
        let table = try bytes(at: offset + 2, upTo: 12 * Int(clamping: min(count, 64)))
        let tags = stride(from: 0, to: table.count - 1, by: 12).map { order.number(table[$0..<($0 + 2)]) }
        // These GPS tags contain no position: version, time, measurement, speed, direction, datum and date.
        return tags.allSatisfy { $0 == 0 || (7...18).contains($0) || $0 == 29 || $0 == 30 } ? .other : .position
    }

    /// Records the values and directories of a removed entry, even damaged ones.
    private mutating func forget(_ entry: TIFFEntry, depth: Int = 0, _ tiff: inout TIFFScan) throws(ScanError) {
        if !entry.isInline { tiff.removed.append(entry.value) }
        guard entry.namesDirectories, depth < Limit.depth, entry.count <= 16 else { return }
        for offset in try numbers(of: entry, tiff.order) where tiff.forgotten.insert(offset).inserted {
            do throws(ScanError) {
                let table = try readDirectory(at: offset, namedAt: offset, &tiff)
                tiff.removed.append(offset..<(offset + Int64(table.bytes.count)))
                for entry in table.entries { try forget(entry, depth: depth + 1, &tiff) }
            } catch {
                if error.underlyingError != nil { throw error }
            }
        }
    }

    /// Rewrites the value of an entry whose metadata is in another format.
    private mutating func rewrite(
        _ entry: TIFFEntry, _ tiff: inout TIFFScan, by rewriting: BlockRewriting
    ) throws(ScanError) {
        guard entry.value.upperBound <= length else {
            throw ScanError(at: entry.value.lowerBound, "\(tiff.name) names metadata outside of itself")
        }
        // Several pages may refer to the same metadata.
        if tiff.metadata[entry.value] == entry.tag { return }
        tiff.metadata[entry.value] = entry.tag
        try rewrite([entry.value], by: rewriting)
        tiff.written.append(entry.value)
    }

    /// The numbers in an entry's value, such as the offsets of strips; empty if they are outside of the file.
    private mutating func numbers(of entry: TIFFEntry, _ order: TIFFByteOrder) throws(ScanError) -> [Int64] {
        guard let size = entry.numberBytes, entry.value.upperBound <= length else { return [] }
        guard entry.count <= Limit.units else {
            throw ScanError(at: entry.value.lowerBound, "the file has more than \(Limit.units) pieces")
        }
        let bytes = try bytes(at: entry.value.lowerBound, count: size * Int(clamping: entry.count))
        return stride(from: 0, to: bytes.count, by: size).map { order.number(bytes[$0..<($0 + size)]) }
    }
}

// MARK: - Pixels

extension MetadataScan {
    /// Keeps the pixels of a directory: strips, tiles, or a JPEG without its own metadata.
    private mutating func scanPixels(of entries: [TIFFEntry], _ tiff: inout TIFFScan) throws(ScanError) {
        var values: [Int64: [Int64]] = [:]
        for entry in entries where TIFFEntry.layoutTags.contains(entry.tag) {
            values[entry.tag] = try numbers(of: entry, tiff.order)
        }
        func first(_ tag: Int64) -> Int64? { values[tag]?.first }
        if let offset = first(0x0201), let length = first(0x0202), length > 0 {
            try scanPreview(offset..<(offset + length), &tiff)
        }
        let compression = first(0x0103) ?? 1
        for (offsets, lengths) in [(0x0111, 0x0117), (0x0144, 0x0145)] as [(Int64, Int64)] {
            guard let starts = values[offsets] else { continue }
            let counts = values[lengths] ?? []
            let pieces = zip(starts, counts).map { $0..<($0 + $1) }
            guard tiff.use == .picture else {
                try keep(pieces, &tiff)
                continue
            }
            // Pixels that are not kept would be cleared as unused bytes.
            let isEmpty = pieces.contains { $0.isEmpty && $0.lowerBound != 0 }
            guard !starts.isEmpty, starts.count == counts.count, !isEmpty,
                entries.allSatisfy({ !(0x0207...0x0209).contains($0.tag) }),
                offsets == 0x0144 || Self.areEnough(counts, for: values, compression)
            else {
                throw ScanError(at: starts.first ?? 0, "the TIFF does not say where its pixels end")
            }
            // A JPEG in one piece is a preview with its own segments. JPEGs in several pieces have only pixels.
            if pieces.count == 1, [6, 7, 34892].contains(compression),
                try bytes(at: pieces[0].lowerBound, upTo: 2) == [0xFF, 0xD8]
            {
                try scanPreview(pieces[0], &tiff)
            } else {
                try keep(pieces, &tiff)
            }
        }
        if let color = first(0x0106), color == 32803 || color == 34892 { tiff.hasSensorPixels = true }
    }

    private mutating func keep(_ pieces: [Range<Int64>], _ tiff: inout TIFFScan) throws(ScanError) {
        for piece in pieces {
            if tiff.keep(piece, of: length) { try countUnit(at: piece.lowerBound) }
        }
    }

    /// Whether the strips of an uncompressed picture are long enough. Some programs write strips that are too short.
    private static func areEnough(_ counts: [Int64], for values: [Int64: [Int64]], _ compression: Int64) -> Bool {
        // YCbCr (6) may store fewer color samples than pixels, so its size cannot be computed here.
        guard compression == 1, values[0x0106]?.first != 6, let width = values[0x0100]?.first,
            let height = values[0x0101]?.first, width <= 1 << 24, height <= 1 << 24
        else { return true }
        let samples = min(values[0x0115]?.first ?? 1, 64)
        let depths = values[0x0102] ?? [1]
        let bits = depths.count == Int(clamping: samples) ? depths.reduce(0, +) : (depths.first ?? 1) * samples
        return counts.reduce(0, +) >= (width * min(bits, 1 << 14) + 7) / 8 * height
    }

    private mutating func scanPreview(_ picture: Range<Int64>, _ tiff: inout TIFFScan) throws(ScanError) {
        guard picture.upperBound <= length else {
            throw ScanError(at: picture.lowerBound, "\(tiff.name) names a picture outside of itself")
        }
        guard try bytes(at: picture.lowerBound, upTo: 2) == [0xFF, 0xD8] else {
            throw ScanError(at: picture.lowerBound, "the thumbnail of \(tiff.name) is not a JPEG")
        }
        // Two entries of a directory may refer to the same preview.
        guard tiff.metadata.updateValue(0x0201, forKey: picture) != 0x0201 else { return }
        try scanJPEG(picture, depth: depth + 1)
        tiff.written.append(picture)
    }
}

/// The MakerNote of Apple's cameras: a TIFF directory whose offsets count from the start of the note.
enum AppleNote {
    private static let mark = Array("Apple iOS\0".utf8)
    /// The number of bytes before the directory: the mark, a version and the byte order.
    static let headerBytes = mark.count + 4

    static func isOne(_ start: [UInt8]) -> Bool {
        start.starts(with: mark) && start.dropFirst(mark.count + 2).elementsEqual("MM".utf8)
    }

    /// The tags to keep: the version, the names of a Live Photo's video and frame, and the brightness of the picture.
    private static let kept: Set<Int64> = [0x0001, 0x0011, 0x0017, 0x0021, 0x0030]

    /// The note with only the kept entries and values in their places, and zeros elsewhere. A damaged note is cleared.
    static func withoutLocation(_ note: [UInt8], _ removed: inout RemovedContent) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: note.count)
        defer { if result != note { removed.insert(.makerNote) } }
        guard note.count > headerBytes + 2, let order = TIFFByteOrder(header: Array("MM\0*".utf8)) else {
            return result
        }
        result.replaceSubrange(..<headerBytes, with: note[..<headerBytes])
        let start = headerBytes + 2
        let count = Int(clamping: order.number(note[headerBytes..<start]))
        var entries: [UInt8] = []
        for index in 0..<min(count, (note.count - start) / 12) {
            let place = start + 12 * index
            let entry = TIFFEntry(note[place..<(place + 12)], at: Int64(place), order)
            guard kept.contains(entry.tag), entry.value.upperBound <= Int64(note.count) else { continue }
            let value = Int(clamping: entry.value.lowerBound)..<Int(clamping: entry.value.upperBound)
            // A value must be outside of the directory.
            guard entry.isInline || value.lowerBound >= start + 12 * count else { continue }
            entries += entry.bytes
            if !entry.isInline { result.replaceSubrange(value, with: note[value]) }
        }
        result.replaceSubrange(headerBytes..<start, with: order.encoded(Int64(entries.count / 12), bytes: 2))
        result.replaceSubrange(start..<(start + entries.count), with: entries)
        return result
    }
}
