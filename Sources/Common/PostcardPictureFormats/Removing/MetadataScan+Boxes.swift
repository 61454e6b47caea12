/// Files of boxes: HEIC, AVIF, MP4 and QuickTime (ISO/IEC 14496-12 §4.2, QuickTime File Format Specification).
extension MetadataScan {
    struct Box {
        /// The type of the box: four characters, one for each byte.
        let type: String
        let start: Int64
        let content: Range<Int64>
    }

    /// The data and metadata found in a file of boxes.
    struct BoxFile {
        /// The offset at which the first box begins. Track and item offsets count from here.
        let start: Int64
        /// The ranges of the boxes with pixels, sound, and metadata of pictures.
        var data: [Range<Int64>] = []
        var hasFragments = false
        var itemDirectories: [Box] = []
        /// The ranges of track data to remove.
        var chunks: [(range: Range<Int64>, removed: RemovedContent)] = []
        var hasTracksToClear = false
    }

    /// Whether a file begins with a box of HEIC, AVIF, MP4 or QuickTime. Canon's raw pictures and JPEG 2000 are
    /// excluded, because their pixels need boxes that would be removed from HEIC or MP4.
    static func isMovie(_ start: [UInt8]) -> Bool {
        let others = ["ftypcrx ", "ftypjp2 ", "ftypjpx ", "ftypjpm ", "ftypmjp2", "ftypjxl "]
        if others.contains(where: { start.dropFirst(4).starts(with: $0.utf8) }) { return false }
        let types = ["ftyp", "moov", "mdat", "wide", "free", "skip", "pnot"]
        return types.contains { start.dropFirst(4).starts(with: $0.utf8) }
    }

    /// Finds the bytes to overwrite in a range: a file of boxes, or the video in a picture. `depth` is the number of
    /// pictures and videos that contain the range.
    mutating func scanBoxFile(_ range: Range<Int64>, depth: Int) throws(ScanError) {
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
            case "mpvd", "sefd":
                guard removal == .location else {
                    wipe(box, box.type == "mpvd" ? .video : .unknown)
                    break
                }
                // The box has the video of a motion photo and Samsung's directory.
                try scanTrailer(box.content, depth: depth)
            case "free", "skip", "wide":
                // Editors leave old content in free space.
                clear(box.content, .unused)
            case "uuid":
                try scanUUID(box)
            case _ where Self.topLevelBoxes.contains(box.type):
                break
            default:
                wipe(box, .unknown)
            }
        }
        let isInPieces = file.data.count > 64 && !(file.itemDirectories.isEmpty && file.chunks.isEmpty)
        guard !isInPieces, !file.hasTracksToClear || !file.hasFragments else {
            throw ScanError(at: range.lowerBound, "a video in fragments has a track of metadata")
        }
        for directory in file.itemDirectories {
            try scanItems(directory, in: range, data: file.data, depth: depth)
        }
        for chunk in file.chunks {
            guard file.data.contains(where: { $0.contains(chunk.range) }) else {
                throw ScanError(at: chunk.range.lowerBound, "a track of metadata is declared outside the data")
            }
            clear(chunk.range, chunk.removed)
        }
    }

    private static let topLevelBoxes: Set<String> = [
        "ftyp", "styp", "pdin", "mfra", "sidx", "ssix", "prft", "pnot", "emsg", "ctab", "junk", "etyp",
    ]

    /// The child boxes that players need, by the type of the parent box. Other child boxes are not needed for pictures
    /// or sound, and may reveal a location.
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

    /// The boxes in a range. Throws if a box exceeds the range.
    mutating func boxes(in range: Range<Int64>) throws(ScanError) -> [Box] {
        var boxes: [Box] = []
        var offset = range.lowerBound
        while offset < range.upperBound {
            try countUnit(at: offset)
            let rest = range.upperBound - offset
            let header = try bytes(at: offset, upTo: Int(clamping: min(16, rest)))
            // A list in QuickTime may end with zeros.
            if rest < 8, header.allSatisfy({ $0 == 0 }) { break }
            let unit = try unit(of: .boxes, header, at: offset, end: range.upperBound)
            if case .named(let type) = unit.kind {
                boxes.append(Box(type: type, start: offset, content: unit.content))
            }
            offset = unit.next
        }
        return boxes
    }

    /// The end offset of the first file in a range that may contain several files. Each file begins with an `ftyp` box.
    /// In a movie, a later `ftyp` box begins a fragment. Otherwise, or after a picture (`isBehindPicture`), it begins
    /// another file.
    mutating func endOfBoxes(in range: Range<Int64>, isBehindPicture: Bool) throws(ScanError) -> Int64 {
        var offset = range.lowerBound
        var isMovie = false
        while offset < range.upperBound {
            let header = try bytes(at: offset, upTo: Int(clamping: min(16, range.upperBound - offset)))
            let type = String(decoding: header.dropFirst(4).prefix(4), as: UTF8.self)
            guard type.utf8.count == 4, type.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else { break }
            guard case .unit(let unit) = PictureContainer.boxes.unit(header[...], at: offset, end: range.upperBound)
            else {
                // Reading the box later reports that it is cut off.
                return Self.topLevelBoxes.contains(type) || Self.readBoxes.contains(type) ? range.upperBound : offset
            }
            if type == "ftyp", offset > range.lowerBound, isBehindPicture || !isMovie { break }
            isMovie = isMovie || type == "moov" || type == "moof"
            offset = unit.next
        }
        return offset
    }

    private static let readBoxes: Set<String> = [
        "moov", "moof", "mdat", "imda", "meta", "mpvd", "sefd", "free", "skip", "wide", "uuid",
    ]

    /// Turns a box into free space.
    mutating func wipe(_ box: Box, _ kind: RemovedContent) {
        write(Array("free".utf8), at: box.start + 4, kind)
        clear(box.content, kind)
    }

    /// The boxes inside a `meta` box: after a version and flags in ISO files, and at its start in QuickTime.
    mutating func boxes(inMeta box: Box) throws(ScanError) -> [Box] {
        let count = box.content.upperBound - box.content.lowerBound
        let start = try bytes(at: box.content.lowerBound, upTo: Int(clamping: min(8, count)))
        let skipped: Int64 = count < 4 || start.dropFirst(4).starts(with: "hdlr".utf8) ? 0 : 4
        return try boxes(in: (box.content.lowerBound + skipped)..<box.content.upperBound)
    }

    // MARK: - Movies

    private mutating func scanMovie(_ box: Box, _ file: inout BoxFile, depth: Int) throws(ScanError) {
        guard depth < Limit.boxDepth else { throw ScanError(at: box.start, "boxes are nested too deeply") }
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
            // In a fragment, boxes of this type describe encryption.
            case "uuid" where box.type == "moov" || box.type == "trak":
                try scanUUID(child)
            case "free", "skip":
                clear(child.content, .unused)
            case "cmov":
                throw ScanError(at: child.start, "the description of the video is compressed")
            case _ where Self.boxesOfMovie[box.type].map { !$0.contains(child.type) } ?? false:
                wipe(child, .unknown)
            default:
                break
            }
        }
    }

    /// Clears the creation and modification times of a movie. They follow the box's version and flags.
    private mutating func clearTimes(_ box: Box) throws(ScanError) {
        let size: Int64 = try bytes(at: box.content.lowerBound, count: 1)[0] == 1 ? 16 : 8
        guard box.content.upperBound - box.content.lowerBound >= 4 + size else { return }
        clear((box.content.lowerBound + 4)..<(box.content.lowerBound + 4 + size), .other)
    }

    private mutating func scanUserData(_ box: Box, _ file: inout BoxFile, depth: Int) throws(ScanError) {
        guard removal == .location else { return wipe(box, .other) }
        for child in try boxes(in: box.content) {
            switch child.type {
            case "meta": try scanMeta(child, &file, depth: depth + 1)
            case "XMP_": try rewriteXMP([child.content])
            case "free", "skip": clear(child.content, .unused)
            case _ where Self.harmlessUserData.contains(child.type): break
            default: wipe(child, Self.kind(ofUserData: child.type))
            }
        }
    }

    private static func kind(ofUserData type: String) -> RemovedContent {
        switch type {
        case "\u{A9}xyz", "loci": .position
        case "\u{A9}ART", "\u{A9}aut", "\u{A9}dir", "\u{A9}prd", "\u{A9}prf", "\u{A9}wrt", "aART", "auth", "perf":
            .names
        default: .unknown
        }
    }

    /// The types of user data and items to keep: titles, comments, copyright, times, programs, camera models, how the
    /// video is shown, and details of music. All others are removed.
    private static let harmlessUserData: Set<String> = [
        "\u{A9}nam", "\u{A9}cmt", "\u{A9}cpy", "\u{A9}day", "\u{A9}des", "\u{A9}inf", "\u{A9}fmt", "\u{A9}req",
        "\u{A9}swr", "\u{A9}too", "\u{A9}enc", "\u{A9}mak", "\u{A9}mod", "\u{A9}key", "\u{A9}alb", "\u{A9}gen",
        "\u{A9}grp", "\u{A9}lyr", "\u{A9}trk", "\u{A9}TIM", "\u{A9}TSC", "\u{A9}TSZ", "titl", "dscp", "cprt", "yrrc",
        "albm", "gnre", "kywd", "name", "hinf", "hinv", "hnti", "tagc", "WLOC", "AllF", "SelO", "LOOP", "kind", "strk",
        "date", "desc", "ldes", "trkn", "disk", "covr", "cpil", "pgap", "tmpo", "rtng", "stik", "hdvd", "tvsh", "tves",
        "tvsn", "tven", "clfn", "clsf", "vndr",
    ]

    private mutating func scanMeta(_ box: Box, _ file: inout BoxFile, depth: Int) throws(ScanError) {
        guard depth < Limit.boxDepth else { throw ScanError(at: box.start, "boxes are nested too deeply") }
        let children = try boxes(inMeta: box)
        guard !children.contains(where: { $0.type == "iloc" || $0.type == "iinf" }) else {
            file.itemDirectories.append(box)
            return
        }
        guard removal == .location else { return wipe(box, .other) }
        let keys = try children.first { $0.type == "keys" }.map { keys throws(ScanError) in
            try sensitiveKeys(keys)
        }
        for child in children {
            switch child.type {
            case "ilst":
                for item in try boxes(in: child.content) { try scanItem(item, sensitiveKeys: keys) }
            case "hdlr", "keys", "mhdr", "ctry", "lang": break
            case "free", "skip": clear(child.content, .unused)
            case "uuid": try scanUUID(child)
            default: wipe(child, .unknown)
            }
        }
    }

    /// Removes a metadata item if its key is sensitive. Items without `sensitiveKeys` are judged by their type.
    private mutating func scanItem(_ item: Box, sensitiveKeys: [Int64: RemovedContent]?) throws(ScanError) {
        guard let sensitiveKeys else {
            if item.type != "free", !Self.harmlessUserData.contains(item.type) {
                wipe(item, Self.kind(ofUserData: item.type))
            }
            return
        }
        let number = try bytes(at: item.start + 4, count: 4).bigEndian
        if let kind = sensitiveKeys[number] { wipe(item, kind) }
    }

    /// The sensitive keys in a list of keys, by number from 1, with the kind of content that each key reveals.
    private mutating func sensitiveKeys(_ box: Box) throws(ScanError) -> [Int64: RemovedContent] {
        guard box.content.upperBound - box.content.lowerBound >= 8 else { return [:] }
        var numbers: [Int64: RemovedContent] = [:]
        var number: Int64 = 1
        // The keys have the structure of boxes, and follow the version, flags and number of keys.
        for key in try boxes(in: (box.content.lowerBound + 8)..<box.content.upperBound) {
            let name = try block([key.content])
            numbers[number] = SensitiveName.kind(of: name[...])
            number += 1
        }
        return numbers
    }

    private static let xmpUUID: [UInt8] = [
        0xBE, 0x7A, 0xCF, 0xCB, 0x97, 0xA9, 0x42, 0xE8, 0x9C, 0x71, 0x99, 0x94, 0x91, 0xE3, 0xAF, 0xAC,
    ]
    /// The identifier of the box that describes the projection of a spherical video in RDF.
    private static let sphericalUUID: [UInt8] = [
        0xFF, 0xCC, 0x82, 0x63, 0xF8, 0x55, 0x4A, 0x93, 0x88, 0x14, 0x58, 0x7A, 0x02, 0x52, 0x1F, 0xDD,
    ]

    mutating func scanUUID(_ box: Box) throws(ScanError) {
        let count = box.content.upperBound - box.content.lowerBound
        let identifier = try bytes(at: box.content.lowerBound, upTo: Int(clamping: min(16, count)))
        if removal == .location, identifier == Self.xmpUUID || identifier == Self.sphericalUUID {
            try rewriteXMP([(box.content.lowerBound + 16)..<box.content.upperBound])
        } else {
            wipe(box, .unknown)
        }
    }
}

extension Range<Int64> {
    func contains(_ other: Range<Int64>) -> Bool { lowerBound <= other.lowerBound && other.upperBound <= upperBound }
}
