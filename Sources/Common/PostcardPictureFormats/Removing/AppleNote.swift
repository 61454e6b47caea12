/// The MakerNote of Apple's cameras: a directory like those of TIFF, whose offsets count from the start of the note.
enum AppleNote {
    private static let mark = Array("Apple iOS\0".utf8)
    /// The mark, a version, and the order of bytes.
    static let headerBytes = mark.count + 4

    static func isOne(_ start: [UInt8]) -> Bool {
        start.starts(with: mark) && start.dropFirst(mark.count + 2).elementsEqual("MM".utf8)
    }

    /// The version, what names the video of a Live Photo and its frame, and how bright the picture is to be shown.
    private static let kept: Set<Int64> = [0x0001, 0x0011, 0x0017, 0x0021, 0x0030]

    /// The note with what is kept at its place, and zeros elsewhere. Nothing is left of a note that is damaged.
    static func withoutLocation(_ note: [UInt8], _ removed: inout RemovedContent) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: note.count)
        defer { if result != note { removed.insert(.makerNote) } }
        guard note.count > headerBytes + 2, let order = TIFFByteOrder(header: Array("MM\0*".utf8)) else {
            return result
        }
        result.replaceSubrange(..<headerBytes, with: note[..<headerBytes])
        let start = headerBytes + 2
        let count = Int(clamping: order.number(note[headerBytes..<start]))
        var entries: [UInt8] = []
        for index in 0..<min(count, (note.count - start) / 12) {
            let place = start + 12 * index
            let entry = TIFFEntry(note[place..<(place + 12)], at: Int64(place), order)
            guard kept.contains(entry.tag), entry.value.upperBound <= Int64(note.count) else { continue }
            let value = Int(clamping: entry.value.lowerBound)..<Int(clamping: entry.value.upperBound)
            // Not one that is in the directory itself.
            guard entry.isInline || value.lowerBound >= start + 12 * count else { continue }
            entries += entry.bytes
            if !entry.isInline { result.replaceSubrange(value, with: note[value]) }
        }
        result.replaceSubrange(headerBytes..<start, with: order.encoded(Int64(entries.count / 12), bytes: 2))
        result.replaceSubrange(start..<(start + entries.count), with: entries)
        return result
    }
}
