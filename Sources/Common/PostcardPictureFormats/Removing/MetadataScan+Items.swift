/// The metadata of a HEIC or AVIF picture, which is in items.
extension MetadataScan {
    /// Rewrites the metadata that the items of a picture hold.
    ///
    /// - Parameters:
    ///   - box: Their directory.
    ///   - file: What their places count from.
    ///   - data: The ranges that they must be in, so that none overlaps what describes it.
    ///   - depth: How many pictures and videos the picture is in.
    mutating func scanItems(
        _ box: Box, in file: Range<Int64>, data: [Range<Int64>], depth: Int
    ) throws(PictureFault) {
        for child in try boxes(inMeta: box) {
            switch child.type {
            case "free", "skip": clear(child.content, .unused)
            case "uuid": try scanUUID(child)
            case "xml ", "bxml", "ID32", "udta": wipe(child, .unknown)
            default: break
            }
        }
        let directory = ItemDirectory(meta: try block([box.content]))
        if let fault = directory.fault {
            throw PictureFault(at: box.content.lowerBound + Int64(fault.index), fault.reason)
        }
        for item in directory.items where item.kind != .other {
            let extents = try extents(of: item.number, directory, box, file, data)
            switch item.kind {
            case .exif: try rewriteItem(EXIF: extents, box)
            case .xmp: try rewriteXMP(extents)
            case .jpeg:
                guard extents.count == 1 else {
                    throw PictureFault(at: box.start, "a JPEG in the file is in more than one piece")
                }
                try scanJPEG(extents[0], depth: depth + 1)
            case .encodedXMP: throw PictureFault(at: box.start, "the picture has XMP that is compressed")
            case .other: break
            }
        }
    }

    /// EXIF after four bytes with the number of other bytes before it (ISO/IEC 23008-12 Annex A).
    private mutating func rewriteItem(EXIF extents: [Range<Int64>], _ box: Box) throws(PictureFault) {
        let inheritance = inheritance
        try rewrite(extents) { block, removed throws(BlockFault) in
            guard let start = PictureContainer.boxes.exifPrefix(of: block[...]), start <= block.count else {
                throw BlockFault(at: 0, "the EXIF is declared to begin after its end")
            }
            do throws(BlockFault) {
                return block[..<start] + (try EXIFBlock.rewritten(Array(block[start...]), inheritance, &removed))
            } catch {
                throw BlockFault(at: start + error.index, error.reason)
            }
        }
    }

    /// The ranges of an item's extents in the file.
    private mutating func extents(
        of item: Int64, _ directory: ItemDirectory, _ box: Box, _ file: Range<Int64>, _ data: [Range<Int64>],
        depth: Int = 0
    ) throws(PictureFault) -> [Range<Int64>] {
        try countUnit(at: box.start)
        let fault = PictureFault(at: box.start, "item \(item) of the picture cannot be located")
        guard let location = directory.locations[item], location.isInFile, depth < 4 else { throw fault }
        var extents: [Range<Int64>] = []
        for extent in location.extents {
            try countUnit(at: box.start)
            switch location.origin {
            case .file:
                let begin = file.lowerBound.addingReportingOverflow(extent.offset)
                let home = data.first { $0.lowerBound <= begin.partialValue && begin.partialValue < $0.upperBound }
                guard !begin.overflow, let home,
                    extent.length <= home.upperBound - begin.partialValue
                else { throw fault }
                let length = extent.length == 0 ? home.upperBound - begin.partialValue : extent.length
                extents.append(begin.partialValue..<(begin.partialValue + length))
            case .itemData:
                guard let itemData = directory.itemData else { throw fault }
                let base = box.content.lowerBound + itemData.lowerBound
                let whole: [Range<Int64>] = [base..<(base + itemData.upperBound - itemData.lowerBound)]
                extents += try Self.slice(whole, extent.offset, extent.length, fault)
            case .item:
                // Without a number it is the first.
                let index = Int(clamping: max(extent.index, 1) - 1)
                guard let sources = directory.sources[item], index < sources.count else { throw fault }
                let source = try self.extents(of: sources[index], directory, box, file, data, depth: depth + 1)
                extents += try Self.slice(source, extent.offset, extent.length, fault)
            }
            guard extents.count <= 4096 else { throw fault }
        }
        return extents
    }

    /// A range of bytes that are in several places; all from the offset if the length is 0.
    private static func slice(
        _ extents: [Range<Int64>], _ offset: Int64, _ length: Int64, _ fault: PictureFault
    ) throws(PictureFault) -> [Range<Int64>] {
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
        guard length == 0 || wanted == 0 else { throw fault }
        return slice
    }
}
