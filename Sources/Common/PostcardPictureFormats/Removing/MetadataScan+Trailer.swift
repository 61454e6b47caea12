/// The bytes after the end of a picture: further pictures, the video of a motion photo, Samsung's directory of blocks,
/// or anything else. Pictures and videos stay, without their own metadata. All other bytes are overwritten.
extension MetadataScan {
    /// Finds the bytes to overwrite after a picture, in a range that may contain pictures and videos in any order.
    /// `depth` counts the pictures and videos that contain the range.
    mutating func scanTrailer(_ range: Range<Int64>, depth: Int) throws(ScanError) {
        guard !range.isEmpty else { return }
        guard removal == .location, let directory = try samsungDirectory(in: range) else {
            return try scanPieces(in: range, depth: depth)
        }
        var offset = range.lowerBound
        for block in directory.blocks where block.range.lowerBound >= offset {
            try scanPieces(in: offset..<block.range.lowerBound, depth: depth)
            try scan(block, depth: depth)
            offset = block.range.upperBound
        }
        try scanPieces(in: offset..<directory.range.lowerBound, depth: depth)
        clear(directory.listEnd..<(directory.range.upperBound - 8), .unknown)
        let rest = directory.range.upperBound..<range.upperBound
        // Samsung's "Sound & Shot" ends the file with the offset of its sound, which may stay.
        let end = try bytes(at: rest.lowerBound, upTo: Int(clamping: min(32, rest.upperBound - rest.lowerBound)))
        if end.count == 30, end.starts(with: "QDIO".utf8), end.dropFirst(24).elementsEqual("QDIOBS".utf8) { return }
        try scanPieces(in: rest, depth: depth)
    }

    // MARK: - Pictures and videos

    private enum Piece {
        case picture, video

        var kind: RemovedContent { self == .picture ? .pictures : .video }
    }

    private mutating func scanPieces(in range: Range<Int64>, depth: Int) throws(ScanError) {
        guard depth < Limit.depth || range.isEmpty else {
            throw ScanError(at: range.lowerBound, "more than \(Limit.depth) pictures and videos are in one another")
        }
        var (offset, start) = (range.lowerBound, range.lowerBound)
        while let found = try piece(from: start, to: range.upperBound) {
            let before = findings
            let end: Int64
            do throws(ScanError) {
                end = try scan(found.piece, found.start..<range.upperBound, depth: depth)
            } catch {
                let isExpected = removal == .location && !found.isSearched
                guard error.underlyingError == nil, !isExpected else { throw error }
                // These bytes resemble the beginning of a picture or video, but are neither.
                forget(since: before)
                start = found.start + 1
                continue
            }
            if removal == .everything {
                forget(since: before)
                clear(found.start..<end, found.piece.kind)
            }
            clear(offset..<found.start, .trailer)
            (offset, start) = (end, end)
        }
        clear(offset..<range.upperBound, .trailer)
    }

    /// Finds the bytes to overwrite in a picture or video. Returns the offset after it.
    private mutating func scan(
        _ piece: Piece, _ range: Range<Int64>, depth: Int
    ) throws(ScanError) -> Int64 {
        switch piece {
        case .picture: return try scanPicture(range, depth: depth + 1)
        case .video:
            let end = try endOfBoxes(in: range, isBehindPicture: true)
            hasVideo = true
            try scanBoxFile(range.lowerBound..<end, depth: depth + 1)
            return end
        }
    }

    /// Finds the next picture or video. Returns its kind, its offset, and whether other bytes than zeros precede it.
    private mutating func piece(
        from start: Int64, to end: Int64
    ) throws(ScanError) -> (piece: Piece, start: Int64, isSearched: Bool)? {
        var (offset, isSearched) = (start, false)
        while offset < end {
            let chunk = try pixelBytes(at: offset, upTo: Int(clamping: min(64 << 10, end - offset)))
            if let (index, piece) = Self.firstPiece(in: chunk) {
                isSearched = isSearched || chunk[..<index].contains { $0 != 0 }
                return (piece, offset + Int64(index), isSearched)
            }
            isSearched = isSearched || chunk.contains { $0 != 0 }
            // The last bytes of this chunk may be the first bytes of a picture.
            if chunk.count < 16 || offset + Int64(chunk.count) >= end { return nil }
            offset += Int64(chunk.count) - 11
        }
        return nil
    }

    private static func firstPiece(in chunk: [UInt8]) -> (index: Int, piece: Piece)? {
        chunk.withUnsafeBytes { chunk in
            var index = 0
            while index + 4 <= chunk.count {
                if index + 21 <= chunk.count, !mayBeginPiece(in: chunk, at: index) {
                    index += 16
                    continue
                }
                for place in index..<min(index + 16, chunk.count - 3) {
                    if let piece = piece(in: chunk, at: place) { return (place, piece) }
                }
                index += 16
            }
            return nil
        }
    }

    /// Whether a picture or video may begin at one of the next 16 bytes.
    private static func mayBeginPiece(in chunk: UnsafeRawBufferPointer, at index: Int) -> Bool {
        func are(_ byte: UInt8, _ distance: Int) -> SIMDMask<SIMD16<Int8>> {
            chunk.loadUnaligned(fromByteOffset: index + distance, as: SIMD16<UInt8>.self)
                .== SIMD16(repeating: byte)
        }
        let begin = (are(0xFF, 0) .& are(0xD8, 1)) .| (are(UInt8(ascii: "f"), 4) .& are(UInt8(ascii: "t"), 5))
        let bits = unsafeBitCast(begin, to: SIMD2<UInt64>.self)
        return bits.x | bits.y != 0
    }

    private static func piece(in chunk: UnsafeRawBufferPointer, at index: Int) -> Piece? {
        if chunk[index] == 0xFF, chunk[index + 1] == 0xD8, chunk[index + 2] == 0xFF, chunk[index + 3] >= 0xC0,
            chunk[index + 3] != 0xFF
        {
            return .picture
        }
        // The first box of a video is short and has the type of the file.
        let isVideo =
            chunk[index] == 0 && chunk[index + 1] == 0 && index + 12 <= chunk.count
            && chunk[(index + 4)..<(index + 8)].elementsEqual("ftyp".utf8)
            && isMovie(Array(chunk[index..<(index + 12)]))
        return isVideo ? .video : nil
    }
}

// MARK: - Samsung

extension MetadataScan {
    /// Samsung's directory of blocks. The blocks are sorted by offset.
    private struct SamsungDirectory {
        let range: Range<Int64>
        /// The offset after the list of blocks.
        let listEnd: Int64
        let blocks: [SamsungBlock]
    }

    private struct SamsungBlock {
        let type: Int64
        let range: Range<Int64>
    }

    /// Finds the directory near the end of a range. Its layout, as in ExifTool: "SEFH", version, number of blocks; for
    /// each block its type, its distance before the directory, and its length; then the directory's length and "SEFT".
    private mutating func samsungDirectory(in range: Range<Int64>) throws(ScanError) -> SamsungDirectory? {
        let start = max(range.lowerBound, range.upperBound - (64 << 10))
        let tail = try pixelBytes(at: start, upTo: Int(clamping: range.upperBound - start))
        var end = tail.count
        while end >= 20 {
            if tail[(end - 4)..<end].elementsEqual("SEFT".utf8) {
                let length = Int(clamping: tail[(end - 8)..<(end - 4)].littleEndian)
                let first = end - 8 - length
                if length >= 12, first >= 0, tail[first...].starts(with: "SEFH".utf8) {
                    let directory = Self.samsungDirectory(
                        tail[first..<end], at: start + Int64(first), behind: range.lowerBound)
                    // In a video, the directory is in a box and is read with it.
                    let box = (directory.blocks.first?.range ?? directory.range).lowerBound - 4
                    let isInBox = try box < range.lowerBound ? false : bytes(at: box, upTo: 4) == Array("sefd".utf8)
                    return isInBox ? nil : directory
                }
            }
            end -= 1
        }
        return nil
    }

    private static func samsungDirectory(
        _ bytes: ArraySlice<UInt8>, at offset: Int64, behind start: Int64
    ) -> SamsungDirectory {
        let count = min(bytes.dropFirst(8).prefix(4).littleEndian, Int64((bytes.count - 20) / 12))
        let blocks = (0..<Int(clamping: count)).compactMap { index -> SamsungBlock? in
            let entry = bytes.dropFirst(12 + 12 * index)
            let (type, size) = (entry.dropFirst(2).prefix(2).littleEndian, entry.dropFirst(8).prefix(4).littleEndian)
            let begin = offset - entry.dropFirst(4).prefix(4).littleEndian
            guard size >= 8, begin >= start, size <= offset - begin else { return nil }
            return SamsungBlock(type: type, range: begin..<(begin + size))
        }
        return SamsungDirectory(
            range: offset..<(offset + Int64(bytes.count)), listEnd: offset + 12 + 12 * count,
            blocks: blocks.sorted { $0.range.lowerBound < $1.range.lowerBound })
    }

    /// Removes a sensitive block. A block has a type, the length of its name, its name, and data.
    private mutating func scan(_ block: SamsungBlock, depth: Int) throws(ScanError) {
        let header = try bytes(at: block.range.lowerBound, count: 8)
        let name = block.range.lowerBound + 8
        let length = header.dropFirst(4).littleEndian
        guard length <= block.range.upperBound - name else { return clear(name..<block.range.upperBound, .unknown) }
        let data = (name + length)..<block.range.upperBound
        let start = try bytes(at: data.lowerBound, upTo: Int(clamping: min(12, data.upperBound - data.lowerBound)))
        let isShort = data.upperBound - data.lowerBound <= 64
        switch block.type {
        // Harmless: the time of the picture, the version of a motion photo, and the offset of a HEIC's video.
        case 0x0A01 where isShort, 0x0A31 where isShort, 0x0A30 where isShort && start.starts(with: "mpv".utf8):
            break
        case _ where Self.firstPiece(in: start)?.index == 0:
            try scanPieces(in: data, depth: depth)
        default:
            // The country's code, a video in another format, or data in a private format of the maker.
            let kinds: [Int64: RemovedContent] = [0x0AA1: .places, 0x0A30: .video]
            clear(name..<block.range.upperBound, kinds[block.type] ?? .makerNote)
        }
    }
}
