/// JPEG (ITU-T T.81 Annex B), and the further pictures that a directory names (CIPA DC-007).
extension MetadataScan {
    /// What a picture's segments say, put together.
    private struct JPEGSegments {
        /// Each EXIF. A long one continues in further segments.
        var exif: [[Range<Int64>]] = []
        /// The resources of Photoshop, which may also continue in further segments.
        var photoshop: [Range<Int64>] = []
        /// XMP that had no room in one segment, by its identifier.
        var extendedXMP: [[UInt8]: [(offset: Int64, range: Range<Int64>)]] = [:]
        /// The directory of the pictures in the file.
        var pictures: Range<Int64>?
    }

    private static let xmpMark = Array("http://ns.adobe.com/xap/1.0/\0".utf8)
    private static let extendedXMPMark = Array("http://ns.adobe.com/xmp/extension/\0".utf8)
    private static let photoshopMark = Array("Photoshop 3.0\0".utf8)
    private static let picturesMark = Array("MPF\0".utf8)

    /// - Parameter range: The picture and all that follows it.
    mutating func scanJPEG(_ range: Range<Int64>, depth: Int = 0) throws(PictureFault) {
        let end = try scanPicture(range, depth: depth)
        try scanTrailer(end..<range.upperBound, depth: depth)
    }

    /// Reads a picture to its end. Its pixels are read too, because nothing else says where it ends and whether
    /// something follows.
    ///
    /// - Parameter range: The picture and all that may belong to it.
    /// - Returns: The offset behind the picture and those that its directory names.
    mutating func scanPicture(_ range: Range<Int64>, depth: Int) throws(PictureFault) -> Int64 {
        guard depth <= Limit.depth else {
            throw PictureFault(at: range.lowerBound, "more than \(Limit.depth) pictures are in one another")
        }
        guard range.upperBound - range.lowerBound >= 2, try bytes(at: range.lowerBound, count: 2) == [0xFF, 0xD8] else {
            throw PictureFault(at: range.lowerBound, "a JPEG picture was expected here")
        }
        var segments = JPEGSegments()
        var offset = range.lowerBound + 2
        try scanSegments(&segments, from: &offset, in: range)
        try rewrite(segments)
        guard let directory = segments.pictures else { return offset }
        // The first is the picture itself.
        let others = try pictures(listedIn: directory, from: range.lowerBound).dropFirst()
        for picture in others.sorted(by: { $0.lowerBound < $1.lowerBound }) where !picture.isEmpty {
            guard picture.lowerBound >= offset, picture.upperBound <= range.upperBound else {
                throw PictureFault(
                    at: range.lowerBound,
                    "another picture is declared at byte \(picture.lowerBound), where it does not fit")
            }
            try scanTrailer(offset..<picture.lowerBound, depth: depth)
            try scanTrailer(picture, depth: depth)
            offset = picture.upperBound
        }
        return offset
    }

    /// Walks from segment to segment, to the picture's end.
    private mutating func scanSegments(
        _ segments: inout JPEGSegments, from offset: inout Int64, in range: Range<Int64>
    ) throws(PictureFault) {
        var hasPixels = false
        while true {
            try countUnit(at: offset)
            let header = try bytes(at: offset, upTo: Int(clamping: min(48, range.upperBound - offset)))
            // The pixels may be followed by the file's end: then there is nothing left to hide.
            if header.isEmpty, hasPixels { return }
            let unit = try unit(of: .jpeg, header, at: offset, end: range.upperBound)
            offset = unit.next
            if unit.isLast { return }
            switch unit.kind {
            case .segment(0xDA):
                hasPixels = true
                try skipPixels(from: &offset, in: range)
            case .segment(let marker):
                let length = Int(clamping: unit.content.upperBound - unit.content.lowerBound)
                try sort(marker, unit.content, Array(header.dropFirst(4).prefix(length)), into: &segments)
            case .stray:
                // Decoders skip these bytes, which may say anything.
                clear(unit.content, .unused)
            case .marker, .named, .block:
                break
            }
        }
    }

    /// Skips to the next marker that is not part of the pixels, or to the end.
    private mutating func skipPixels(from offset: inout Int64, in range: Range<Int64>) throws(PictureFault) {
        var isBehindFF = false
        while offset < range.upperBound {
            let chunk = try pixelBytes(at: offset, upTo: Int(clamping: min(64 << 10, range.upperBound - offset)))
            let code = chunk.withUnsafeBytes { PictureContainer.marker(in: $0, from: 0, isBehindFF: &isBehindFF) }
            if let code {
                offset += Int64(code) - 1
                return
            }
            // The file is shorter than it was.
            if chunk.isEmpty { break }
            offset += Int64(chunk.count)
        }
        offset = range.upperBound
    }

    // MARK: - Segments

    private mutating func sort(
        _ marker: UInt8, _ content: Range<Int64>, _ start: [UInt8], into segments: inout JPEGSegments
    ) throws(PictureFault) {
        func rest(behind mark: [UInt8]) -> Range<Int64> {
            (content.lowerBound + Int64(mark.count))..<content.upperBound
        }
        switch marker {
        case 0xE1 where start.starts(with: PictureContainer.exifMark):
            let range = rest(behind: PictureContainer.exifMark)
            if segments.exif.isEmpty || TIFFByteOrder(header: start.dropFirst(PictureContainer.exifMark.count)) != nil {
                segments.exif.append([range])
            } else {
                segments.exif[segments.exif.count - 1].append(range)
            }
        case 0xE1 where start.starts(with: Self.xmpMark):
            let range = rest(behind: Self.xmpMark)
            if removal == .location {
                try rewrite([range], by: XMPPacket.withoutLocation)
            } else {
                wipe(content, .other)
            }
        case 0xE1 where removal == .location && start.starts(with: Self.extendedXMPMark):
            // An identifier of 32 bytes, and two numbers of four: the length of all, and where this piece begins.
            let fixed = Self.extendedXMPMark.count + 40
            let head = try bytes(at: content.lowerBound, count: fixed)
            let range = (content.lowerBound + Int64(fixed))..<max(content.upperBound, content.lowerBound + Int64(fixed))
            guard range.upperBound == content.upperBound else {
                throw PictureFault(at: content.lowerBound, "a segment of XMP is too short")
            }
            let identifier = Array(head[(fixed - 40)..<(fixed - 8)])
            segments.extendedXMP[identifier, default: []].append((head[(fixed - 4)...].bigEndian, range))
        case 0xE2 where start.starts(with: Self.picturesMark):
            segments.pictures = segments.pictures ?? rest(behind: Self.picturesMark)
            if removal == .everything { wipe(content, .other) }
        case 0xED where removal == .location && start.starts(with: Self.photoshopMark):
            segments.photoshop.append(rest(behind: Self.photoshopMark))
        case 0xFE, 0xE0...0xEF:
            if !isHarmless(marker, start) { wipe(content, .unknown) }
        default:
            break
        }
    }

    /// Whether a segment for applications holds nothing that must be removed.
    private func isHarmless(_ marker: UInt8, _ start: [UInt8]) -> Bool {
        func begins(_ marks: String...) -> Bool { marks.contains { start.starts(with: $0.utf8) } }
        return switch (removal, marker) {
        case (_, 0xE0): begins("JFIF\0") || (removal == .location && begins("JFXX\0"))
        case (_, 0xE2) where begins("ICC_PROFILE\0"): true
        // How transparency and colors are coded.
        case (_, 0xEE): begins("Adobe")
        // A brighter version's numbers (ISO 21496-1), the quality, comments.
        case (.location, 0xE2): begins("urn:iso:std:iso:ts:21496")
        case (.location, 0xEB): begins("HDR_RI")
        case (.location, 0xEC): begins("Ducky")
        case (.location, 0xFE): true
        default: false
        }
    }

    /// Turns a segment into one without meaning.
    private mutating func wipe(_ content: Range<Int64>, _ kind: RemovedContent) {
        write([0xEF], at: content.lowerBound - 3, kind)
        clear(content, kind)
    }

    private mutating func rewrite(_ segments: JPEGSegments) throws(PictureFault) {
        for extents in segments.exif { try rewriteEXIF(extents) }
        if !segments.photoshop.isEmpty {
            try rewrite(segments.photoshop, by: PhotoshopResources.withoutLocation)
        }
        for pieces in segments.extendedXMP.values {
            var next: Int64 = 0
            let ordered = pieces.sorted { $0.offset < $1.offset }
            for piece in ordered {
                guard piece.offset == next else {
                    throw PictureFault(at: piece.range.lowerBound, "the pieces of the XMP do not fit together")
                }
                next += piece.range.upperBound - piece.range.lowerBound
            }
            try rewrite(ordered.map(\.range), by: XMPPacket.withoutLocation)
        }
    }

    /// EXIF from its TIFF structure on.
    mutating func rewriteEXIF(_ extents: [Range<Int64>]) throws(PictureFault) {
        let inheritance = inheritance
        try rewrite(extents) { block, removed throws(BlockFault) in
            try EXIFBlock.rewritten(block, inheritance, &removed)
        }
    }

    /// The ranges of a file's pictures. The first picture is the one with the directory.
    private mutating func pictures(
        listedIn directory: Range<Int64>, from start: Int64
    ) throws(PictureFault) -> [Range<Int64>] {
        let bytes = try block([directory])
        guard let tiff = TIFFBlock(bytes), let first = tiff.number(at: 4, bytes: 4),
            let entry = tiff.entry(tag: 0xB002, in: first), let length = tiff.number(at: entry + 4, bytes: 4),
            let offset = tiff.number(at: entry + 8, bytes: 4), length % 16 == 0, length <= 16 * 64
        else {
            throw PictureFault(at: directory.lowerBound, "the directory of the pictures in the file is not understood")
        }
        var pictures: [Range<Int64>] = []
        for index in 0..<(length / 16) {
            guard let size = tiff.number(at: offset + 16 * index + 4, bytes: 4),
                let place = tiff.number(at: offset + 16 * index + 8, bytes: 4)
            else {
                throw PictureFault(at: directory.lowerBound, "the directory of the pictures in the file is cut off")
            }
            let begin = place == 0 ? start : directory.lowerBound + place
            pictures.append(begin..<(begin + size))
        }
        return pictures
    }
}
