/// Reads a picture in chunks of any size, and finds its end and its EXIF. A piece of a picture is a JPEG segment, a PNG
/// or WebP chunk, a GIF block, or a box.
package struct ArrivingPicture: Sendable {
    /// The end offset of the picture according to its format, from the picture's start; `nil` until the end is reached,
    /// or if the format has no end.
    package private(set) var end: Int64?
    /// The first bytes of the EXIF's TIFF structure; empty without EXIF before the pixels. In HEIC and AVIF, EXIF is
    /// found if the item directory comes first, as in the files of cameras.
    package private(set) var exif: [UInt8] = []
    /// The offset of the TIFF structure, counted from the picture's start.
    package private(set) var exifOffset: Int64 = 0
    /// The offset of the first bytes outside of all pieces, which JPEG decoders skip; `nil` if there are none.
    package private(set) var firstStray: Int64?
    /// The offset of the first pixels of a JPEG.
    package private(set) var pixelsStart: Int64?
    /// The end of the picture, or of the last piece read so far if the format has no end.
    package var lastEnd: Int64? { end ?? (hasEnd ? nil : position - Int64(collected.count)) }

    private var container: PictureContainer?
    private var state = State.collecting(.signature, count: 3)
    /// The bytes of the current piece received so far.
    private var collected: [UInt8] = []
    private var position: Int64 = 0
    /// The range of the EXIF in a file of boxes, as an item directory announced it.
    private var announcedEXIF: (offset: Int64, length: Int64)?

    /// The length of the first sub-block of a GIF's current image: 0 before that sub-block, `nil` outside of images.
    /// `lastDataLength` is the length of the latest sub-block.
    private var dataLength: Int64?
    private var lastDataLength: Int64 = 0
    /// The bytes of a GIF's image, beginning with the first sub-block of an unusual length.
    private var otherData: [UInt8] = []
    /// The usual length of the sub-blocks before ``otherData``.
    private var wholeLength = 0

    /// The last bytes before the current piece.
    private var lead: [UInt8] = []
    private var isHeaderInLead = false
    /// Whether a box with pictures or video was read, and whether a box of unknown type follows it.
    private var isBehindMedia = false, isTrailer = false
    /// The end of a WebP's last chunk, without the byte that pads the chunk to an even size.
    private var unpaddedEnd: Int64?

    /// The maximum number of collected bytes of a piece: the size of a JPEG segment.
    private static let maximumPieceBytes: Int64 = 64 << 10
    private static let leadBytes = 16
    /// The maximum size of ``otherData``, in bytes: three sub-blocks of a GIF.
    private static let otherDataBytes = 800

    private enum State {
        case collecting(Piece, count: Int)
        case passing(until: Int64, then: Piece, count: Int)
        /// The compressed data of a JPEG, or bytes that belong to no segment.
        case pixels(isBehindFF: Bool)
        case finished
    }

    /// The kind of a piece whose bytes are collected before they are read.
    private enum Piece {
        case signature
        /// The header of a segment, chunk or box.
        case header
        /// A piece with EXIF. `next` is the offset of the next piece.
        case exif(next: Int64)
        /// The item directory of a HEIC. `next` is the offset of the next piece.
        case items(next: Int64)
        /// The length of the next sub-block of a GIF.
        case dataLength
        /// The pixels of a JPEG, which are searched for the next marker without collecting bytes.
        case pixels
    }

    package init() {}

    package var isJPEG: Bool { container == .jpeg }

    /// Whether the format marks the end of a picture, as all but boxes do.
    package var hasEnd: Bool {
        switch container ?? PictureContainer(signature: collected[...]) {
        case .jpeg?, .png?, .webP?, .gif?: true
        case .boxes?, nil: false
        }
    }

    /// Whether the received bytes end before the picture does. `size` is the number of received bytes.
    package func isCut(at size: Int64) -> Bool {
        // Some programs leave out the padding byte.
        if let end { return size < end && !(size == unpaddedEnd && size + 1 == end) }
        switch (container ?? PictureContainer(signature: collected[...]), state) {
        case (nil, _), (_, .finished): return false
        // The last box may have no length (`.max`), and bytes after it may only resemble a box.
        case (.boxes, .passing(let target, _, _)): return target < .max && !endsInTrailer
        case (.boxes, _): return false
        // Some programs leave out the trailer.
        case (.gif, .collecting(.header, _)): return !collected.isEmpty
        default: return true
        }
    }

    /// Whether the boxes of a picture or video are followed by bytes that only resemble a box.
    package var endsInTrailer: Bool { if case .passing = state { isTrailer } else { false } }

    /// The number of bytes that a truncated picture lacks after `size` received bytes, according to the lengths in the
    /// picture; `nil` if unknown.
    package func missing(at size: Int64) -> Int64? {
        if container == .webP { return end.map { $0 - size } }
        guard container == .boxes, case .passing(let target, _, _) = state else { return nil }
        return target - size
    }

    /// Whether the next piece begins a few bytes before the offset that the lengths give, as if bytes had been lost.
    package var resumesEarlier: Bool {
        guard !isHeaderInLead, let first = otherData.first else { return isHeaderInLead }
        return [wholeLength, Int(first)].contains { length in
            (1...2).contains { count in resumes(at: length + 1 - count) }
        }
    }

    /// Whether the bytes at an index of ``otherData`` are the GIF sub-blocks that should follow.
    private func resumes(at index: Int) -> Bool {
        var index = index, count = 0
        while index < otherData.count, index > 0, otherData[index] == wholeLength {
            count += 1
            index += wholeLength + 1
        }
        if count >= 2 { return true }
        guard index < otherData.count, index > 0 else { return false }
        // Skips the last sub-block and the end of the image, up to the next block.
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
            // The bytes collected for one piece may contain the next pieces too.
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
            // In an image of a GIF, only the last sub-block may be shorter than the others.
            if let whole = dataLength, length > 0, lastDataLength < whole { firstStray = firstStray ?? position - 1 }
            if dataLength == 0 { dataLength = length }
            if let whole = dataLength, firstStray == nil, length != whole, lastDataLength == whole {
                otherData = collected
                wholeLength = Int(whole)  // 32 bits: a sub-block has at most 255 bytes.
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
        // Zeros between the blocks of a GIF are padding.
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
                // The header begins inside the box before it.
                return header.prefix(4).bigEndian > lead.count - index
                    && Self.boxTypes.contains(String(decoding: header.dropFirst(4), as: UTF8.self))
            }
            if isHeaderInLead || !Self.isBox(type) {
                // Zeros are padding.
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

    /// Whether a text may be the type of a box: four ASCII characters, or QuickTime's ©.
    private static func isBox(_ type: String) -> Bool {
        type.unicodeScalars.allSatisfy { (0x20..<0x7F).contains($0.value) || $0.value == 0xA9 }
    }

    /// Skips the rest of a piece, except for EXIF in it that an item directory announced.
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

    /// Skips the bytes before an offset. Collected bytes after the offset are kept.
    private mutating func pass(to target: Int64, then piece: Piece, count: Int64) {
        let surplus = Int(clamping: max(position - target, 0))
        let count = Int(clamping: min(count, Self.maximumPieceBytes))
        // Earlier bytes cannot be read again.
        guard surplus <= collected.count else { return state = .finished }
        lead = position < target ? [] : Array(collected.dropLast(surplus).suffix(Self.leadBytes))
        collected = collected.suffix(surplus)
        let isAhead = position < target
        state = isAhead ? .passing(until: target, then: piece, count: count) : .collecting(piece, count: count)
    }
}
