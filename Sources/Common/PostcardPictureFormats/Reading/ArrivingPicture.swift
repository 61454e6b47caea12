/// Reads a picture whose bytes arrive in chunks of any size, and finds the end of the picture and its EXIF.
package struct ArrivingPicture: Sendable {
    /// The offset at which the format says that the picture ends, counted from the picture's start; `nil` before that
    /// offset is reached, and if the format's end cannot be determined.
    package private(set) var end: Int64?
    /// The beginning of the EXIF's TIFF structure; empty if there is no EXIF before the pixels. In HEIC and AVIF, EXIF
    /// is found if the directory of items comes first, as cameras write it.
    package private(set) var exif: [UInt8] = []
    /// The offset of the TIFF structure, counted from the picture's start.
    package private(set) var exifOffset: Int64 = 0
    /// The offset of the first bytes that belong to no piece of the format; `nil` if there are none. Decoders of JPEG
    /// skip such bytes.
    package private(set) var firstStray: Int64?
    /// The offset of the first pixels of a JPEG.
    package private(set) var pixelsStart: Int64?
    /// The end of the picture, or the end of the last piece read so far if the format has no end.
    package var lastEnd: Int64? { end ?? (hasEnd ? nil : position - Int64(collected.count)) }

    private var container: PictureContainer?
    private var state = State.collecting(.signature, count: 3)
    /// The bytes received so far of the current piece.
    private var collected: [UInt8] = []
    private var position: Int64 = 0
    /// The place of the EXIF in a file of boxes, known from the directory of items before it.
    private var announcedEXIF: (offset: Int64, length: Int64)?

    /// The lengths of the first piece of a GIF's pixels and of the last piece read so far. `dataLength` is `nil` in
    /// other blocks.
    private var dataLength: Int64?
    private var lastDataLength: Int64 = 0
    /// The bytes of a GIF's data, from the first piece on whose length differs from the pieces before it.
    private var otherData: [UInt8] = []
    /// The length that the pieces before ``otherData`` have.
    private var wholeLength = 0

    /// The last bytes before the current piece.
    private var lead: [UInt8] = []
    private var isHeaderInLead = false
    /// `isBehindMedia` says whether the boxes with pictures or films are complete. `isTrailer` says whether the current
    /// box then has no known type.
    private var isBehindMedia = false, isTrailer = false
    /// The end of a WebP's last chunk, without the padding byte that makes the chunk's size even.
    private var unpaddedEnd: Int64?

    /// The maximum number of bytes that are collected of a piece: the size of a JPEG's segment.
    private static let maximumPieceBytes: Int64 = 64 << 10
    private static let leadBytes = 16
    /// The maximum size of ``otherData``: enough for three pieces of a GIF's pixels.
    private static let otherDataBytes = 800

    private enum State {
        case collecting(Piece, count: Int)
        case passing(until: Int64, then: Piece, count: Int)
        /// Inside a JPEG's compressed data, or in bytes that belong to no segment.
        case pixels(isBehindFF: Bool)
        case finished
    }

    /// The kind of bytes that are collected before they are read.
    private enum Piece {
        case signature
        /// The header of a segment, a chunk or a box.
        case header
        /// The content of a piece with EXIF. `next` is the offset of the next piece.
        case exif(next: Int64)
        /// The directory of a HEIC's items. `next` is the offset of the next piece.
        case items(next: Int64)
        /// The length of the next piece of a GIF's data.
        case dataLength
        /// A JPEG's pixels, which are searched for the next marker. Nothing is collected before the search.
        case pixels
    }

    package init() {}

    package var isJPEG: Bool { container == .jpeg }

    /// Whether the format says where a picture ends. Boxes do not.
    package var hasEnd: Bool {
        switch container ?? PictureContainer(signature: collected[...]) {
        case .jpeg?, .png?, .webP?, .gif?: true
        case .boxes?, nil: false
        }
    }

    /// Whether the picture's bytes stopped before its format's end.
    ///
    /// - Parameter size: The number of bytes that arrived.
    package func isCut(at size: Int64) -> Bool {
        // Some programs leave out the byte that makes the size even.
        if let end { return size < end && !(size == unpaddedEnd && size + 1 == end) }
        switch (container ?? PictureContainer(signature: collected[...]), state) {
        case (nil, _), (_, .finished): return false
        // No box is the last one, and one of them may have no length. Few bytes behind a box are no other box.
        case (.boxes, .passing(let target, _, _)): return target < .max && !endsInTrailer
        case (.boxes, _): return false
        // Some programs write no trailer.
        case (.gif, .collecting(.header, _)): return !collected.isEmpty
        default: return true
        }
    }

    /// Whether the bytes after the boxes of a picture or a film begin like a box, but are none.
    package var endsInTrailer: Bool { if case .passing = state { isTrailer } else { false } }

    /// How many bytes a picture that was cut off lacks, by the lengths in it; `nil` if the lengths do not say.
    ///
    /// - Parameter size: The number of bytes that arrived.
    package func missing(at size: Int64) -> Int64? {
        if container == .webP { return end.map { $0 - size } }
        guard container == .boxes, case .passing(let target, _, _) = state else { return nil }
        return target - size
    }

    /// Whether the next piece begins a few bytes earlier than the lengths say, as if some bytes before it had been
    /// removed.
    package var resumesEarlier: Bool {
        guard !isHeaderInLead, let first = otherData.first else { return isHeaderInLead }
        return [wholeLength, Int(first)].contains { length in
            (1...2).contains { count in resumes(at: length + 1 - count) }
        }
    }

    /// Whether pieces of a GIF's pixels begin at an index of ``otherData``.
    private func resumes(at index: Int) -> Bool {
        var index = index, count = 0
        while index < otherData.count, index > 0, otherData[index] == wholeLength {
            count += 1
            index += wholeLength + 1
        }
        if count >= 2 { return true }
        guard index < otherData.count, index > 0 else { return false }
        // The last piece, and the next block.
        let last = Int(otherData[index])
        if last > 0 { index += last + 1 }
        guard index + 1 < otherData.count else { return false }
        return otherData[index] == 0 && [0x21, 0x2C, 0x3B].contains(otherData[index + 1])
    }

    package mutating func read(_ bytes: UnsafeRawBufferPointer) {
        var index = 0
        while index < bytes.count {
            let rest = bytes.count - index
            var count = 0
            switch state {
            case .finished:
                return
            case .passing(let target, let piece, let size):
                count = Int(min(target - position, Int64(rest)))
                if target - position - Int64(count) < Self.leadBytes {
                    lead += UnsafeRawBufferPointer(rebasing: bytes[index..<(index + count)].suffix(Self.leadBytes))
                    lead = lead.suffix(Self.leadBytes)
                }
                if position + Int64(count) == target { state = .collecting(piece, count: size) }
            case .collecting(_, let size):
                count = min(size - collected.count, rest)
                collected += bytes[index..<(index + count)]
            case .pixels(var isBehindFF):
                let code = PictureContainer.marker(in: bytes, from: index, isBehindFF: &isBehindFF)
                count = code.map { $0 + 1 - index } ?? rest
                state = .pixels(isBehindFF: isBehindFF)
                if let code {
                    collected = [0xFF, bytes[code]]
                    state = .collecting(.header, count: 2)
                }
            }
            if !otherData.isEmpty, otherData.count < Self.otherDataBytes {
                otherData += bytes[index..<(index + count)].prefix(Self.otherDataBytes - otherData.count)
            }
            index += count
            position += Int64(count)
            // Several pieces may be complete: what was collected for one may begin with another.
            while case .collecting(let piece, let size) = state, collected.count >= size { take(piece) }
        }
    }

    private mutating func take(_ piece: Piece) {
        switch piece {
        case .signature: takeSignature()
        case .header: takeHeader()
        case .exif(let next):
            takeEXIF()
            pass(to: next, then: .header)
        case .items(let next):
            announcedEXIF = ItemDirectory(meta: collected).exif.map { ($0.offset, $0.length) }
            pass(before: next)
        case .dataLength:
            let length = Int64(collected.first ?? 0)
            // All pieces of a picture are equally long, but the last one.
            if let whole = dataLength, length > 0, lastDataLength < whole { firstStray = firstStray ?? position - 1 }
            if dataLength == 0 { dataLength = length }
            if let whole = dataLength, firstStray == nil, length != whole, lastDataLength == whole {
                otherData = collected
                wholeLength = Int(whole)  // 32 bits: a piece of a GIF has at most 255 bytes.
            }
            lastDataLength = length
            pass(to: position + length, then: length == 0 ? .header : .dataLength, count: 1)
        case .pixels:
            state = .pixels(isBehindFF: collected.last == 0xFF)
            collected = []
        }
    }

    private mutating func takeSignature() {
        container = PictureContainer(signature: collected[...])
        guard let container else {
            let isShort = collected.count < PictureContainer.signatureBytes
            return state = isShort ? .collecting(.signature, count: PictureContainer.signatureBytes) : .finished
        }
        end = container.statedEnd(collected[...])
        pass(to: container.firstOffset(collected[...]), then: .header)
    }

    private mutating func takeHeader() {
        guard let container else { return }
        switch container.unit(collected[...], at: position - Int64(collected.count)) {
        case .needs(let count): state = .collecting(.header, count: count)
        // Zeros between the blocks of a GIF only fill.
        case .malformed where container == .gif && collected.first == 0:
            collected.removeFirst()
        case .malformed:
            let labels: [UInt8] = [0x01, 0xF9, 0xFE, 0xFF]
            isHeaderInLead = container == .gif && lead.last == 0x21 && collected.first.map(labels.contains) == true
            firstStray = firstStray ?? position - Int64(collected.count)
            state = .finished
        case .unit(let unit) where unit.isLast:
            end = unit.next
            state = .finished
        case .unit(let unit): takeUnit(unit, in: container)
        }
    }

    private mutating func takeUnit(_ unit: PictureUnit, in container: PictureContainer) {
        let length = unit.content.upperBound - unit.content.lowerBound
        let isWanted = exif.isEmpty && length > 0
        if container == .webP, unit.next > unit.content.upperBound { unpaddedEnd = unit.content.upperBound }
        switch unit.kind {
        case .stray where firstStray == nil:
            firstStray = unit.content.lowerBound
            pass(to: unit.next, then: .pixels, count: 0)
        case .segment(0xDA) where pixelsStart == nil:
            pixelsStart = unit.next
            pass(to: unit.next, then: .pixels, count: 0)
        case .segment(0xDA), .marker, .stray:
            pass(to: unit.next, then: .pixels, count: 0)
        case .segment(0xE1) where isWanted, .named("eXIf") where isWanted, .named("EXIF") where isWanted:
            pass(to: unit.content.lowerBound, then: .exif(next: unit.next), count: length)
        case .named(let type) where container == .boxes:
            takeBox(type, unit, isWanted: isWanted)
        case .block(let first):
            dataLength = first == 0x2C ? 0 : nil
            pass(to: unit.next, then: .dataLength, count: 1)
        default:
            pass(before: unit.next)
        }
    }

    private mutating func takeBox(_ type: String, _ unit: PictureUnit, isWanted: Bool) {
        isTrailer = isBehindMedia && !Self.boxTypes.contains(type)
        if isTrailer || !Self.isBox(type) {
            isHeaderInLead = lead.indices.contains { index in
                let header = (lead[index...] + collected).prefix(8)
                // A box in the box before ends with that.
                return header.prefix(4).bigEndian > lead.count - index
                    && Self.boxTypes.contains(String(decoding: header.dropFirst(4), as: UTF8.self))
            }
            if isHeaderInLead || !Self.isBox(type) {
                // Zeros only fill.
                firstStray = type.unicodeScalars.allSatisfy { $0.value == 0 } ? nil : unit.content.lowerBound - 8
                return state = .finished
            }
        }
        isBehindMedia = isBehindMedia || ["mdat", "meta", "moov"].contains(type)
        guard type == "meta", isWanted else { return pass(before: unit.next) }
        let length = unit.content.upperBound - unit.content.lowerBound
        pass(to: unit.content.lowerBound, then: .items(next: unit.next), count: length)
    }

    /// The types of boxes at the top level of a file.
    private static let boxTypes: Set<String> = [
        "ftyp", "styp", "moov", "mdat", "meta", "free", "skip", "wide", "uuid", "moof", "mfra", "sidx", "ssix", "udta",
        "pdin", "emsg", "prft", "idat", "pnot", "mpvd",
    ]

    /// Whether a box may have this type: four characters of ASCII, or of QuickTime's ©.
    private static func isBox(_ type: String) -> Bool {
        type.unicodeScalars.allSatisfy { (0x20..<0x7F).contains($0.value) || $0.value == 0xA9 }
    }

    /// Skips the rest of a piece. EXIF inside it is collected if a directory of items announced it.
    private mutating func pass(before next: Int64) {
        guard let item = announcedEXIF, item.offset < next else { return pass(to: next, then: .header) }
        announcedEXIF = nil
        pass(to: item.offset, then: .exif(next: next), count: item.length)
    }

    private mutating func takeEXIF() {
        guard let container, let prefix = container.exifPrefix(of: collected[...]), prefix < collected.count
        else { return }
        exifOffset = position - Int64(collected.count - prefix)
        exif = Array(collected[prefix...])
    }

    private mutating func pass(to target: Int64, then piece: Piece) {
        pass(to: target, then: piece, count: Int64(container?.headerBytes ?? 0))
    }

    /// Skips the bytes before an offset. Bytes from that offset on that are already collected are kept.
    private mutating func pass(to target: Int64, then piece: Piece, count: Int64) {
        let surplus = Int(clamping: max(position - target, 0))
        let count = Int(clamping: min(count, Self.maximumPieceBytes))
        // What came before cannot be read again.
        guard surplus <= collected.count else { return state = .finished }
        lead = position < target ? [] : Array(collected.dropLast(surplus).suffix(Self.leadBytes))
        collected = collected.suffix(surplus)
        let isAhead = position < target
        state = isAhead ? .passing(until: target, then: piece, count: count) : .collecting(piece, count: count)
    }
}
