/// The metadata of HEIC and AVIF pictures, which is in items.
extension MetadataScan {
    /// Rewrites the metadata in the items of a picture. `box` is the `meta` box, which lists the items. Item offsets
    /// count from the start of `file`, and must be inside one of the `data` ranges, so that no item overlaps other
    /// boxes. `depth` is the number of pictures and videos that contain the picture.
    mutating func scanItems(
        _ box: Box, in file: Range<Int64>, data: [Range<Int64>], depth: Int
    ) throws(ScanError) {
        for child in try boxes(inMeta: box) {
            switch child.type {
            case "free", "skip": clear(child.content, .unused)
            case "uuid": try scanUUID(child)
            case "xml ", "bxml", "ID32", "udta": wipe(child, .unknown)
            default: break
            }
        }
        let directory = ItemDirectory(meta: try block([box.content]))
        if let error = directory.readError {
            throw ScanError(at: box.content.lowerBound + Int64(error.index), error.reason)
        }
        for item in directory.items where item.kind != .other {
            let extents = try extents(of: item.number, directory, box, file, data)
            switch item.kind {
            case .exif: try rewriteItem(EXIF: extents, box)
            case .xmp: try rewriteXMP(extents)
            case .jpeg:
                guard extents.count == 1 else {
                    throw ScanError(at: box.start, "a JPEG in the file is in more than one piece")
                }
                try scanJPEG(extents[0], depth: depth + 1)
            case .encodedXMP: throw ScanError(at: box.start, "the picture has XMP that is compressed")
            case .other: break
            }
        }
    }

    /// Rewrites an item with EXIF. Its first four bytes count the bytes before the EXIF (ISO/IEC 23008-12 Annex A).
    private mutating func rewriteItem(EXIF extents: [Range<Int64>], _ box: Box) throws(ScanError) {
        let inheritance = inheritance
        try rewrite(extents) { block, removed throws(BlockError) in
            guard let start = PictureContainer.boxes.exifPrefix(of: block[...]), start <= block.count else {
                throw BlockError(at: 0, "the EXIF is declared to begin after its end")
            }
            do throws(BlockError) {
                return block[..<start] + (try EXIFBlock.rewritten(Array(block[start...]), inheritance, &removed))
            } catch {
                throw BlockError(at: start + error.index, error.reason)
            }
        }
    }

    /// The ranges of an item's extents in the file.
    private mutating func extents(
        of item: Int64, _ directory: ItemDirectory, _ box: Box, _ file: Range<Int64>, _ data: [Range<Int64>],
        depth: Int = 0
    ) throws(ScanError) -> [Range<Int64>] {
        try countUnit(at: box.start)
        let error = ScanError(at: box.start, "item \(item) of the picture cannot be located")
        guard let location = directory.locations[item], location.isInFile, depth < 4 else { throw error }
        var extents: [Range<Int64>] = []
        for extent in location.extents {
            try countUnit(at: box.start)
            switch location.origin {
            case .file:
                let begin = file.lowerBound.addingReportingOverflow(extent.offset)
                let home = data.first { $0.lowerBound <= begin.partialValue && begin.partialValue < $0.upperBound }
                guard !begin.overflow, let home,
                    extent.length <= home.upperBound - begin.partialValue
                else { throw error }
                let length = extent.length == 0 ? home.upperBound - begin.partialValue : extent.length
                extents.append(begin.partialValue..<(begin.partialValue + length))
            case .itemData:
                guard let itemData = directory.itemData else { throw error }
                let base = box.content.lowerBound + itemData.lowerBound
                let whole: [Range<Int64>] = [base..<(base + itemData.upperBound - itemData.lowerBound)]
                extents += try Self.slice(whole, extent.offset, extent.length, error)
            case .item:
                // An extent without an index uses the first source.
                let index = Int(clamping: max(extent.index, 1) - 1)
                guard let sources = directory.sources[item], index < sources.count else { throw error }
                let source = try self.extents(of: sources[index], directory, box, file, data, depth: depth + 1)
                extents += try Self.slice(source, extent.offset, extent.length, error)
            }
            guard extents.count <= 4096 else { throw error }
        }
        return extents
    }

    /// Cuts `length` bytes at `offset` out of the joined ranges. A length of 0 means all bytes after the offset.
    private static func slice(
        _ extents: [Range<Int64>], _ offset: Int64, _ length: Int64, _ error: ScanError
    ) throws(ScanError) -> [Range<Int64>] {
        var (skipped, wanted) = (offset, length == 0 ? Int64.max : length)
        var slice: [Range<Int64>] = []
        for extent in extents where wanted > 0 {
            let count = extent.upperBound - extent.lowerBound
            if skipped >= count {
                skipped -= count
                continue
            }
            let taken = min(count - skipped, wanted)
            slice.append((extent.lowerBound + skipped)..<(extent.lowerBound + skipped + taken))
            (skipped, wanted) = (0, wanted - taken)
        }
        guard length == 0 || wanted == 0 else { throw error }
        return slice
    }
}

/// The tracks of videos (ISO/IEC 14496-12 §8.3).
extension MetadataScan {
    /// Finds the data of a track to remove, such as a camera's position at every second.
    mutating func scanTrack(_ track: Box, _ file: inout BoxFile) throws(ScanError) {
        guard let media = try boxes(in: track.content).first(where: { $0.type == "mdia" }) else { return }
        let inMedia = try boxes(in: media.content)
        guard let handler = inMedia.first(where: { $0.type == "hdlr" }),
            let information = inMedia.first(where: { $0.type == "minf" }),
            let table = try boxes(in: information.content).first(where: { $0.type == "stbl" })
        else { return }
        let kind = String(decoding: try bytes(at: handler.content.lowerBound + 8, count: 4), as: UTF8.self)
        let tables = try boxes(in: table.content)
        var removed: RemovedContent = .unknown
        switch kind {
        case "meta":
            guard let entries = tables.first(where: { $0.type == "stsd" }) else { return }
            if removal == .location {
                guard let kind = try self.kind(ofMetadata: entries) else { return }
                removed = kind
            }
        case "text", "sbtl", "subt", "camm", "gpmd":
            break
        case "vide", "soun", "pict", "auxv", "hint", "MPEG", "musi", "volv", "hapt":
            return
        default:
            if removal == .location { return }
        }
        let chunks = try chunks(of: tables, from: file.start, at: table.start)
        for chunk in chunks.prefix(4) where removed == .unknown { removed = try place(in: chunk) ?? removed }
        // Drones write their positions as subtitles.
        let isText = ["text", "sbtl", "subt"].contains(kind)
        guard removal == .everything || !isText || removed != .unknown else { return }
        file.hasTracksToClear = true
        file.chunks += chunks.map { ($0, removed) }
    }

    /// The kind of sensitive content in a metadata track; `nil` if the track may stay. Apple's tracks name their
    /// content. Other tracks contain positions or a camera maker's data.
    private mutating func kind(ofMetadata entries: Box) throws(ScanError) -> RemovedContent? {
        guard entries.content.upperBound - entries.content.lowerBound > 8 else { return .unknown }
        for entry in try boxes(in: (entries.content.lowerBound + 8)..<entries.content.upperBound) {
            guard entry.type == "mebx" else { return .unknown }
            // A `mebx` entry contains the names of its keys as plain text.
            if let kind = SensitiveName.kind(of: try block([entry.content])[...]) { return kind }
        }
        return nil
    }

    private mutating func place(in chunk: Range<Int64>) throws(ScanError) -> RemovedContent? {
        let count = Int(clamping: min(4096, chunk.upperBound - chunk.lowerBound))
        let kind = SensitiveName.kind(of: try bytes(at: chunk.lowerBound, upTo: count)[...])
        return [.position, .places].first { kind?.contains($0) ?? false }
    }

    /// The ranges of a track's chunks (ISO/IEC 14496-12 §8.7), read from the track's tables. The offsets in the tables
    /// count from `start`, where the video begins; it is not 0 if the video is inside a picture file. Errors report
    /// the offset `place`.
    private mutating func chunks(
        of tables: [Box], from start: Int64, at place: Int64
    ) throws(ScanError) -> [Range<Int64>] {
        let error = ScanError(at: place, "a track of metadata cannot be located")
        func box(_ types: String...) -> Box? { tables.first { types.contains($0.type) } }
        guard let sizes = box("stsz"), let runs = box("stsc"), let offsets = box("stco", "co64") else { throw error }
        let (sizeTable, runTable) = (try block([sizes.content]), try block([runs.content]))
        let offsetTable = try block([offsets.content])
        func number(_ table: [UInt8], _ index: Int64, bytes count: Int = 4) -> Int64? {
            guard index >= 0, index <= Int64(table.count - count) else { return nil }
            let bytes = table[Int(clamping: index)..<(Int(clamping: index) + count)]
            return bytes.first.map { $0 & 0x80 != 0 && count == 8 } == true ? nil : bytes.bigEndian
        }
        guard let size = number(sizeTable, 4), let count = number(offsetTable, 4), count <= Limit.trackChunks,
            let runCount = number(runTable, 4)
        else { throw error }
        var chunks: [Range<Int64>] = []
        var (run, sample): (Int64, Int64) = (0, 0)
        for index in 0..<count {
            while run + 1 < runCount, let first = number(runTable, 8 + 12 * (run + 1)), first <= index + 1 { run += 1 }
            let width = offsets.type == "co64" ? 8 : 4
            guard let samples = number(runTable, 12 + 12 * run),
                let offset = number(offsetTable, 8 + Int64(width) * index, bytes: width)
            else { throw error }
            var (length, isTooLong) = size.multipliedReportingOverflow(by: samples)
            if size == 0 {
                guard samples <= Int64(sizeTable.count) else { throw error }
                for index in sample..<(sample + samples) {
                    guard let size = number(sizeTable, 12 + 4 * index) else { throw error }
                    length += size
                }
            }
            sample += samples
            let rest = self.length - start
            guard !isTooLong, length <= rest, offset <= rest - length else { throw error }
            chunks.append((start + offset)..<(start + offset + length))
        }
        return chunks
    }
}
