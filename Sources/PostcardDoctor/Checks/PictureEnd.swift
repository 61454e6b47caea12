import PostcardForm

/// Finds where a picture's format ends, however the bytes are cut into chunks.
struct PictureEnd: Sendable {
    /// The offset at which the format says that the picture ends, counted from the picture's start; `nil` before that
    /// offset is reached, and if the format's end cannot be determined.
    private(set) var end: Int64?

    private(set) var format: Format?

    private var state = State.start([])
    private var position: Int64 = 0

    enum Format: Sendable {
        case jpeg, png, webP
    }

    private enum State {
        case start([UInt8])
        /// In a JPEG, before the FF of a marker, and after it.
        case marker, markerCode
        /// In the length of a JPEG's segment.
        case length(code: UInt8, high: UInt8?)
        case segment(code: UInt8, rest: Int)
        /// In a JPEG's compressed data, and after an FF there.
        case scan, scanMarker
        /// In the length and the type of a PNG's chunk.
        case chunk([UInt8])
        case chunkContent(rest: Int64, isLast: Bool)
        case known
    }

    /// Whether the bytes of a picture stopped before its format's end.
    func isCut(at size: Int64) -> Bool {
        guard format != nil else { return false }
        if let end { return size < end }
        if case .known = state { return false }
        return true
    }

    mutating func read(_ bytes: UnsafeRawBufferPointer) {
        if case .known = state { return }
        var index = 0
        while index < bytes.count {
            switch state {
            case .known:
                return
            case .segment(let code, let rest):
                let count = min(rest, bytes.count - index)
                index += count
                position += Int64(count)
                state = count < rest ? .segment(code: code, rest: rest - count) : code == 0xDA ? .scan : .marker
            case .chunkContent(let rest, let isLast):
                let count = Int(min(rest, Int64(bytes.count - index)))
                index += count
                position += Int64(count)
                if Int64(count) < rest {
                    state = .chunkContent(rest: rest - Int64(count), isLast: isLast)
                } else {
                    finishChunk(isLast)
                }
            case .scan:
                let next = Self.firstMarker(in: bytes, from: index)
                position += Int64(next - index)
                index = next
                if index < bytes.count {
                    state = .scanMarker
                    index += 1
                    position += 1
                }
            default:
                take(bytes[index])
                index += 1
            }
        }
    }

    private mutating func take(_ byte: UInt8) {
        position += 1
        switch state {
        case .start(var bytes):
            bytes.append(byte)
            begin(bytes)
        case .marker: state = byte == 0xFF ? .markerCode : .known
        case .markerCode: afterMarker(byte)
        case .length(let code, nil): state = .length(code: code, high: byte)
        case .length(let code, .some(let high)):
            let length = Int(high) << 8 | Int(byte)
            state = length >= 2 ? .segment(code: code, rest: length - 2) : .known
            if length == 2 { state = code == 0xDA ? .scan : .marker }
        case .scanMarker:
            switch byte {
            case 0, 0xD0...0xD7: state = .scan
            case 0xFF: break
            default: afterMarker(byte)
            }
        case .chunk(var bytes):
            bytes.append(byte)
            guard bytes.count == 8 else {
                state = .chunk(bytes)
                return
            }
            let length = bytes.prefix(4).reduce(Int64(0)) { $0 << 8 | Int64($1) }
            state = .chunkContent(rest: length + 4, isLast: bytes[4...].elementsEqual("IEND".utf8))
        case .segment, .scan, .chunkContent, .known: break
        }
    }

    private mutating func afterMarker(_ code: UInt8) {
        switch code {
        case 0xD9:
            end = position
            state = .known
        case 0xFF: state = .markerCode
        case 0x01, 0xD0...0xD8: state = .marker
        default: state = .length(code: code, high: nil)
        }
    }

    private mutating func finishChunk(_ isLast: Bool) {
        if isLast { end = position }
        state = isLast ? .known : .chunk([])
    }

    private mutating func begin(_ bytes: [UInt8]) {
        state = .start(bytes)
        if bytes.count == 3, bytes == [0xFF, 0xD8, 0xFF] {
            format = .jpeg
            state = .markerCode
        } else if bytes.count == 8, bytes == [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] {
            format = .png
            state = .chunk([])
        } else if bytes.count == 12 {
            if bytes.starts(with: "RIFF".utf8), bytes[8...].elementsEqual("WEBP".utf8) {
                format = .webP
                let size = bytes[4..<8].reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) }
                end = 8 + size + size % 2
            }
            state = .known
        }
    }

    /// The index of the next FF, or the end if there is none.
    private static func firstMarker(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        guard let base = bytes.baseAddress else { return bytes.count }
        let wanted = SIMD16<UInt8>(repeating: 0xFF)
        var index = start
        while index + 16 <= bytes.count {
            let fits = unsafeBitCast(
                (base + index).loadUnaligned(as: SIMD16<UInt8>.self) .== wanted, to: SIMD2<UInt64>.self)
            if fits.x | fits.y != 0 { break }
            index += 16
        }
        while index < bytes.count, bytes[index] != 0xFF { index += 1 }
        return index
    }
}
