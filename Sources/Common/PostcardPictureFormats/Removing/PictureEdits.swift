/// Bytes of a file to be overwritten with others while it is read, in ascending order and without overlaps.
package struct PictureEdits: Sendable, Hashable {
    struct Edit: Sendable, Hashable {
        let offset: Int64
        let length: Int64
        /// The new bytes: the same number, or none for zeros.
        let bytes: [UInt8]

        var end: Int64 { offset + length }
    }

    private var edits: [Edit] = []

    /// What the overwritten bytes are.
    package private(set) var removed: RemovedContent = []

    /// Whether the file is a picture that has a video with it.
    package private(set) var hasVideo = false

    /// Overwrites nothing.
    package init() {}

    /// - Throws: The first offset at which two edits differ about one byte.
    init(
        _ unordered: [Edit], removed: RemovedContent = [], hasVideo: Bool = false
    ) throws(PictureFault) {
        (self.removed, self.hasVideo) = (removed, hasVideo)
        for edit in unordered.sorted(by: { ($0.offset, $0.length) < ($1.offset, $1.length) }) where edit.length > 0 {
            guard let last = edits.last, edit.offset <= last.end, last.bytes.isEmpty, edit.bytes.isEmpty else {
                if let last = edits.last, edit.offset < last.end {
                    throw PictureFault(at: edit.offset, "two pieces of metadata overlap")
                }
                edits.append(edit)
                continue
            }
            let end = max(last.end, edit.end)
            edits[edits.count - 1] = Edit(offset: last.offset, length: end - last.offset, bytes: [])
        }
    }

    /// Whether nothing is overwritten.
    package var isEmpty: Bool { edits.isEmpty }

    /// Which bytes are overwritten, counted from the start of the file.
    package var ranges: [Range<Int64>] { edits.map { $0.offset..<$0.end } }

    /// Overwrites what a piece of the file has of these bytes. The pieces may be of any size and in any order.
    ///
    /// - Parameters:
    ///   - buffer: The piece, as it was read.
    ///   - offset: Where it begins in the file.
    package func apply(to buffer: UnsafeMutableRawBufferPointer, at offset: Int64) {
        var (low, high) = (0, edits.count)
        while low < high {
            let middle = (low + high) / 2
            if edits[middle].end > offset { high = middle } else { low = middle + 1 }
        }
        let end = offset + Int64(buffer.count)
        for edit in edits[low...] {
            guard edit.offset < end else { return }
            // Both are in the buffer, and so fit an Int.
            let from = Int(clamping: max(edit.offset, offset) - offset)
            let upTo = Int(clamping: min(edit.end, end) - offset)
            let target = UnsafeMutableRawBufferPointer(rebasing: buffer[from..<upTo])
            if edit.bytes.isEmpty {
                target.initializeMemory(as: UInt8.self, repeating: 0)
            } else {
                let skipped = Int(clamping: offset + Int64(from) - edit.offset)
                target.copyBytes(from: edit.bytes[skipped..<(skipped + target.count)])
            }
        }
    }
}
