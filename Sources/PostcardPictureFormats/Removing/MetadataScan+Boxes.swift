/// The files of boxes: HEIC, AVIF, MP4 and QuickTime (ISO/IEC 14496-12 §4.2, QuickTime File Format Specification).
extension MetadataScan {
    struct Box {
        /// Four characters, each a byte.
        let type: String
        let start: Int64
        let content: Range<Int64>

        var whole: Range<Int64> { start..<content.upperBound }
    }

    /// What a file of boxes says, put together.
    private struct BoxFile {
        /// The offset of the file, from which the offsets in its tracks count.
        let start: Int64
        /// The ranges of the boxes that hold pixels, sound and the metadata of pictures.
        var data: [Range<Int64>] = []
        var hasFragments = false
        /// The directories of pictures.
        var itemDirectories: [Box] = []
        /// The contents of tracks that have to go.
        var chunks: [Range<Int64>] = []
        var hasTracksToClear = false
    }

    /// Whether a file begins with a box of these formats. Not Canon's raw pictures and JPEG 2000, where boxes that are
    /// metadata elsewhere are needed for decoding.
    static func isMovie(_ start: [UInt8]) -> Bool {
        let others = ["ftypcrx ", "ftypjp2 ", "ftypjpx ", "ftypjpm ", "ftypmjp2", "ftypjxl "]
        if others.contains(where: { start.dropFirst(4).starts(with: $0.utf8) }) { return false }
        let types = ["ftyp", "moov", "mdat", "wide", "free", "skip", "pnot"]
        return types.contains { start.dropFirst(4).starts(with: $0.utf8) }
    }

    /// - Parameters:
    ///   - range: The file, or that part of a picture in which there is a video.
    ///   - depth: How many pictures and videos it is in.
    mutating func scanBoxFile(_ range: Range<Int64>, depth: Int) throws(PictureFault) {
        var file = BoxFile(start: range.lowerBound)
        for box in try boxes(in: range) {
            switch box.type {
            case "mdat", "imda":
                file.data.append(box.content)
            case "moof":
                file.hasFragments = true
                try scanMovie(box, &file, depth: depth + 1)
            case "moov":
                try scanMovie(box, &file, depth: depth + 1)
            case "meta":
                try scanMeta(box, &file, depth: depth + 1)
            case "mpvd" where removal == .location:
                // The video of a moving picture.
                guard depth < Limit.depth else { throw PictureFault(at: box.start, "videos are nested too deeply") }
                try scanBoxFile(box.content, depth: depth + 1)
            case "free", "skip", "wide":
                // Editors leave there what was before.
                clear(box.content)
            case "uuid":
                try scanUUID(box)
            case _ where Self.topLevelBoxes.contains(box.type):
                break
            default:
                wipe(box)
            }
        }
        let isInPieces = file.data.count > 64 && !(file.itemDirectories.isEmpty && file.chunks.isEmpty)
        guard !isInPieces, !file.hasTracksToClear || !file.hasFragments else {
            throw PictureFault(at: range.lowerBound, "a video in fragments has a track of metadata")
        }
        for directory in file.itemDirectories {
            try scanItems(directory, in: range, data: file.data, depth: depth)
        }
        for chunk in file.chunks {
            guard file.data.contains(where: { $0.contains(chunk) }) else {
                throw PictureFault(at: chunk.lowerBound, "a track of metadata is declared outside the data")
            }
            clear(chunk)
        }
    }

    private static let topLevelBoxes: Set<String> = [
        "ftyp", "styp", "pdin", "mfra", "sidx", "ssix", "prft", "pnot", "emsg", "ctab", "junk", "etyp",
    ]

    /// The boxes that players need inside of those of a movie. Any other says nothing about pictures and sound, and may
    /// say where it was taken.
    private static let boxesOfMovie: [String: Set<String>] = [
        "moov": [
            "mvhd", "iods", "mvex", "pssh", "ctab", "clip", "ainf", "rmra", "prfl", "pdin", "trgr", "grpl",
        ],
        "trak": [
            "tkhd", "tref", "trgr", "load", "imap", "tapt", "clip", "matt", "crop", "txas", "kmat", "msrc", "ttyp",
        ],
        "mdia": ["mdhd", "hdlr", "elng", "imap"],
        "minf": ["vmhd", "smhd", "hmhd", "sthd", "nmhd", "gmhd", "hdlr", "dinf", "stbl", "hint"],
    ]

    // MARK: - Boxes

    /// The boxes of a range, whose headers have to fit.
    mutating func boxes(in range: Range<Int64>) throws(PictureFault) -> [Box] {
        var boxes: [Box] = []
        var offset = range.lowerBound
        while offset < range.upperBound {
            try countUnit(at: offset)
            let rest = range.upperBound - offset
            let header = try bytes(at: offset, upTo: Int(clamping: min(16, rest)))
            // A list in QuickTime may end with a zero.
            if rest < 8, header.allSatisfy({ $0 == 0 }) { break }
            let unit = try unit(of: .boxes, header, at: offset, end: range.upperBound)
            if case .named(let type) = unit.kind {
                boxes.append(Box(type: type, start: offset, content: unit.content))
            }
            offset = unit.next
        }
        return boxes
    }

    /// Turns a box into free space.
    mutating func wipe(_ box: Box) {
        write(Array("free".utf8), at: box.start + 4)
        clear(box.content)
    }

    /// The boxes in a metadata box: after a version and flags in ISO files, directly in QuickTime.
    mutating func boxes(inMeta box: Box) throws(PictureFault) -> [Box] {
        let count = box.content.upperBound - box.content.lowerBound
        let start = try bytes(at: box.content.lowerBound, upTo: Int(clamping: min(8, count)))
        let skipped: Int64 = count < 4 || start.dropFirst(4).starts(with: "hdlr".utf8) ? 0 : 4
        return try boxes(in: (box.content.lowerBound + skipped)..<box.content.upperBound)
    }

    // MARK: - Movies

    private mutating func scanMovie(_ box: Box, _ file: inout BoxFile, depth: Int) throws(PictureFault) {
        guard depth < Limit.boxDepth else { throw PictureFault(at: box.start, "boxes are nested too deeply") }
        let children = try boxes(in: box.content)
        for child in children {
            switch child.type {
            case "trak":
                try scanTrack(child, &file)
                try scanMovie(child, &file, depth: depth + 1)
            case "traf", "mdia", "edts", "minf":
                try scanMovie(child, &file, depth: depth + 1)
            case "mvhd", "tkhd", "mdhd":
                if removal == .everything { try clearTimes(child) }
            case "udta":
                try scanUserData(child, &file, depth: depth + 1)
            case "meta":
                try scanMeta(child, &file, depth: depth + 1)
            // Those in a fragment say how it is encrypted.
            case "uuid" where box.type == "moov" || box.type == "trak":
                try scanUUID(child)
            case "free", "skip":
                clear(child.content)
            case "cmov":
                throw PictureFault(at: child.start, "the description of the video is compressed")
            case _ where Self.boxesOfMovie[box.type].map { !$0.contains(child.type) } ?? false:
                wipe(child)
            default:
                break
            }
        }
    }

    /// Behind a version and flags: when it was made and changed.
    private mutating func clearTimes(_ box: Box) throws(PictureFault) {
        let size: Int64 = try bytes(at: box.content.lowerBound, count: 1)[0] == 1 ? 16 : 8
        guard box.content.upperBound - box.content.lowerBound >= 4 + size else { return }
        clear((box.content.lowerBound + 4)..<(box.content.lowerBound + 4 + size))
    }

    private mutating func scanUserData(_ box: Box, _ file: inout BoxFile, depth: Int) throws(PictureFault) {
        guard removal == .location else { return wipe(box) }
        for child in try boxes(in: box.content) {
            switch child.type {
            case "meta": try scanMeta(child, &file, depth: depth + 1)
            case "XMP_": try rewriteXMP([child.content])
            case "free", "skip": clear(child.content)
            case _ where Self.harmlessUserData.contains(child.type): break
            default: wipe(child)
            }
        }
    }

    /// User data and items that stay: titles, comments, copyright, times, the program, the camera's model, how it is
    /// shown, and what belongs to music. What is unknown is removed.
    private static let harmlessUserData: Set<String> = [
        "\u{A9}nam", "\u{A9}cmt", "\u{A9}cpy", "\u{A9}day", "\u{A9}des", "\u{A9}inf", "\u{A9}fmt", "\u{A9}req",
        "\u{A9}swr", "\u{A9}too", "\u{A9}enc", "\u{A9}mak", "\u{A9}mod", "\u{A9}key", "\u{A9}alb", "\u{A9}gen",
        "\u{A9}grp", "\u{A9}lyr", "\u{A9}trk", "\u{A9}TIM", "\u{A9}TSC", "\u{A9}TSZ", "titl", "dscp", "cprt", "yrrc",
        "albm", "gnre", "kywd", "name", "hinf", "hinv", "hnti", "tagc", "WLOC", "AllF", "SelO", "LOOP", "kind", "strk",
        "date", "desc", "ldes", "trkn", "disk", "covr", "cpil", "pgap", "tmpo", "rtng", "stik", "hdvd", "tvsh", "tves",
        "tvsn", "tven", "clfn", "clsf", "vndr",
    ]

    private mutating func scanMeta(_ box: Box, _ file: inout BoxFile, depth: Int) throws(PictureFault) {
        guard depth < Limit.boxDepth else { throw PictureFault(at: box.start, "boxes are nested too deeply") }
        let children = try boxes(inMeta: box)
        guard !children.contains(where: { $0.type == "iloc" || $0.type == "iinf" }) else {
            file.itemDirectories.append(box)
            return
        }
        guard removal == .location else { return wipe(box) }
        let keys = try children.first { $0.type == "keys" }.map { keys throws(PictureFault) in
            try sensitiveKeys(keys)
        }
        for child in children {
            switch child.type {
            case "ilst":
                for item in try boxes(in: child.content) { try scanItem(item, sensitiveKeys: keys) }
            case "hdlr", "keys", "mhdr", "ctry", "lang": break
            case "free", "skip": clear(child.content)
            case "uuid": try scanUUID(child)
            default: wipe(child)
            }
        }
    }

    /// An item: its type is the number of a key, or its name.
    private mutating func scanItem(_ item: Box, sensitiveKeys: Set<Int64>?) throws(PictureFault) {
        guard let sensitiveKeys else {
            if item.type != "free", !Self.harmlessUserData.contains(item.type) { wipe(item) }
            return
        }
        let number = try bytes(at: item.start + 4, count: 4).bigEndian
        if sensitiveKeys.contains(number) { wipe(item) }
    }

    /// The numbers of the keys that name something that must be removed.
    private mutating func sensitiveKeys(_ box: Box) throws(PictureFault) -> Set<Int64> {
        guard box.content.upperBound - box.content.lowerBound >= 8 else { return [] }
        var numbers: Set<Int64> = []
        var number: Int64 = 1
        // Behind a version, flags and their number they are written as boxes are.
        for key in try boxes(in: (box.content.lowerBound + 8)..<box.content.upperBound) {
            let name = try block([key.content])
            if SensitiveName.matches(name[...]) { numbers.insert(number) }
            number += 1
        }
        return numbers
    }

    private static let xmpUUID: [UInt8] = [
        0xBE, 0x7A, 0xCF, 0xCB, 0x97, 0xA9, 0x42, 0xE8, 0x9C, 0x71, 0x99, 0x94, 0x91, 0xE3, 0xAF, 0xAC,
    ]
    /// Says in RDF how a video that shows all directions is projected.
    private static let sphericalUUID: [UInt8] = [
        0xFF, 0xCC, 0x82, 0x63, 0xF8, 0x55, 0x4A, 0x93, 0x88, 0x14, 0x58, 0x7A, 0x02, 0x52, 0x1F, 0xDD,
    ]

    mutating func scanUUID(_ box: Box) throws(PictureFault) {
        let count = box.content.upperBound - box.content.lowerBound
        let identifier = try bytes(at: box.content.lowerBound, upTo: Int(clamping: min(16, count)))
        if removal == .location, identifier == Self.xmpUUID || identifier == Self.sphericalUUID {
            try rewriteXMP([(box.content.lowerBound + 16)..<box.content.upperBound])
        } else {
            wipe(box)
        }
    }
}

// MARK: - Tracks

extension MetadataScan {
    /// Finds what a track of positions has in the data: cameras write them there second by second.
    private mutating func scanTrack(_ track: Box, _ file: inout BoxFile) throws(PictureFault) {
        guard let media = try boxes(in: track.content).first(where: { $0.type == "mdia" }) else { return }
        let inMedia = try boxes(in: media.content)
        guard let handler = inMedia.first(where: { $0.type == "hdlr" }),
            let information = inMedia.first(where: { $0.type == "minf" }),
            let table = try boxes(in: information.content).first(where: { $0.type == "stbl" })
        else { return }
        let kind = String(decoding: try bytes(at: handler.content.lowerBound + 8, count: 4), as: UTF8.self)
        let tables = try boxes(in: table.content)
        switch kind {
        case "meta":
            guard let entries = tables.first(where: { $0.type == "stsd" }) else { return }
            if removal == .location, try !isSensitive(entries) { return }
        case "text", "sbtl", "subt", "camm", "gpmd":
            break
        case "vide", "soun", "pict", "auxv", "hint", "MPEG", "musi", "volv", "hapt":
            return
        default:
            if removal == .location { return }
        }
        let chunks = try chunks(of: tables, from: file.start, at: table.start)
        if ["text", "sbtl", "subt"].contains(kind) {
            // Drones write their positions as subtitles.
            var isSensitive = removal == .everything
            for chunk in chunks.prefix(4) where !isSensitive {
                isSensitive = try hasPosition(chunk)
            }
            guard isSensitive else { return }
        }
        file.hasTracksToClear = true
        file.chunks += chunks
    }

    /// Whether a track of metadata may hold what must be removed. Apple's name what they hold; others are positions, or
    /// what only the camera's maker knows.
    private mutating func isSensitive(_ entries: Box) throws(PictureFault) -> Bool {
        guard entries.content.upperBound - entries.content.lowerBound > 8 else { return true }
        for entry in try boxes(in: (entries.content.lowerBound + 8)..<entries.content.upperBound) {
            guard entry.type == "mebx" else { return true }
            // It names its keys in words.
            if SensitiveName.matches(try block([entry.content])[...]) { return true }
        }
        return false
    }

    private mutating func hasPosition(_ chunk: Range<Int64>) throws(PictureFault) -> Bool {
        let count = Int(clamping: min(4096, chunk.upperBound - chunk.lowerBound))
        return SensitiveName.matches(try bytes(at: chunk.lowerBound, upTo: count)[...])
    }

    /// The ranges of a track's chunks (ISO/IEC 14496-12 §8.7).
    ///
    /// - Parameter start: The offset of the file, from which theirs count: a video in a picture begins behind its start.
    private mutating func chunks(
        of tables: [Box], from start: Int64, at place: Int64
    ) throws(PictureFault) -> [Range<Int64>] {
        let fault = PictureFault(at: place, "a track of metadata cannot be located")
        func box(_ types: String...) -> Box? { tables.first { types.contains($0.type) } }
        guard let sizes = box("stsz"), let runs = box("stsc"), let offsets = box("stco", "co64") else { throw fault }
        let (sizeTable, runTable) = (try block([sizes.content]), try block([runs.content]))
        let offsetTable = try block([offsets.content])
        func number(_ table: [UInt8], _ index: Int64, bytes count: Int = 4) -> Int64? {
            guard index >= 0, index <= Int64(table.count - count) else { return nil }
            let bytes = table[Int(clamping: index)..<(Int(clamping: index) + count)]
            return bytes.first.map { $0 & 0x80 != 0 && count == 8 } == true ? nil : bytes.bigEndian
        }
        guard let size = number(sizeTable, 4), let count = number(offsetTable, 4), count <= Limit.trackChunks,
            let runCount = number(runTable, 4)
        else { throw fault }
        var chunks: [Range<Int64>] = []
        var (run, sample): (Int64, Int64) = (0, 0)
        for index in 0..<count {
            while run + 1 < runCount, let first = number(runTable, 8 + 12 * (run + 1)), first <= index + 1 { run += 1 }
            let width = offsets.type == "co64" ? 8 : 4
            guard let samples = number(runTable, 12 + 12 * run),
                let offset = number(offsetTable, 8 + Int64(width) * index, bytes: width)
            else { throw fault }
            var (length, isTooLong) = size.multipliedReportingOverflow(by: samples)
            if size == 0 {
                guard samples <= Int64(sizeTable.count) else { throw fault }
                for index in sample..<(sample + samples) {
                    guard let size = number(sizeTable, 12 + 4 * index) else { throw fault }
                    length += size
                }
            }
            sample += samples
            let rest = self.length - start
            guard !isTooLong, length <= rest, offset <= rest - length else { throw fault }
            chunks.append((start + offset)..<(start + offset + length))
        }
        return chunks
    }
}

extension Range<Int64> {
    /// Whether all of another range is in this one.
    func contains(_ other: Range<Int64>) -> Bool { lowerBound <= other.lowerBound && other.upperBound <= upperBound }
}
