/// The formats of picture files, and their pieces: segments, chunks, blocks or boxes.
///
/// All readers of pictures use this type, so that they agree on malformed files. A reader passes the header of a piece,
/// and learns the kind of the piece and where the next begins.
package enum PictureContainer: Sendable {
    /// JPEG (ITU-T T.81 Annex B).
    case jpeg
    /// PNG (W3C PNG 3rd edition §5).
    case png
    /// WebP (RFC 9649 §2).
    case webP
    /// GIF (GIF89a Specification).
    case gif
    /// HEIC, AVIF, MP4 and QuickTime: ISO/IEC 14496-12 §4.2, QuickTime File Format Specification.
    case boxes

    /// The number of first bytes needed to recognize a container.
    package static let signatureBytes = 12

    /// The bytes before EXIF in a JPEG. Some programs add them in PNG and WebP too.
    static let exifMark = Array("Exif\0\0".utf8)

    /// Recognizes a container by the first bytes of a file; `nil` for other formats. Three bytes are enough for a JPEG.
    /// The first box of a file of boxes must be `ftyp`.
    package init?(signature start: ArraySlice<UInt8>) {
        let behind4 = start.dropFirst(4)
        if start.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if start.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if start.starts(with: "RIFF".utf8), behind4.dropFirst(4).starts(with: "WEBP".utf8) {
            self = .webP
        } else if start.starts(with: "GIF8".utf8), start.count >= 11 {
            self = .gif
        } else if behind4.starts(with: "ftyp".utf8) {
            self = .boxes
        } else {
            return nil
        }
    }

    /// The offset of the first piece of a file. `start` has the first bytes of the file, ``signatureBytes`` in number.
    package func firstOffset(_ start: ArraySlice<UInt8>) -> Int64 {
        switch self {
        case .jpeg: 2
        case .png: 8
        case .webP: 12
        case .gif: 13 + Self.colorTableBytes(start.dropFirst(10).first ?? 0)
        case .boxes: 0
        }
    }

    /// The end offset that the first bytes of a WebP state; `nil` for other formats. The real end may differ.
    package func statedEnd(_ start: ArraySlice<UInt8>) -> Int64? {
        self == .webP ? 8 + start.dropFirst(4).prefix(4).littleEndian : nil
    }

    /// The number of bytes before the TIFF structure in a piece with EXIF; `nil` if the piece has no EXIF.
    ///
    /// - Parameter piece: The content of a JPEG's APP1, of a PNG's or WebP's chunk, or of an item in boxes.
    package func exifPrefix(of piece: ArraySlice<UInt8>) -> Int? {
        switch self {
        case .jpeg, .gif: piece.starts(with: Self.exifMark) ? Self.exifMark.count : nil
        case .png, .webP: piece.starts(with: Self.exifMark) ? Self.exifMark.count : 0
        // The first four bytes count the other bytes before the structure (ISO/IEC 23008-12 Annex A).
        case .boxes: piece.count < 4 ? nil : Int(exactly: 4 + piece.prefix(4).bigEndian)
        }
    }
}

/// A piece of a picture file: a segment, chunk, block or box.
package struct PictureUnit {
    package enum Kind: Equatable {
        /// A segment of a JPEG, by its marker.
        case segment(UInt8)
        /// A JPEG marker without a segment, or a fill byte.
        case marker
        /// Bytes between the segments of a JPEG, which decoders skip.
        case stray
        /// A chunk or box, with its type. A box type has one character for each byte.
        case named(String)
        /// A block of a GIF, with its first byte. Its data follows in pieces of up to 255 bytes.
        case block(UInt8)
    }

    package let kind: Kind
    /// The range of the content in the file. For a block of a GIF, the range is empty and at the start of the data.
    package let content: Range<Int64>
    /// The offset at which to look for the next piece. In a JPEG, pixels may come first.
    package let next: Int64
    /// Whether the piece ends the picture according to the format.
    package let isLast: Bool

    fileprivate init(_ kind: Kind, _ content: Range<Int64>, next: Int64? = nil, isLast: Bool = false) {
        self.kind = kind
        self.content = content
        self.next = next ?? content.upperBound
        self.isLast = isLast
    }
}

extension PictureContainer {
    /// The result of reading the header of a piece.
    package enum Header {
        case unit(PictureUnit)
        /// The header needs more bytes: at least this many in all.
        case needs(Int)
        /// The bytes are no piece, or the piece exceeds the file. The text is the reason, as the end of a sentence.
        case malformed(String)
    }

    /// The number of bytes that suffice for the headers of most pieces.
    package var headerBytes: Int {
        switch self {
        case .jpeg: 2
        case .gif: 1
        case .png, .webP, .boxes: 8
        }
    }

    /// Reads the header of the piece at an offset. `header` has the first bytes of the piece, and may go beyond its
    /// header. `end` is the end offset of the enclosing file or piece.
    package func unit(_ header: ArraySlice<UInt8>, at offset: Int64, end: Int64 = .max) -> Header {
        guard header.count >= headerBytes else { return .needs(headerBytes) }
        switch self {
        case .jpeg: return Self.segment(header, at: offset, end: end)
        case .png: return Self.chunk(header, at: offset, end: end)
        case .webP: return Self.riffChunk(header, at: offset, end: end)
        case .gif: return Self.block(header, at: offset)
        case .boxes: return Self.box(header, at: offset, end: end)
        }
    }

    private static func segment(_ header: ArraySlice<UInt8>, at offset: Int64, end: Int64) -> Header {
        let first = header.startIndex
        guard header[first] == 0xFF else {
            let count = header.firstIndex(of: 0xFF).map { $0 - first } ?? header.count
            return .unit(PictureUnit(.stray, offset..<(offset + Int64(count))))
        }
        func marker(bytes: Int64, isLast: Bool = false) -> Header {
            .unit(PictureUnit(.marker, (offset + bytes)..<(offset + bytes), isLast: isLast))
        }
        let code = header[first + 1]
        switch code {
        case 0xFF: return marker(bytes: 1)
        case 0xD9: return marker(bytes: 2, isLast: true)
        case 0x00, 0x01, 0xD0...0xD8: return marker(bytes: 2)
        default: break
        }
        guard header.count >= 4 else { return .needs(4) }
        let length = header[(first + 2)...].prefix(2).bigEndian
        guard length >= 2, length <= end - offset - 2 else {
            return .malformed("a segment of the JPEG has \(length) bytes by its header, which do not fit here")
        }
        return .unit(PictureUnit(.segment(code), (offset + 4)..<(offset + 2 + length)))
    }

    private static func chunk(_ header: ArraySlice<UInt8>, at offset: Int64, end: Int64) -> Header {
        let count = header.prefix(4).bigEndian
        guard count <= 0x7FFF_FFFF, count <= end - offset - 12 else {
            return .malformed("a chunk of the PNG is said to have \(count) bytes, and the file ends before")
        }
        let type = String(decoding: header.dropFirst(4).prefix(4), as: UTF8.self)
        let content = (offset + 8)..<(offset + 8 + count)
        // A checksum follows the content.
        return .unit(PictureUnit(.named(type), content, next: content.upperBound + 4, isLast: type == "IEND"))
    }

    private static func riffChunk(_ header: ArraySlice<UInt8>, at offset: Int64, end: Int64) -> Header {
        let count = header.dropFirst(4).prefix(4).littleEndian
        guard count <= end - offset - 8 else {
            return .malformed("a chunk of the WebP is said to have \(count) bytes, which do not fit")
        }
        let content = (offset + 8)..<(offset + 8 + count)
        let type = String(decoding: header.prefix(4), as: UTF8.self)
        return .unit(PictureUnit(.named(type), content, next: content.upperBound + count % 2))
    }

    private static func block(_ header: ArraySlice<UInt8>, at offset: Int64) -> Header {
        func block(_ first: UInt8, dataAt start: Int64, isLast: Bool = false) -> Header {
            .unit(PictureUnit(.block(first), (offset + start)..<(offset + start), isLast: isLast))
        }
        switch header.first {
        case 0x3B?: return block(0x3B, dataAt: 1, isLast: true)
        // The data follows the kind of extension.
        case 0x21?: return header.count < 2 ? .needs(2) : block(0x21, dataAt: 2)
        case 0x2C?:
            guard header.count >= 10 else { return .needs(10) }
            // The data follows the color table and the size of the codes.
            return block(0x2C, dataAt: 11 + colorTableBytes(header[header.startIndex + 9]))
        default: return .malformed("a block of the GIF was expected here")
        }
    }

    private static func colorTableBytes(_ flags: UInt8) -> Int64 {
        flags & 0x80 == 0 ? 0 : 3 << (Int64(flags & 7) + 1)
    }

    private static func box(_ header: ArraySlice<UInt8>, at offset: Int64, end: Int64) -> Header {
        let rest = end - offset
        var size = header.prefix(4).bigEndian
        var headerBytes: Int64 = 8
        if size == 1 {
            guard header.count >= 16 else { return .needs(16) }
            let long = header.dropFirst(8).prefix(8)
            size = long.first.map { $0 < 0x80 } == true ? long.bigEndian : .max
            headerBytes = 16
        } else if size == 0 {
            size = rest
        }
        guard size >= headerBytes, size <= rest else {
            return .malformed("a box is said to have \(size) bytes, and \(rest) are left")
        }
        let type = header.dropFirst(4).prefix(4).map { String(UnicodeScalar($0)) }.joined()
        return .unit(PictureUnit(.named(type), (offset + headerBytes)..<(offset + size)))
    }
}

extension PictureContainer {
    /// Finds the next marker in the pixels of a JPEG: an FF and a code. Zero and the codes of restart markers do not
    /// count. Returns the index of the code; `nil` if there is no marker. `isBehindFF` carries an FF at the end of one
    /// call's bytes over to the next call: pass `true` if the byte before `start` is an FF.
    static func marker(
        in bytes: UnsafeRawBufferPointer, from start: Int, isBehindFF: inout Bool
    ) -> Int? {
        var index = start
        while index < bytes.count {
            if isBehindFF {
                let code = bytes[index]
                isBehindFF = code == 0xFF
                // As in decoders, an FF before another FF is a fill byte.
                if code != 0, code != 0xFF, code & 0xF8 != 0xD0 { return index }
            } else {
                index = bytes.firstIndex(of: 0xFF, from: index)
                isBehindFF = index < bytes.count
            }
            index += 1
        }
        return nil
    }
}

extension UnsafeRawBufferPointer {
    /// The index of the next byte with a value, or the end index if there is none.
    package func firstIndex(of byte: UInt8, from start: Int) -> Int {
        guard let baseAddress else { return count }
        let wanted = SIMD16<UInt8>(repeating: byte)
        var index = start
        while index + 16 <= count {
            let fits = unsafeBitCast(
                (baseAddress + index).loadUnaligned(as: SIMD16<UInt8>.self) .== wanted, to: SIMD2<UInt64>.self)
            if fits.x | fits.y != 0 { break }
            index += 16
        }
        while index < count, self[index] != byte { index += 1 }
        return index
    }
}

/// An error that makes a file unreadable.
package struct ScanError: Error {
    /// The offset of the error, in bytes from the start of the file.
    package let offset: Int64

    /// The error, as the end of a sentence.
    let finding: String

    /// The error of reading the file; `nil` if reading succeeded.
    package let underlyingError: (any Error)?

    init(at offset: Int64, _ reason: String, underlyingError: (any Error)? = nil) {
        self.offset = offset
        finding = reason
        self.underlyingError = underlyingError
    }

    /// The error and its offset, as the end of a sentence.
    package var reason: String { "\(finding), at byte \(offset)" }
}

/// An error in a piece of metadata in memory.
struct BlockError: Error {
    /// The index of the error in the piece.
    let index: Int
    let reason: String

    init(at index: Int, _ reason: String) {
        self.index = index
        self.reason = reason
    }
}
