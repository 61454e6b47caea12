import Foundation
import PostcardForm

/// A content transfer encoding (RFC 2045 §6), for `;encoder=`. RFC 7578 §4.7 deprecates these encodings, and few
/// receivers decode them.
enum ContentEncoding: String, CaseIterable {
    case base64
    case quotedPrintable = "quoted-printable"
    case eightBit = "8bit"
    case sevenBit = "7bit"
    case binary

    /// The number of bytes after encoding; `nil` if it depends on the content.
    func length(of count: Int64) -> Int64? {
        switch self {
        case .base64 where count > .max / 4: nil
        case .base64: count == 0 ? 0 : 4 * ((count + 2) / 3) + 2 * ((count - 1) / Int64(ContentEncoder.bytesPerLine))
        case .quotedPrintable: count == 0 ? 0 : nil
        case .eightBit, .sevenBit, .binary: count
        }
    }

    /// Makes a stream that encodes the content of a part. `name` is the part's name for error messages.
    func stream(of content: FormLayout, named name: String) -> FormStream {
        FormStream(length: content.contentLength.flatMap(length)) {
            EncodedChunks(content.chunks(), in: self, named: name)
        }
    }
}

struct EncodedChunks<Chunks: AsyncSequence & Sendable>: AsyncSequence, Sendable where Chunks.Element == Data {
    private let chunks: Chunks
    private let encoding: ContentEncoding
    private let name: String

    /// Makes a sequence that encodes chunks. `name` is the part's name for error messages.
    init(_ chunks: Chunks, in encoding: ContentEncoding, named name: String) {
        (self.chunks, self.encoding, self.name) = (chunks, encoding, name)
    }

    func makeAsyncIterator() -> Iterator {
        Iterator(chunks: chunks.makeAsyncIterator(), encoder: ContentEncoder(encoding), name: name)
    }

    struct Iterator: AsyncIteratorProtocol {
        private var chunks: Chunks.AsyncIterator
        private var encoder: ContentEncoder
        private let name: String
        private var isAtEnd = false

        fileprivate init(chunks: Chunks.AsyncIterator, encoder: ContentEncoder, name: String) {
            (self.chunks, self.encoder, self.name) = (chunks, encoder, name)
        }

        mutating func next() async throws -> Data? {
            guard !isAtEnd else { return nil }
            let chunk = try await chunks.next(isolation: #isolation)
            isAtEnd = chunk == nil
            return Data(try encoder.encode(chunk.map(Array.init) ?? [], isLast: chunk == nil, named: name))
        }
    }
}

/// Encodes content in pieces of any size.
struct ContentEncoder {
    /// The number of bytes that a base64 line of 76 characters encodes (RFC 2045 §6.8).
    static let bytesPerLine = 57
    private static let lineLength = 76

    private let encoding: ContentEncoding
    /// Bytes that cannot be encoded without the following bytes.
    private var held: [UInt8] = []
    private var offset: Int64 = 0
    /// The number of characters in the last line so far.
    private var column = 0

    init(_ encoding: ContentEncoding) {
        self.encoding = encoding
    }

    /// Encodes the next bytes of the content. `isLast` says whether these are the last bytes. Throws
    /// ``CommandFailure`` for a byte that the encoding cannot represent. Its message names the part by `name`.
    mutating func encode(_ bytes: [UInt8], isLast: Bool, named name: String) throws -> [UInt8] {
        defer { offset += Int64(bytes.count) }
        switch encoding {
        case .eightBit, .binary: return bytes
        case .sevenBit:
            if let index = bytes.firstIndex(where: { $0 > 0x7F }) {
                throw CommandFailure.input(
                    "The part \(name)",
                    "is not 7bit: byte \(offset + Int64(index)) is not ASCII. Use encoder=quoted-printable or base64.")
            }
            return bytes
        case .base64: return base64(bytes, isLast: isLast)
        case .quotedPrintable: return quotedPrintable(bytes, isLast: isLast)
        }
    }

    private mutating func base64(_ bytes: [UInt8], isLast: Bool) -> [UInt8] {
        held += bytes
        // A full line waits for the next byte, because the last line has no line break.
        let count = isLast ? held.count : held.count / Self.bytesPerLine * Self.bytesPerLine
        var result: [UInt8] = []
        for start in stride(from: 0, to: count, by: Self.bytesPerLine) {
            if column > 0 { result += [0x0D, 0x0A] }
            let line = Data(held[start..<min(start + Self.bytesPerLine, count)]).base64EncodedData()
            result += line
            column = line.count
        }
        held.removeFirst(count)
        return result
    }

    private mutating func quotedPrintable(_ bytes: [UInt8], isLast: Bool) -> [UInt8] {
        held += bytes
        var result: [UInt8] = []
        var index = 0
        // The encoding of a byte depends on up to three following bytes.
        while index < held.count, isLast || index + 4 <= held.count {
            let byte = held[index]
            if isLineEnd(at: index) {
                result += [0x0D, 0x0A]
                column = 0
                index += 2
                continue
            }
            let isBlank = byte == 0x20 || byte == 0x09
            let isPlain = isBlank ? !isLineEnd(at: index + 1) : (0x21...0x7E).contains(byte) && byte != 0x3D
            let text = isPlain ? [byte] : Array(String(format: "=%02X", byte).utf8)
            let end = column + text.count
            // The last column is for a soft line break, unless the line ends there (RFC 2045 §6.7, rule 5).
            if end > Self.lineLength || end == Self.lineLength && !isLineEnd(at: index + 1) {
                result += [0x3D, 0x0D, 0x0A]
                column = 0
            }
            result += text
            column += text.count
            index += 1
        }
        held.removeFirst(index)
        return result
    }

    /// Whether a line break, or the end of the content, is at an index of the held bytes.
    private func isLineEnd(at index: Int) -> Bool {
        index >= held.count || held[index...].starts(with: [0x0D, 0x0A])
    }
}
