import PostcardPictureFormats

/// Extracts the EXIF while a photo's bytes are read: from a JPEG's segments, a PNG's and a WebP's chunks, and the items
/// of HEIC and AVIF if their directory comes first, as cameras write it.
struct PhotoMetadata: Sendable {
    /// The beginning of the EXIF's TIFF structure; empty if there is none.
    private(set) var exif: [UInt8] = []
    /// The offset of the TIFF structure, counted from the photo's start.
    private(set) var offset: Int64 = 0

    private var state = State.taking(.signature, size: 12)
    /// The bytes received so far of the current piece.
    private var taken: [UInt8] = []
    private var container = Container.jpeg
    private var position: Int64 = 0
    /// The end offset of the segment, chunk or box that contains this piece.
    private var unitEnd: Int64 = 0

    /// As much as a JPEG's segment holds.
    private static let maximumPieceBytes = 64 << 10

    private enum State {
        case taking(Piece, size: Int)
        case passing(until: Int64, then: Piece, size: Int)
        case finished
    }

    /// Bytes that are looked at together.
    private enum Piece {
        case signature
        /// What begins a segment, a chunk or a box.
        case header
        case exif
        /// The directory of a HEIC's items.
        case items
    }

    private enum Container {
        case jpeg, png, webP, heif

        init?(_ start: [UInt8]) {
            if start.starts(with: [0xFF, 0xD8]) {
                self = .jpeg
            } else if start.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
                self = .png
            } else if start.starts(with: "RIFF".utf8), start[8...].elementsEqual("WEBP".utf8) {
                self = .webP
            } else if start[4...].starts(with: "ftyp".utf8) {
                self = .heif
            } else {
                return nil
            }
        }

        /// The number of bytes before the first segment, chunk or box.
        var signatureBytes: Int {
            switch self {
            case .jpeg: 2
            case .png: 8
            case .webP: 12
            case .heif: 0
            }
        }

        var headerBytes: Int { self == .jpeg ? 4 : 8 }
    }

    mutating func read(_ bytes: UnsafeRawBufferPointer) {
        var index = 0
        while index < bytes.count {
            let rest = bytes.count - index
            switch state {
            case .finished:
                return
            case .passing(let target, let piece, let size):
                let count = Int(min(target - position, Int64(rest)))
                index += count
                position += Int64(count)
                if position == target { state = .taking(piece, size: size) }
            case .taking(let piece, let size):
                let count = min(size - taken.count, rest)
                taken += bytes[index..<(index + count)]
                index += count
                position += Int64(count)
                if taken.count == size {
                    let whole = taken
                    taken = []
                    take(piece, whole)
                }
            }
        }
    }

    private mutating func take(_ piece: Piece, _ bytes: [UInt8]) {
        switch piece {
        case .signature:
            state = .finished
            guard let found = Container(bytes) else { return }
            container = found
            position = Int64(found.signatureBytes)
            state = .taking(.header, size: found.headerBytes)
            bytes[found.signatureBytes...].withUnsafeBytes { read($0) }
        case .header:
            takeHeader(bytes)
        case .exif:
            let start = position - Int64(bytes.count)
            pass(to: unitEnd, then: .header, size: container.headerBytes)
            guard let dropped = prefixLength(bytes), dropped < bytes.count else { return }
            exif = Array(bytes[dropped...])
            offset = start + Int64(dropped)
            state = .finished
        case .items:
            state = .finished
            guard let item = ItemDirectory(meta: bytes).exif else { return }
            unitEnd = .max
            pass(to: item.offset, then: .exif, length: item.length)
        }
    }

    private mutating func takeHeader(_ header: [UInt8]) {
        let length: Int64
        let kind: Piece?
        switch container {
        case .jpeg:
            length = Int64(header[2]) << 8 | Int64(header[3])
            guard header[0] == 0xFF, header[1] != 0xDA, header[1] != 0xD9, length >= 2 else { return state = .finished }
            unitEnd = position + length - 2
            kind = header[1] == 0xE1 && length > 2 ? .exif : nil
        case .png:
            length = header[..<4].reduce(0) { $0 << 8 | Int64($1) }
            unitEnd = position + length + 4
            kind = header[4...].elementsEqual("eXIf".utf8) ? .exif : nil
        case .webP:
            length = header[4...].reversed().reduce(0) { $0 << 8 | Int64($1) }
            unitEnd = position + length + length % 2
            kind = header[..<4].elementsEqual("EXIF".utf8) ? .exif : nil
        case .heif:
            // A size of 0 means up to the end, and 1 means more than 4 GiB: that is the picture itself.
            length = header[..<4].reduce(0) { $0 << 8 | Int64($1) } - 8
            guard length >= 0 else { return state = .finished }
            unitEnd = position + length
            kind = header[4...].elementsEqual("meta".utf8) ? .items : nil
        }
        if let kind {
            pass(to: position, then: kind, length: container == .jpeg ? length - 2 : length)
        } else {
            pass(to: unitEnd, then: .header, size: container.headerBytes)
        }
    }

    private mutating func pass(to target: Int64, then piece: Piece, length: Int64) {
        pass(to: target, then: piece, size: Int(min(length, Int64(Self.maximumPieceBytes))))
    }

    private mutating func pass(to target: Int64, then piece: Piece, size: Int) {
        let isAhead = target >= position && size > 0
        state = isAhead ? .passing(until: target, then: piece, size: size) : .finished
    }

    /// The number of bytes before the TIFF structure; `nil` if the piece is something else.
    private func prefixLength(_ piece: [UInt8]) -> Int? {
        let mark = Array("Exif\0\0".utf8)
        switch container {
        case .jpeg: return piece.starts(with: mark) ? mark.count : nil
        case .png, .webP: return piece.starts(with: mark) ? mark.count : 0
        case .heif:
            // Its first four bytes are the number of other bytes before it (ISO/IEC 23008-12 Annex A).
            guard piece.count > 4 else { return nil }
            return 4 + piece[..<4].reduce(0) { $0 << 8 | Int($1) }
        }
    }
}
