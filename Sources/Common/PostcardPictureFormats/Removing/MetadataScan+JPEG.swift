/// JPEG (ITU-T T.81 Annex B), and the pictures that a JPEG's picture directory lists (CIPA DC-007).
extension MetadataScan {
    /// The metadata found in the segments of a picture.
    private struct JPEGSegments {
        /// The ranges of each EXIF. A long EXIF uses several segments.
        var exif: [[Range<Int64>]] = []
        /// The ranges of Photoshop's resources. Long resources use several segments.
        var photoshop: [Range<Int64>] = []
        /// The pieces of XMP that is too long for one segment, by identifier.
        var extendedXMP: [[UInt8]: [(offset: Int64, range: Range<Int64>)]] = [:]
        /// The range of the picture directory.
        var pictures: Range<Int64>?
    }

    private static let xmpMark = Array("http://ns.adobe.com/xap/1.0/\0".utf8)
    private static let extendedXMPMark = Array("http://ns.adobe.com/xmp/extension/\0".utf8)
    private static let photoshopMark = Array("Photoshop 3.0\0".utf8)
    private static let picturesMark = Array("MPF\0".utf8)

    /// Finds the bytes to overwrite in a range that contains a JPEG and all bytes after it.
    mutating func scanJPEG(_ range: Range<Int64>, depth: Int = 0) throws(ScanError) {
        let end = try scanPicture(range, depth: depth)
        try scanTrailer(end..<range.upperBound, depth: depth)
    }

    /// Reads the picture at the start of a range to its end. The range has all bytes that may belong to the picture.
    /// The pixels are read too, because only they show where the picture ends. Returns the offset after the picture and
    /// all pictures in its directory.
    mutating func scanPicture(_ range: Range<Int64>, depth: Int) throws(ScanError) -> Int64 {
        guard depth <= Limit.depth else {
            throw ScanError(at: range.lowerBound, "more than \(Limit.depth) pictures are in one another")
        }
        guard range.upperBound - range.lowerBound >= 2, try bytes(at: range.lowerBound, count: 2) == [0xFF, 0xD8] else {
            throw ScanError(at: range.lowerBound, "a JPEG picture was expected here")
        }
        var segments = JPEGSegments()
        var offset = range.lowerBound + 2
        try scanSegments(&segments, from: &offset, in: range)
        try rewrite(segments)
        guard let directory = segments.pictures else { return offset }
        // The first listed picture is the one with the directory.
        let others = try pictures(listedIn: directory, from: range.lowerBound).dropFirst()
        for picture in others.sorted(by: { $0.lowerBound < $1.lowerBound }) where !picture.isEmpty {
            guard picture.lowerBound >= offset, picture.upperBound <= range.upperBound else {
                throw ScanError(
                    at: range.lowerBound,
                    "another picture is declared at byte \(picture.lowerBound), where it does not fit")
            }
            try scanTrailer(offset..<picture.lowerBound, depth: depth)
            try scanTrailer(picture, depth: depth)
            offset = picture.upperBound
        }
        return offset
    }

    /// Reads consecutive segments up to the picture's end.
    private mutating func scanSegments(
        _ segments: inout JPEGSegments, from offset: inout Int64, in range: Range<Int64>
    ) throws(ScanError) {
        var hasPixels = false
        while true {
            try countUnit(at: offset)
            let header = try bytes(at: offset, upTo: Int(clamping: min(48, range.upperBound - offset)))
            // A file that ends inside the pixels has no further metadata.
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
                // Decoders skip these bytes, which may contain anything.
                clear(unit.content, .unused)
            case .marker, .named, .block:
                break
            }
        }
    }

    /// Skips the pixels up to the next marker, or to the end of the range.
    private mutating func skipPixels(from offset: inout Int64, in range: Range<Int64>) throws(ScanError) {
        var isBehindFF = false
        while offset < range.upperBound {
            let chunk = try pixelBytes(at: offset, upTo: Int(clamping: min(64 << 10, range.upperBound - offset)))
            let code = chunk.withUnsafeBytes { PictureContainer.marker(in: $0, from: 0, isBehindFF: &isBehindFF) }
            if let code {
                offset += Int64(code) - 1
                return
            }
            // The file has become shorter.
            if chunk.isEmpty { break }
            offset += Int64(chunk.count)
        }
        offset = range.upperBound
    }

    // MARK: - Segments

    private mutating func sort(
        _ marker: UInt8, _ content: Range<Int64>, _ start: [UInt8], into segments: inout JPEGSegments
    ) throws(ScanError) {
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
            // A piece begins with an identifier of 32 bytes, the length of the whole XMP and the offset of the piece.
            let fixed = Self.extendedXMPMark.count + 40
            let head = try bytes(at: content.lowerBound, count: fixed)
            let range = (content.lowerBound + Int64(fixed))..<max(content.upperBound, content.lowerBound + Int64(fixed))
            guard range.upperBound == content.upperBound else {
                throw ScanError(at: content.lowerBound, "a segment of XMP is too short")
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

    /// Whether an application segment has nothing to remove.
    private func isHarmless(_ marker: UInt8, _ start: [UInt8]) -> Bool {
        func begins(_ marks: String...) -> Bool { marks.contains { start.starts(with: $0.utf8) } }
        return switch (removal, marker) {
        case (_, 0xE0): begins("JFIF\0") || (removal == .location && begins("JFXX\0"))
        case (_, 0xE2) where begins("ICC_PROFILE\0"): true
        // Adobe's segment describes the coding of transparency and colors.
        case (_, 0xEE): begins("Adobe")
        // HDR versions (ISO 21496-1 and `HDR_RI`), the quality in Photoshop ("Ducky"), and comments.
        case (.location, 0xE2): begins("urn:iso:std:iso:ts:21496")
        case (.location, 0xEB): begins("HDR_RI")
        case (.location, 0xEC): begins("Ducky")
        case (.location, 0xFE): true
        default: false
        }
    }

    /// Clears a segment and gives it a type without meaning.
    private mutating func wipe(_ content: Range<Int64>, _ kind: RemovedContent) {
        write([0xEF], at: content.lowerBound - 3, kind)
        clear(content, kind)
    }

    private mutating func rewrite(_ segments: JPEGSegments) throws(ScanError) {
        for extents in segments.exif { try rewriteEXIF(extents) }
        if !segments.photoshop.isEmpty {
            try rewrite(segments.photoshop, by: PhotoshopResources.withoutLocation)
        }
        for pieces in segments.extendedXMP.values {
            var next: Int64 = 0
            let ordered = pieces.sorted { $0.offset < $1.offset }
            for piece in ordered {
                guard piece.offset == next else {
                    throw ScanError(at: piece.range.lowerBound, "the pieces of the XMP do not fit together")
                }
                next += piece.range.upperBound - piece.range.lowerBound
            }
            try rewrite(ordered.map(\.range), by: XMPPacket.withoutLocation)
        }
    }

    /// Rewrites EXIF that begins with its TIFF structure.
    mutating func rewriteEXIF(_ extents: [Range<Int64>]) throws(ScanError) {
        let inheritance = inheritance
        try rewrite(extents) { block, removed throws(BlockError) in
            try EXIFBlock.rewritten(block, inheritance, &removed)
        }
    }

    /// The ranges of the pictures in a directory. The first is the picture with the directory.
    private mutating func pictures(
        listedIn directory: Range<Int64>, from start: Int64
    ) throws(ScanError) -> [Range<Int64>] {
        let bytes = try block([directory])
        guard let tiff = TIFFBlock(bytes), let first = tiff.number(at: 4, bytes: 4),
            let entry = tiff.entry(tag: 0xB002, in: first), let length = tiff.number(at: entry + 4, bytes: 4),
            let offset = tiff.number(at: entry + 8, bytes: 4), length % 16 == 0, length <= 16 * 64
        else {
            throw ScanError(at: directory.lowerBound, "the directory of the pictures in the file is not understood")
        }
        var pictures: [Range<Int64>] = []
        for index in 0..<(length / 16) {
            guard let size = tiff.number(at: offset + 16 * index + 4, bytes: 4),
                let place = tiff.number(at: offset + 16 * index + 8, bytes: 4)
            else {
                throw ScanError(at: directory.lowerBound, "the directory of the pictures in the file is cut off")
            }
            let begin = place == 0 ? start : directory.lowerBound + place
            pictures.append(begin..<(begin + size))
        }
        return pictures
    }
}

/// Photoshop's image resources, which contain IPTC records, XMP and other content (Adobe Photoshop File Formats
/// Specification, "Image Resource Blocks").
enum PhotoshopResources {
    static func withoutLocation(_ bytes: [UInt8], _ removed: inout RemovedContent) throws(BlockError) -> [UInt8] {
        var result = bytes
        var index = 0
        var digest: Range<Int>?
        while index < bytes.count {
            let rest = bytes[index...]
            // Zeros at the end are padding.
            if rest.allSatisfy({ $0 == 0 }) { break }
            guard rest.count >= 8, signatures.contains(where: { rest.starts(with: $0.utf8) }) else {
                throw BlockError(at: index, "a resource of Photoshop was expected here")
            }
            let identifier = rest.dropFirst(4).prefix(2).bigEndian
            // A resource has a name with its length, and data, both padded to an even number of bytes.
            let size = index + 6 + (Int(bytes[index + 6]) + 2) / 2 * 2
            guard size + 4 <= bytes.count else { throw BlockError(at: index, "a resource of Photoshop is cut off") }
            let count = bytes[size..<(size + 4)].bigEndian
            guard count <= Int64(bytes.count - size - 4) else {
                throw BlockError(at: index, "a resource of Photoshop is said to have \(count) bytes, which do not fit")
            }
            let data = (size + 4)..<(size + 4 + Int(clamping: count))
            do throws(BlockError) {
                if let rewritten = try rewritten(identifier, Array(bytes[data]), &removed) {
                    result.replaceSubrange(data, with: rewritten)
                }
                if identifier == 0x0425 { digest = data }
            } catch {
                throw BlockError(at: data.lowerBound + error.index, error.reason)
            }
            index = min(data.upperBound + data.count % 2, bytes.count)
        }
        // The digest of changed IPTC records is no longer valid.
        if let digest, result != bytes { result.replaceSubrange(digest, with: repeatElement(0, count: digest.count)) }
        return result
    }

    private static let signatures = ["8BIM", "MeSa", "PHUT", "AgHg", "DCSR"]

    /// The replacement for a resource's data, of the same length; `nil` to keep the data.
    private static func rewritten(
        _ identifier: Int64, _ data: [UInt8], _ removed: inout RemovedContent
    ) throws(BlockError) -> [UInt8]? {
        switch identifier {
        case 0x0404: return try IPTCRecords.withoutLocation(data, &removed)
        case 0x0424: return try XMPPacket.withoutLocation(data, &removed)
        // These two resources contain EXIF.
        case 0x0422, 0x0423:
            if data.contains(where: { $0 != 0 }) { removed.insert(.other) }
            return [UInt8](repeating: 0, count: data.count)
        default: return nil
        }
    }
}

/// The IPTC records of a picture (IPTC-NAA Information Interchange Model 4.2).
enum IPTCRecords {
    static func withoutLocation(_ bytes: [UInt8], _ removed: inout RemovedContent) throws(BlockError) -> [UInt8] {
        // Some programs write the records into a TIFF as little-endian numbers of four bytes.
        guard bytes.count >= 4, bytes.count % 4 == 0, bytes[0] != 0x1C, bytes[3] == 0x1C else {
            return try rewritten(bytes, &removed)
        }
        return swapped(try rewritten(swapped(bytes), &removed))
    }

    private static func swapped(_ bytes: [UInt8]) -> [UInt8] { bytes.indices.map { bytes[$0 ^ 3] } }

    /// Moves the kept records to the front and fills the rest with zeros, like other programs.
    private static func rewritten(_ bytes: [UInt8], _ removed: inout RemovedContent) throws(BlockError) -> [UInt8] {
        var kept: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let rest = bytes[index...]
            if rest.allSatisfy({ $0 == 0 }) { break }
            guard rest.count >= 5, bytes[index] == 0x1C else {
                throw BlockError(at: index, "an IPTC record was expected here")
            }
            let (record, dataset) = (bytes[index + 1], bytes[index + 2])
            var header = 5
            var count = rest.dropFirst(3).prefix(2).bigEndian
            if count & 0x8000 != 0 {
                // In a long record, these two bytes are not the length, but say how many bytes the length has.
                let size = Int(clamping: count & 0x7FFF)
                guard size <= 4, rest.count >= 5 + size else {
                    throw BlockError(at: index, "an IPTC record has a length that cannot be read")
                }
                count = rest.dropFirst(5).prefix(size).bigEndian
                header += size
            }
            guard count <= Int64(rest.count - header) else {
                throw BlockError(at: index, "an IPTC record is said to have \(count) bytes, which do not fit")
            }
            let end = index + header + Int(clamping: count)
            if record == 2, let kind = kinds[dataset] { removed.insert(kind) } else { kept += bytes[index..<end] }
            index = end
        }
        return kept + [UInt8](repeating: 0, count: bytes.count - kept.count)
    }

    /// The sensitive datasets of the application record: locations, by-lines, cities, states, countries, credit,
    /// source, contact and writer.
    private static let kinds: [UInt8: RemovedContent] = [
        26: .places, 27: .places, 80: .names, 85: .names, 90: .places, 92: .places, 95: .places, 100: .places,
        101: .places, 110: .names, 115: .names, 118: .names, 122: .names,
    ]
}
