/// PNG (W3C PNG 3rd edition §5) and WebP (RFC 9649 §2), which consist of chunks.
extension MetadataScan {
    /// Chunks that affect the look, timing or size of the picture. Chunks with an initial capital are needed too.
    private static let pngChunks: Set<String> = [
        "tRNS", "cHRM", "gAMA", "iCCP", "sBIT", "sRGB", "cICP", "mDCV", "mDCv", "cLLI", "cLLi", "bKGD", "hIST", "pHYs",
        "sPLT", "acTL", "fcTL", "fdAT", "iDOT", "gdAT",
    ]

    mutating func scanPNG() throws(ScanError) {
        var offset: Int64 = 8
        var (last, leap): ([UInt8], Int64) = ([], 1)
        while true {
            try countUnit(at: offset)
            let header = try bytes(at: offset, count: 8)
            let unit = try unit(of: .png, header, at: offset, end: length)
            if unit.kind == .named("IDAT"), header == last {
                // A picture may have thousands of chunks with equal headers in a row. If the header is also found where
                // the chunk `leap` chunks later would begin, the chunks in between are skipped.
                let target = offset + leap * (unit.next - offset)
                let isThere = try target < length - 12 ? bytes(at: target, upTo: 8) == header : false
                leap = isThere ? leap * 2 : max(leap / 2, 1)
                if isThere {
                    offset = target
                    continue
                }
                if leap > 1 { continue }
            }
            last = header
            if case .named(let type) = unit.kind { try scanPNGChunk(type, unit.content) }
            offset = unit.next
            if unit.isLast { break }
        }
        // After cropping, some programs leave pixels of the original picture after the end.
        if offset < length { clear(offset..<length, .trailer) }
    }

    private mutating func scanPNGChunk(_ type: String, _ content: Range<Int64>) throws(ScanError) {
        let isNeeded = type.utf8.first.map { $0 & 0x20 == 0 } ?? false
        switch type {
        case _ where isNeeded || Self.pngChunks.contains(type):
            break
        case "eXIf":
            let inheritance = inheritance
            try rewritePNGChunk(type, content) { block, removed throws(BlockError) in
                let start = PictureContainer.png.exifPrefix(of: block[...]) ?? 0
                let exif = try EXIFBlock.rewritten(Array(block[start...]), inheritance, &removed)
                return block[..<start] + exif
            }
        case "tIME" where removal == .location:
            break
        case "tEXt" where removal == .location:
            if let kind = try self.kind(ofTextIn: content) { wipePNGChunk(content, kind) }
        case "iTXt" where removal == .location:
            try scanInternationalText(content)
        default:
            // Compressed texts are not read, so they are removed.
            wipePNGChunk(content, .unknown)
        }
    }

    /// The kind of sensitive content in a text chunk, according to its keyword of up to 79 bytes.
    private mutating func kind(ofTextIn content: Range<Int64>) throws(ScanError) -> RemovedContent? {
        let start = try bytes(
            at: content.lowerBound, upTo: Int(clamping: min(80, content.upperBound - content.lowerBound)))
        guard let end = start.firstIndex(of: 0) else { return .unknown }
        return SensitiveName.kind(of: start[..<end])
    }

    /// Reads a text chunk in UTF-8: keyword, two bytes on compression, language, translated keyword, text.
    private mutating func scanInternationalText(_ content: Range<Int64>) throws(ScanError) {
        let keyword = Array("XML:com.adobe.xmp\0".utf8)
        let count = content.upperBound - content.lowerBound
        let start = try bytes(at: content.lowerBound, upTo: Int(clamping: min(1024, count)))
        let ends = start.indices.filter { start[$0] == 0 }
        guard start.starts(with: keyword) else {
            let isCompressed = ends.first.map { $0 + 1 < start.count && start[$0 + 1] != 0 } ?? true
            let kind = isCompressed ? .unknown : try self.kind(ofTextIn: content)
            if let kind { wipePNGChunk(content, kind) }
            return
        }
        // A zero ends the language, and another the translated keyword.
        let texts = start.dropFirst(keyword.count + 2)
        guard start.count > keyword.count, start[keyword.count] == 0, let language = texts.firstIndex(of: 0),
            let translated = start[(language + 1)...].firstIndex(of: 0)
        else { return wipePNGChunk(content, .unknown) }
        try rewritePNGChunk("iTXt", content) { block, removed throws(BlockError) in
            do throws(BlockError) {
                let packet = Array(block[(translated + 1)...])
                return block[...translated] + (try XMPPacket.withoutLocation(packet, &removed))
            } catch {
                throw BlockError(at: translated + 1 + error.index, error.reason)
            }
        }
    }

    /// Rewrites the content of a chunk, and its checksum if the content changes.
    private mutating func rewritePNGChunk(
        _ type: String, _ content: Range<Int64>, by rewriting: BlockRewriting
    ) throws(ScanError) {
        var checksum: CRC32?
        try rewrite([content]) { block, removed throws(BlockError) in
            let rewritten = try rewriting(block, &removed)
            if rewritten != block {
                var read = CRC32()
                read.read(Array(type.utf8))
                read.read(rewritten)
                checksum = read
            }
            return rewritten
        }
        if let checksum { write(checksum.bytes, at: content.upperBound, []) }
    }

    /// Clears a chunk and gives it a type without meaning: ancillary, private and safe to copy.
    private mutating func wipePNGChunk(_ content: Range<Int64>, _ kind: RemovedContent) {
        let type = Array("fiLl".utf8)
        write(type, at: content.lowerBound - 4, kind)
        // The first four bytes set the checksum register to zero. The zeros after them leave it unchanged.
        var checksum = CRC32()
        checksum.read(type)
        let count = Int(clamping: min(content.upperBound - content.lowerBound, 4))
        let start = count == 4 ? checksum.registerBytes : [UInt8](repeating: 0, count: count)
        checksum.read(start)
        write(start, at: content.lowerBound, kind)
        clear((content.lowerBound + Int64(count))..<content.upperBound, kind)
        write(checksum.bytes, at: content.upperBound, kind)
    }
}

// MARK: - WebP

extension MetadataScan {
    private static let webPChunks: Set<String> = [
        "VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF", "ICCP",
    ]

    /// Finds the bytes to overwrite in a WebP. `start` has the first bytes of the file.
    mutating func scanWebP(_ start: [UInt8]) throws(ScanError) {
        let end = PictureContainer.webP.statedEnd(start[...]) ?? 0
        guard end <= length, end >= 12 else {
            throw ScanError(at: 4, "the WebP is said to end at byte \(end), and the file has \(length) bytes")
        }
        var offset: Int64 = 12
        while offset < end {
            try countUnit(at: offset)
            let unit = try unit(of: .webP, bytes(at: offset, count: 8), at: offset, end: end)
            if case .named(let type) = unit.kind { try scanWebPChunk(type, unit.content) }
            offset = unit.next
        }
        if end < length { clear(end..<length, .trailer) }
    }

    private mutating func scanWebPChunk(_ type: String, _ content: Range<Int64>) throws(ScanError) {
        switch type {
        case _ where Self.webPChunks.contains(type):
            break
        case "EXIF":
            let count = content.upperBound - content.lowerBound
            let start = try bytes(at: content.lowerBound, upTo: Int(clamping: min(6, count)))
            let prefix = Int64(PictureContainer.webP.exifPrefix(of: start[...]) ?? 0)
            try rewriteEXIF([(content.lowerBound + prefix)..<content.upperBound])
        case "XMP ":
            try rewriteXMP([content])
        default:
            clear(content, .unknown)
        }
    }

    /// Rewrites XMP that is a separate piece.
    mutating func rewriteXMP(_ extents: [Range<Int64>]) throws(ScanError) {
        let removal = removal
        try rewrite(extents) { block, removed throws(BlockError) in
            removal == .everything
                ? XMPPacket.empty(count: block.count) : try XMPPacket.withoutLocation(block, &removed)
        }
    }
}

// MARK: - GIF

extension MetadataScan {
    /// Reads the blocks of a GIF (GIF89a Specification). Their data is in sub-blocks of up to 255 bytes.
    mutating func scanGIF() throws(ScanError) {
        var offset = PictureContainer.gif.firstOffset(try bytes(at: 0, count: 13)[...])
        while true {
            try countUnit(at: offset)
            let header = try bytes(at: offset, upTo: 18)
            let unit = try unit(of: .gif, header, at: offset, end: length)
            if unit.isLast {
                if unit.next < length { clear(unit.next..<length, .trailer) }
                return
            }
            let isExtension = unit.kind == .block(0x21) && header.count >= 3
            offset = isExtension ? try scanGIFExtension(header, at: offset) : try end(ofPiecesAt: unit.next)
        }
    }

    private mutating func scanGIFExtension(_ header: [UInt8], at offset: Int64) throws(ScanError) -> Int64 {
        let application = header.dropFirst(3).prefix(11)
        let isApplication = header[1] == 0xFF && header[2] == 11
        let data = isApplication ? offset + 14 : offset + 2
        let end = try end(ofPiecesAt: data)
        func isOne(of names: String...) -> Bool { names.contains { application.elementsEqual($0.utf8) } }
        if isApplication, isOne(of: "XMP DataXMP"), end - data > 258 {
            // XMP is not divided into sub-blocks. A reader that takes any byte of it for a length lands in the trailer
            // after it, whose bytes all lead to the end.
            let trailer: [UInt8] = [1] + (0...255).map { 255 - $0 } + [0]
            guard try bytes(at: end - 258, count: 258) == trailer else {
                throw ScanError(at: offset, "the XMP of the GIF does not end as it has to")
            }
            let packet = [data..<(end - 258)]
            guard try !block(packet).contains(0) else {
                throw ScanError(at: offset, "the XMP of the GIF has a zero in it")
            }
            try rewriteXMP(packet)
        } else if header[1] == 0xFF, !(isApplication && isOne(of: "NETSCAPE2.0", "ANIMEXTS1.0", "ICCRGBG1012")) {
            try clearPieces(at: data, to: end, .unknown)
        } else if header[1] == 0xFE, removal == .everything {
            try clearPieces(at: data, to: end, .other)
        }
        return end
    }

    /// The end offset of data in sub-blocks. Each begins with its length; the last has the length zero.
    private mutating func end(ofPiecesAt start: Int64) throws(ScanError) -> Int64 {
        var offset = start
        var size = 256
        while true {
            let chunk = try pixelBytes(at: offset, upTo: size)
            size = min(2 * size, 64 << 10)
            guard !chunk.isEmpty else { throw ScanError(at: offset, "the GIF ends inside a block") }
            var index = 0
            while index < chunk.count {
                if chunk[index] == 0 { return offset + Int64(index) + 1 }
                index += Int(chunk[index]) + 1
            }
            offset += Int64(index)
        }
    }

    private mutating func clearPieces(
        at start: Int64, to end: Int64, _ kind: RemovedContent
    ) throws(ScanError) {
        var offset = start
        while offset < end - 1 {
            try countUnit(at: offset)
            let count = try Int64(bytes(at: offset, count: 1)[0])
            clear((offset + 1)..<(offset + 1 + count), kind)
            offset += count + 1
        }
    }
}

/// The checksum of a PNG chunk (W3C PNG 3rd edition, Annex D).
private struct CRC32 {
    private var register: UInt32 = 0xFFFF_FFFF

    mutating func read(_ bytes: [UInt8]) {
        for byte in bytes { register = Self.table[Int(UInt8(truncatingIfNeeded: register) ^ byte)] ^ register >> 8 }
    }

    /// The four bytes of the checksum in the file.
    var bytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: ~register >> (24 - 8 * $0)) } }

    /// The four bytes that set the register to zero.
    var registerBytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: register >> (8 * $0)) } }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
    }
}
