/// The tracks of videos (ISO/IEC 14496-12 §8.3).
extension MetadataScan {
    /// Finds what a track of positions has in the data: cameras write them there second by second.
    mutating func scanTrack(_ track: Box, _ file: inout BoxFile) throws(PictureFault) {
        guard let media = try boxes(in: track.content).first(where: { $0.type == "mdia" }) else { return }
        let inMedia = try boxes(in: media.content)
        guard let handler = inMedia.first(where: { $0.type == "hdlr" }),
            let information = inMedia.first(where: { $0.type == "minf" }),
            let table = try boxes(in: information.content).first(where: { $0.type == "stbl" })
        else { return }
        let kind = String(decoding: try bytes(at: handler.content.lowerBound + 8, count: 4), as: UTF8.self)
        let tables = try boxes(in: table.content)
        var removed: RemovedContent = .unknown
        switch kind {
        case "meta":
            guard let entries = tables.first(where: { $0.type == "stsd" }) else { return }
            if removal == .location {
                guard let kind = try self.kind(ofMetadata: entries) else { return }
                removed = kind
            }
        case "text", "sbtl", "subt", "camm", "gpmd":
            break
        case "vide", "soun", "pict", "auxv", "hint", "MPEG", "musi", "volv", "hapt":
            return
        default:
            if removal == .location { return }
        }
        let chunks = try chunks(of: tables, from: file.start, at: table.start)
        for chunk in chunks.prefix(4) where removed == .unknown { removed = try place(in: chunk) ?? removed }
        // Drones write their positions as subtitles.
        let isText = ["text", "sbtl", "subt"].contains(kind)
        guard removal == .everything || !isText || removed != .unknown else { return }
        file.hasTracksToClear = true
        file.chunks += chunks.map { ($0, removed) }
    }

    /// What a track of metadata may hold that must be removed; `nil` if nothing. Apple's name what they hold; others are
    /// positions, or what only the camera's maker knows.
    private mutating func kind(ofMetadata entries: Box) throws(PictureFault) -> RemovedContent? {
        guard entries.content.upperBound - entries.content.lowerBound > 8 else { return .unknown }
        for entry in try boxes(in: (entries.content.lowerBound + 8)..<entries.content.upperBound) {
            guard entry.type == "mebx" else { return .unknown }
            // It names its keys in words.
            if let kind = SensitiveName.kind(of: try block([entry.content])[...]) { return kind }
        }
        return nil
    }

    private mutating func place(in chunk: Range<Int64>) throws(PictureFault) -> RemovedContent? {
        let count = Int(clamping: min(4096, chunk.upperBound - chunk.lowerBound))
        let kind = SensitiveName.kind(of: try bytes(at: chunk.lowerBound, upTo: count)[...])
        return [.position, .places].first { kind?.contains($0) ?? false }
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
