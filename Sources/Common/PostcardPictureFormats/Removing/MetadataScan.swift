/// Reads a file's structure, and collects the bytes to overwrite. Each file format has its own extension.
package struct MetadataScan {
    package enum Removal: String, Sendable, Hashable, Codable {
        case location, everything
    }

    let removal: Removal
    /// The size of the file, in bytes.
    let length: Int64
    /// The number of pictures that contain the scanned one: 1 for a thumbnail in EXIF, for example.
    let depth: Int

    private let read: (Int64, UnsafeMutableRawBufferPointer) throws -> Int
    /// The edits in the order of discovery, each with the kind of content that it removes.
    private var edits: [(edit: PictureEdits.Edit, removed: RemovedContent)] = []
    /// Whether the file is a picture that also contains a video.
    var hasVideo = false
    private let budget: Budget
    private var pixelBytesLeft: Int64
    /// The file's first bytes, which contain most of the metadata. Many small reads would be slower.
    private var head: [UInt8] = []

    /// Limits far above any camera's files, so that a malicious file cannot make the scan slow or large.
    enum Limit {
        /// The maximum number of segments, chunks and boxes in a file.
        static let units = 200_000
        /// The maximum size of a piece of metadata in memory, in bytes.
        static let blockBytes: Int64 = 16 << 20
        /// The maximum number of bytes to read as structure or metadata.
        static let structureBytes: Int64 = 64 << 20
        /// The maximum number of pieces of metadata in a track of a video.
        static let trackChunks: Int64 = 200_000
        /// The maximum depth of pictures in pictures, and of boxes in boxes.
        static let depth = 8
        static let headBytes = 64 << 10
        static let boxDepth = 12
        /// The maximum number of directories in a TIFF file, one for each page.
        static let directories = 4096
        static let directoryEntries = 100_000
        /// The maximum number of adjacent unused bytes to clear in a TIFF. A longer run may be pixels whose offset is
        /// in a private entry.
        static let remainingBytes: Int64 = 64 << 10
    }

    /// How many more bytes, and segments, chunks or boxes, may be read. A file and the metadata in it share one budget.
    final class Budget {
        fileprivate var unitsLeft = Limit.units
        fileprivate var bytesLeft = Limit.structureBytes
    }

    /// The settings that the scan of a picture passes on to the scan of metadata in it, such as EXIF.
    struct Inheritance {
        let removal: Removal
        /// The number of pictures that contain the picture.
        let depth: Int
        let budget: Budget
    }

    var inheritance: Inheritance { Inheritance(removal: removal, depth: depth, budget: budget) }

    /// Prepares to scan a file of `length` bytes. `read` reads from an offset into a buffer and returns the number of
    /// bytes, 0 at the end.
    package init(
        _ removal: Removal, length: Int64, read: @escaping (Int64, UnsafeMutableRawBufferPointer) throws -> Int
    ) {
        self.init(Inheritance(removal: removal, depth: 0, budget: Budget()), length: length, read: read)
    }

    private init(
        _ inheritance: Inheritance, length: Int64,
        read: @escaping (Int64, UnsafeMutableRawBufferPointer) throws -> Int
    ) {
        removal = inheritance.removal
        depth = inheritance.depth
        budget = inheritance.budget
        self.length = length
        self.read = read
        pixelBytesLeft = (1 << 20) + 10 * min(length, .max / 20)
    }

    /// Returns `block`, a piece of metadata with its own structure, without the content to remove. `inheritance` has
    /// the settings of the picture's scan. `walk` reads the structure. `removed` receives the kinds of removed content.
    static func applied(
        _ inheritance: Inheritance, to block: [UInt8], _ removed: inout RemovedContent,
        by walk: (inout MetadataScan) throws(ScanError) -> Void
    ) throws(ScanError) -> [UInt8] {
        guard inheritance.depth < Limit.depth else {
            throw ScanError(at: 0, "pictures are nested too deeply")
        }
        let nested = Inheritance(
            removal: inheritance.removal, depth: inheritance.depth + 1, budget: inheritance.budget)
        var scan = MetadataScan(nested, length: Int64(block.count)) { offset, buffer in
            let rest = block.dropFirst(Int(clamping: offset)).prefix(buffer.count)
            buffer.copyBytes(from: rest)
            return rest.count
        }
        try walk(&scan)
        let edits = try scan.editsThatChange()
        removed.formUnion(edits.removed)
        var result = block
        result.withUnsafeMutableBytes { edits.apply(to: $0, at: 0) }
        return result
    }

    /// Finds the bytes of the file to overwrite. With `sparesOthers`, a file that is neither a picture nor a video
    /// stays unchanged and is not scanned. `type` is the declared media type, which tells WebM sound from WebM video.
    /// Throws ``ScanError`` if the structure is not understood or too large, or if the file cannot be read.
    package mutating func editsOfFile(
        sparingOthers sparesOthers: Bool = false, declaredAs type: String? = nil
    ) throws(ScanError) -> PictureEdits {
        if sparesOthers, !Self.isPictureOrVideo(try read(at: 0, upTo: FileSignature.bytesCount), declaredAs: type) {
            return PictureEdits()
        }
        head = try read(at: 0, upTo: Limit.headBytes)
        let start = try bytes(at: 0, upTo: PictureContainer.signatureBytes)
        switch PictureContainer(signature: start[...]) {
        case .jpeg?: try scanJPEG(0..<length)
        case .png?: try scanPNG()
        case .webP?: try scanWebP(start)
        case .gif?: try scanGIF()
        case .boxes?, nil: try scanOther(start)
        }
        return try editsThatChange()
    }

    /// The edits that change at least one byte of the file.
    private mutating func editsThatChange() throws(ScanError) -> PictureEdits {
        // Throws if edits overlap, even those that would change nothing.
        _ = try PictureEdits(edits.map(\.edit))
        var changing: [PictureEdits.Edit] = []
        var removed: RemovedContent = []
        for (edit, kind) in edits where try changes(edit) {
            changing.append(edit)
            removed.formUnion(kind)
        }
        if removed.isEmpty, !changing.isEmpty { removed = .other }
        return try PictureEdits(changing, removed: removed, hasVideo: hasVideo)
    }

    private mutating func changes(_ edit: PictureEdits.Edit) throws(ScanError) -> Bool {
        guard edit.bytes.isEmpty else { return try pixelBytes(at: edit.offset, upTo: edit.bytes.count) != edit.bytes }
        var offset = edit.offset
        var size: Int64 = 256
        while offset < edit.end {
            let chunk = try pixelBytes(at: offset, upTo: Int(clamping: min(size, edit.end - offset)))
            if chunk.isEmpty { break }
            if chunk.contains(where: { $0 != 0 }) { return true }
            offset += Int64(chunk.count)
            size = min(2 * size, 256 << 10)
        }
        return false
    }

    private mutating func scanOther(_ start: [UInt8]) throws(ScanError) {
        switch start {
        case []:
            break
        case _ where start.starts(with: "BM".utf8) && start.dropFirst(6).starts(with: [0, 0, 0, 0]):
            // BMP cannot contain metadata.
            break
        case _ where TIFFByteOrder(header: start) != nil:
            try scanTIFF(as: .picture)
        case _ where Self.bigTIFFs.contains { start.starts(with: $0) }:
            throw ScanError(at: 0, "metadata cannot be removed from such a file: it is a BigTIFF")
        case _ where Self.isMovie(start):
            let end = try endOfBoxes(in: 0..<length, isBehindPicture: false)
            try scanBoxFile(0..<end, depth: 0)
            try scanTrailer(end..<length, depth: 0)
        default:
            let type = FileSignature.mediaType(of: start).map { "it is \($0)" } ?? "its format is not known"
            throw ScanError(at: 0, "metadata cannot be removed from such a file: \(type)")
        }
    }
}

// MARK: - Which files

extension MetadataScan {
    /// Whether a file begins like a picture or video, even in a format whose metadata cannot be removed.
    private static func isPictureOrVideo(_ start: [UInt8], declaredAs declared: String?) -> Bool {
        if let type = FileSignature.mediaType(of: start) {
            if type == "video/webm", let declared, declared.hasPrefix("audio/webm") { return false }
            return type.hasPrefix("image/") || type.hasPrefix("video/")
        }
        if start.starts(with: "FUJIFILMCCD-RAW".utf8) { return true }
        // A text may begin with the same letters, such as "The free".
        guard start.contains(0) else { return false }
        return isMovie(start) || (bigTIFFs + otherPictures).contains { start.starts(with: $0) }
            || start.starts(with: "RIFF".utf8) && start.dropFirst(8).starts(with: "AVI ".utf8)
    }

    private static let bigTIFFs: [[UInt8]] = [[0x49, 0x49, 0x2B, 0], [0x4D, 0x4D, 0, 0x2B]]

    /// The signatures of JPEG XL, JPEG 2000, and the raw pictures of Olympus, Panasonic and Sigma.
    private static let otherPictures: [[UInt8]] =
        [[0, 0, 0, 12] + Array("JXL ".utf8), [0, 0, 0, 12] + Array("jP  ".utf8)]
        + ["IIRO", "IIRS", "MMOR", "IIU\0", "FOVb"].map { Array($0.utf8) }
}

// MARK: - Reading

extension MetadataScan {
    /// Reads bytes of the structure. Throws if the file ends too early.
    mutating func bytes(at offset: Int64, count: Int) throws(ScanError) -> [UInt8] {
        let bytes = try bytes(at: offset, upTo: count)
        guard bytes.count == count else {
            throw ScanError(at: offset, "the file ends after \(length) bytes, in the middle of its structure")
        }
        return bytes
    }

    /// Reads up to `count` bytes of the structure. Returns fewer at the end of the file.
    mutating func bytes(at offset: Int64, upTo count: Int) throws(ScanError) -> [UInt8] {
        budget.bytesLeft -= Int64(count)
        guard budget.bytesLeft >= 0 else {
            throw ScanError(at: offset, "there are more than \(Limit.structureBytes) bytes of metadata")
        }
        return try read(at: offset, upTo: count)
    }

    /// Reads pixels and other data outside the structure. They count toward a limit of their own.
    mutating func pixelBytes(at offset: Int64, upTo count: Int) throws(ScanError) -> [UInt8] {
        pixelBytesLeft -= Int64(count)
        guard pixelBytesLeft >= 0 else { throw ScanError(at: offset, "the pictures in the file overlap") }
        return try read(at: offset, upTo: count)
    }

    private func read(at offset: Int64, upTo count: Int) throws(ScanError) -> [UInt8] {
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
            throw ScanError(at: offset, "the file cannot be read: \(error)", underlyingError: error)
        }
        bytes.removeLast(bytes.count - filled)
        return bytes
    }

    /// Reads the header of the segment, chunk, block or box at an offset. The bytes in `header` must reach the end of
    /// the header or of the file. `end` is the end offset of the enclosing file, chunk or box.
    func unit(
        of container: PictureContainer, _ header: [UInt8], at offset: Int64, end: Int64
    ) throws(ScanError) -> PictureUnit {
        switch container.unit(header[...], at: offset, end: end) {
        case .unit(let unit): return unit
        case .malformed(let reason): throw ScanError(at: offset, reason)
        case .needs(let count):
            let found = "\(count) bytes of a header were expected here, and \(header.count) are left"
            throw ScanError(at: offset, found)
        }
    }

    /// Counts a segment, chunk or box.
    mutating func countUnit(at offset: Int64) throws(ScanError) {
        budget.unitsLeft -= 1
        guard budget.unitsLeft >= 0 else {
            throw ScanError(at: offset, "the file has more than \(Limit.units) pieces")
        }
    }
}

// MARK: - Overwriting

extension MetadataScan {
    /// A state of the scan, to restore if the next bytes are not a picture.
    struct Findings {
        fileprivate let editCount: Int
        fileprivate let hasVideo: Bool
    }

    var findings: Findings { Findings(editCount: edits.count, hasVideo: hasVideo) }

    mutating func forget(since findings: Findings) {
        edits.removeLast(edits.count - findings.editCount)
        hasVideo = findings.hasVideo
    }

    /// Overwrites a range with zeros. `removed` is the kind of content in the range. It is not reported as removed if
    /// the range already contains only zeros.
    mutating func clear(_ range: Range<Int64>, _ removed: RemovedContent) {
        let length = range.upperBound - range.lowerBound
        edits.append((PictureEdits.Edit(offset: range.lowerBound, length: length, bytes: []), removed))
    }

    mutating func write(_ bytes: [UInt8], at offset: Int64, _ removed: RemovedContent) {
        edits.append((PictureEdits.Edit(offset: offset, length: Int64(bytes.count), bytes: bytes), removed))
    }

    /// Rewrites a piece of metadata whose bytes are in these ranges, in this order. `rewriting` returns a replacement
    /// of the same length, and adds the kinds of content that it removes to its second argument.
    mutating func rewrite(_ extents: [Range<Int64>], by rewriting: BlockRewriting) throws(ScanError) {
        let block = try block(extents)
        let rewritten: [UInt8]
        var removed: RemovedContent = []
        do {
            rewritten = try rewriting(block, &removed)
        } catch {
            throw ScanError(at: Self.offset(ofIndex: error.index, in: extents), error.reason)
        }
        replace(block, with: rewritten, in: extents, removed)
    }

    typealias BlockRewriting = ([UInt8], inout RemovedContent) throws(BlockError) -> [UInt8]

    /// The bytes of a piece of metadata, joined from its ranges in the file.
    mutating func block(_ extents: [Range<Int64>]) throws(ScanError) -> [UInt8] {
        var block: [UInt8] = []
        for extent in extents {
            let count = extent.upperBound - extent.lowerBound
            guard count <= Limit.blockBytes - Int64(block.count) else {
                throw ScanError(
                    at: extent.lowerBound, "a piece of metadata has more than \(Limit.blockBytes) bytes")
            }
            block += try bytes(at: extent.lowerBound, count: Int(clamping: count))
        }
        return block
    }

    /// Overwrites the bytes that differ between a block and its rewritten version.
    mutating func replace(
        _ block: [UInt8], with rewritten: [UInt8], in extents: [Range<Int64>], _ removed: RemovedContent
    ) {
        var start = 0
        for extent in extents {
            let end = start + Int(clamping: extent.upperBound - extent.lowerBound)
            for run in Self.differences(block, rewritten, in: start..<end) {
                write(Array(rewritten[run]), at: extent.lowerBound + Int64(run.lowerBound - start), removed)
            }
            start = end
        }
    }

    /// The ranges in which two blocks differ. Ranges with small gaps between them are joined.
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
