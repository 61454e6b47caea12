/// Reads a picture whose bytes arrive in chunks of any size: where its format ends, and its EXIF.
package struct ArrivingPicture: Sendable {
    /// The offset at which the format says that the picture ends, counted from the picture's start; `nil` before that
    /// offset is reached, and if the format's end cannot be determined.
    package private(set) var end: Int64?
    /// The beginning of the EXIF's TIFF structure; empty if there is none before the pixels. In HEIC and AVIF it is
    /// found if the directory of items comes first, as cameras write it.
    package private(set) var exif: [UInt8] = []
    /// The offset of the TIFF structure, counted from the picture's start.
    package private(set) var exifOffset: Int64 = 0

    private var container: PictureContainer?
    private var state = State.collecting(.signature, count: 3)
    /// The bytes received so far of the current piece.
    private var collected: [UInt8] = []
    private var position: Int64 = 0

    /// As much as a JPEG's segment holds.
    private static let maximumPieceBytes: Int64 = 64 << 10

    private enum State {
        case collecting(Piece, count: Int)
        case passing(until: Int64, then: Piece, count: Int)
        /// In a JPEG's compressed data, or in bytes that belong to no segment.
        case pixels(isBehindFF: Bool)
        case finished
    }

    /// Bytes that are looked at together.
    private enum Piece {
        case signature
        /// What begins a segment, a chunk or a box.
        case header
        /// The content of a piece with EXIF, and the offset of the next piece.
        case exif(next: Int64)
        /// The directory of a HEIC's items.
        case items
        /// What is searched for the next marker, with nothing to collect before.
        case pixels
    }

    package init() {}

    /// Whether the format says where a picture ends, in a way that is known here: JPEG, PNG and WebP do.
    package var hasEnd: Bool {
        switch container ?? PictureContainer(signature: collected[...]) {
        case .jpeg?, .png?, .webP?: true
        case .gif?, .boxes?, nil: false
        }
    }

    /// Whether the picture's bytes stopped before its format's end.
    ///
    /// - Parameter size: The number of bytes that arrived.
    package func isCut(at size: Int64) -> Bool {
        guard hasEnd else { return false }
        if let end { return size < end }
        if case .finished = state { return false }
        return true
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
        case .items:
            guard let item = ItemDirectory(meta: collected).exif else { return state = .finished }
            pass(to: item.offset, then: .exif(next: .max), count: item.length)
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
        // Finding the end of a GIF would take reading all its data.
        if container == .gif { return state = .finished }
        pass(to: container.firstOffset(collected[...]), then: .header)
    }

    private mutating func takeHeader() {
        guard let container else { return }
        switch container.unit(collected[...], at: position - Int64(collected.count)) {
        case .needs(let count): state = .collecting(.header, count: count)
        case .malformed: state = .finished
        case .unit(let unit) where unit.isLast:
            end = unit.next
            state = .finished
        case .unit(let unit): takeUnit(unit, in: container)
        }
    }

    private mutating func takeUnit(_ unit: PictureUnit, in container: PictureContainer) {
        let length = unit.content.upperBound - unit.content.lowerBound
        let isWanted = exif.isEmpty && length > 0
        switch unit.kind {
        case .segment(0xDA), .marker, .stray:
            pass(to: unit.next, then: .pixels, count: 0)
        case .segment(0xE1) where isWanted, .named("eXIf") where isWanted, .named("EXIF") where isWanted:
            pass(to: unit.content.lowerBound, then: .exif(next: unit.next), count: length)
        case .named("meta") where isWanted && container == .boxes:
            pass(to: unit.content.lowerBound, then: .items, count: length)
        default:
            pass(to: unit.next, then: .header)
        }
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

    /// Passes over the bytes before an offset, and keeps those that were collected from that offset on.
    private mutating func pass(to target: Int64, then piece: Piece, count: Int64) {
        let surplus = Int(clamping: max(position - target, 0))
        let count = Int(clamping: min(count, Self.maximumPieceBytes))
        // What came before cannot be read again.
        guard surplus <= collected.count else { return state = .finished }
        collected = collected.suffix(surplus)
        let isAhead = position < target
        state = isAhead ? .passing(until: target, then: piece, count: count) : .collecting(piece, count: count)
    }
}
