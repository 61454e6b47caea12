/// Walks through a file's structure without reading pixels, and collects what must be overwritten. Each container has
/// its own extension.
struct MetadataScan {
    let removal: MetadataPolicy.Removal
    /// The number of the file's bytes.
    let length: Int64
    /// How many pictures this one is in: a thumbnail is in the EXIF of a picture.
    let depth: Int

    private let read: (Int64, UnsafeMutableRawBufferPointer) throws -> Int
    private var edits: [FileEdits.Edit] = []
    private var unitsLeft = Limit.units
    private var bytesLeft = Limit.structureBytes
    private var pixelBytesLeft: Int64
    /// The file's first bytes, which contain most of the metadata. Reading it in small pieces is slower.
    private var head: [UInt8] = []

    /// Limits far above any camera's files, so that a malicious file cannot make this slow or large.
    enum Limit {
        /// The segments, chunks and boxes of a file.
        static let units = 200_000
        /// The bytes of one piece of metadata, which is held in memory.
        static let blockBytes: Int64 = 16 << 20
        /// The bytes that are read as structure or metadata.
        static let structureBytes: Int64 = 64 << 20
        /// The pieces of metadata that a track of a video has.
        static let trackChunks: Int64 = 200_000
        /// Pictures in pictures, and boxes in boxes.
        static let depth = 8
        static let headBytes = 64 << 10
        static let boxDepth = 12
    }

    init(
        _ removal: MetadataPolicy.Removal, length: Int64, depth: Int = 0,
        read: @escaping (Int64, UnsafeMutableRawBufferPointer) throws -> Int
    ) {
        self.removal = removal
        self.length = length
        self.depth = depth
        self.read = read
        pixelBytesLeft = (1 << 20) + 10 * min(length, .max / 20)
    }

    /// A picture in a picture, such as a thumbnail.
    static func applied(
        _ removal: MetadataPolicy.Removal, to picture: [UInt8], depth: Int
    ) throws(MetadataError) -> [UInt8] {
        guard depth <= Limit.depth else { throw MetadataError(at: 0, "pictures are nested too deeply") }
        var scan = MetadataScan(removal, length: Int64(picture.count), depth: depth) { offset, buffer in
            let rest = picture.dropFirst(Int(clamping: offset)).prefix(buffer.count)
            buffer.copyBytes(from: rest)
            return rest.count
        }
        var result = picture
        let edits = try scan.editsOfFile()
        result.withUnsafeMutableBytes { edits.apply(to: $0, at: 0) }
        return result
    }

    /// Finds what must be overwritten in the file.
    mutating func editsOfFile() throws(MetadataError) -> FileEdits {
        head = try read(at: 0, upTo: Limit.headBytes)
        let start = try bytes(at: 0, upTo: 12)
        switch start {
        case []:
            break
        case _ where start.starts(with: [0xFF, 0xD8]):
            try scanJPEG(0..<length)
        case _ where start.starts(with: Self.pngSignature):
            try scanPNG()
        case _ where start.starts(with: "RIFF".utf8) && start.dropFirst(8).elementsEqual("WEBP".utf8):
            try scanWebP()
        case _ where start.starts(with: "GIF8".utf8):
            try scanGIF()
        case _ where start.starts(with: "BM".utf8) && start.dropFirst(6).starts(with: [0, 0, 0, 0]):
            // The format has no place for metadata.
            break
        case _ where Self.isMovie(start):
            try scanBoxFile(0..<length)
        default:
            let type = MediaType.forFirstBytes(start).map { "it is \($0)" } ?? "its format is not known"
            throw MetadataError(at: 0, "metadata cannot be removed from such a file: \(type)")
        }
        return try FileEdits(edits)
    }
}

// MARK: - Reading

extension MetadataScan {
    /// Bytes of the structure, all of which must exist.
    mutating func bytes(at offset: Int64, count: Int) throws(MetadataError) -> [UInt8] {
        let bytes = try bytes(at: offset, upTo: count)
        guard bytes.count == count else {
            throw MetadataError(at: offset, "the file ends after \(length) bytes, in the middle of its structure")
        }
        return bytes
    }

    /// Bytes of the structure, up to the file's end.
    mutating func bytes(at offset: Int64, upTo count: Int) throws(MetadataError) -> [UInt8] {
        bytesLeft -= Int64(count)
        guard bytesLeft >= 0 else {
            throw MetadataError(at: offset, "there are more than \(Limit.structureBytes) bytes of metadata")
        }
        return try read(at: offset, upTo: count)
    }

    /// Like ``bytes(at:upTo:)``, for files whose pixels must be read to find what follows them.
    mutating func pixelBytes(at offset: Int64, upTo count: Int) throws(MetadataError) -> [UInt8] {
        pixelBytesLeft -= Int64(count)
        guard pixelBytesLeft >= 0 else { throw MetadataError(at: offset, "the pictures in the file overlap") }
        return try read(at: offset, upTo: count)
    }

    private func read(at offset: Int64, upTo count: Int) throws(MetadataError) -> [UInt8] {
        guard offset >= 0, offset < length else { return [] }
        let count = Int(clamping: min(Int64(count), length - offset))
        if offset + Int64(count) <= Int64(head.count) {
            return Array(head[Int(clamping: offset)..<(Int(clamping: offset) + count)])
        }
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        do {
            while filled < bytes.count {
                let count = try bytes.withUnsafeMutableBytes {
                    try read(offset + Int64(filled), UnsafeMutableRawBufferPointer(rebasing: $0[filled...]))
                }
                if count == 0 { break }
                filled += count
            }
        } catch {
            throw MetadataError(at: offset, "the file cannot be read: \(error)", underlyingError: error)
        }
        bytes.removeLast(bytes.count - filled)
        return bytes
    }

    /// Counts a segment, a chunk or a box.
    mutating func countUnit(at offset: Int64) throws(MetadataError) {
        unitsLeft -= 1
        guard unitsLeft >= 0 else { throw MetadataError(at: offset, "the file has more than \(Limit.units) pieces") }
    }
}

// MARK: - Overwriting

extension MetadataScan {
    /// Overwrites a range with zeros.
    mutating func clear(_ range: Range<Int64>) {
        edits.append(FileEdits.Edit(offset: range.lowerBound, length: range.upperBound - range.lowerBound, bytes: []))
    }

    mutating func write(_ bytes: [UInt8], at offset: Int64) {
        edits.append(FileEdits.Edit(offset: offset, length: Int64(bytes.count), bytes: bytes))
    }

    /// Rewrites a piece of metadata.
    ///
    /// - Parameters:
    ///   - extents: Where its bytes are in the file, in the order in which they belong together.
    ///   - rewriting: Makes other bytes of it, as many.
    mutating func rewrite(
        _ extents: [Range<Int64>], by rewriting: ([UInt8]) throws(BlockFault) -> [UInt8]
    ) throws(MetadataError) {
        let block = try block(extents)
        let rewritten: [UInt8]
        do {
            rewritten = try rewriting(block)
        } catch {
            throw MetadataError(at: Self.offset(ofIndex: error.index, in: extents), error.reason)
        }
        replace(block, with: rewritten, in: extents)
    }

    /// The bytes of a piece of metadata.
    mutating func block(_ extents: [Range<Int64>]) throws(MetadataError) -> [UInt8] {
        var block: [UInt8] = []
        for extent in extents {
            let count = extent.upperBound - extent.lowerBound
            guard count <= Limit.blockBytes - Int64(block.count) else {
                throw MetadataError(
                    at: extent.lowerBound, "a piece of metadata has more than \(Limit.blockBytes) bytes")
            }
            block += try bytes(at: extent.lowerBound, count: Int(clamping: count))
        }
        return block
    }

    /// Overwrites those bytes of a block that differ.
    mutating func replace(_ block: [UInt8], with rewritten: [UInt8], in extents: [Range<Int64>]) {
        var start = 0
        for extent in extents {
            let end = start + Int(clamping: extent.upperBound - extent.lowerBound)
            for run in Self.differences(block, rewritten, in: start..<end) {
                write(Array(rewritten[run]), at: extent.lowerBound + Int64(run.lowerBound - start))
            }
            start = end
        }
    }

    /// The ranges in which two blocks differ. Ranges close to each other become one.
    private static func differences(_ old: [UInt8], _ new: [UInt8], in range: Range<Int>) -> [Range<Int>] {
        var runs: [Range<Int>] = []
        old.withUnsafeBufferPointer { old in
            new.withUnsafeBufferPointer { new in
                for index in range where old[index] != new[index] {
                    if let last = runs.last, index - last.upperBound < 64 {
                        runs[runs.count - 1] = last.lowerBound..<(index + 1)
                    } else {
                        runs.append(index..<(index + 1))
                    }
                }
            }
        }
        return runs
    }

    private static func offset(ofIndex index: Int, in extents: [Range<Int64>]) -> Int64 {
        var rest = Int64(index)
        for extent in extents {
            let count = extent.upperBound - extent.lowerBound
            if rest < count { return extent.lowerBound + rest }
            rest -= count
        }
        return extents.last?.upperBound ?? 0
    }
}

/// What is wrong with a piece of metadata in memory.
struct BlockFault: Error {
    /// The index of the fault, counted from the start of the piece.
    let index: Int
    let reason: String

    init(at index: Int, _ reason: String) {
        self.index = index
        self.reason = reason
    }
}

extension Collection<UInt8> {
    /// The number whose first byte is the greatest. Up to seven bytes, so that it is never negative.
    var bigEndian: Int64 { reduce(0) { $0 << 8 | Int64($1) } }

    var littleEndian: Int64 { reversed().bigEndian }
}

/// Decides by the name of a property whether it reveals a place, a person or a device. XMP, the texts of PNG files and
/// the keys of QuickTime files name their properties in much the same words.
enum SensitiveName {
    /// - Parameter name: In ASCII, with or without a prefix and a colon before it.
    static func matches(_ name: ArraySlice<UInt8>) -> Bool {
        let full = name.map(\.asciiLowercased)
        let local = full[(full.lastIndex(of: .colon).map { $0 + 1 } ?? 0)...]
        if exact.contains(Array(local)) || exact.contains(full) { return true }
        // The program that wrote the file.
        if local.elementsEqual("creatortool".utf8) { return false }
        for start in full.indices {
            for part in partsByFirstByte[Int(full[start] & 31)]
            where part.count <= full.count - start && (0..<part.count).allSatisfy({ full[start + $0] == part[$0] }) {
                return true
            }
        }
        return false
    }

    private static let exact = Set(
        [
            // Not "alt" alone, which in RDF is a list of alternatives.
            "lat", "lon", "long", "geo:alt", "geo:point", "city", "state", "source", "credit", "coverage",
            // A picture within the picture, in base64, with its own metadata.
            "gimage:data",
        ].map { Array($0.utf8) })

    private static let parts = [
        "gps", "latitude", "longitude", "longtitude", "altitude", "location", "geotag", "geoloc", "geopos", "iso6709",
        "country", "province", "region", "person", "facename", "creator", "author", "artist", "photographer", "byline",
        "owner", "contributor", "contact", "email", "nickname", "captionwriter", "serial", "makernote", "thumbnail",
        "raw profile",
    ].map { Array($0.utf8) }

    private static let partsByFirstByte: [[[UInt8]]] = (0..<32).map { index in
        parts.filter { Int($0[0] & 31) == index }
    }
}
