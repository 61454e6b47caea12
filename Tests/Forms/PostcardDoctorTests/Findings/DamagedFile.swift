import PostcardDoctor
import PostcardForm
import PostcardFoundation
import PostcardTestSupport

/// Files of formats that are no text, of compressed data that is random, and what programs do to them that take bytes
/// for text.
enum DamagedFile {
    static let formats: [Format] = [
        Format("a JPEG", "image/jpeg", "a.jpg") { jpeg($0) },
        Format("a PNG", "image/png", "a.png") { png($0) },
        Format("a GIF", "image/gif", "a.gif") { gif($0) },
        Format("a WebP", "image/webp", "a.webp") { webP($0) },
        Format("a HEIC photo", "image/heic", "a.heic") { boxes("heic", $0) },
        Format("a film", "video/mp4", "a.mp4") { boxes("isom", $0) },
        Format("a ZIP archive", "application/zip", "a.zip") { archive($0) },
        Format("a document", "application/vnd.oasis.opendocument.text", "a.docx") { archive($0) },
        Format("a PDF", "application/pdf", "a.pdf") { document($0, lineBreak: "\n") },
        Format("a PDF with CRLF", "application/pdf", "a.pdf") { document($0, lineBreak: "\r\n") },
    ]

    struct Format: Sendable {
        let name: String
        let type: String
        let filename: String
        /// The file around compressed data.
        let file: @Sendable ([UInt8]) -> [UInt8]

        init(_ name: String, _ type: String, _ filename: String, file: @escaping @Sendable ([UInt8]) -> [UInt8]) {
            (self.name, self.type, self.filename, self.file) = (name, type, filename, file)
        }
    }

    struct Damage: Sendable {
        let name: String
        let code: FormProblem.Code
        let apply: @Sendable ([UInt8]) -> [UInt8]

        init(_ name: String, _ code: FormProblem.Code, apply: @escaping @Sendable ([UInt8]) -> [UInt8]) {
            (self.name, self.code, self.apply) = (name, code, apply)
        }
    }

    static let damages: [Damage] = [
        Damage("decoded as UTF-8", .fileDecodedAsText) { Array(String(decoding: $0, as: UTF8.self).utf8) },
        Damage("decoded as Latin-1", .fileDecodedAsText) { Array(latin($0).utf8) },
        Damage("decoded as Windows-1252", .fileDecodedAsText) {
            Array(String(String.UnicodeScalarView($0.map { $0 == 0x80 ? "€" : Unicode.Scalar($0) })).utf8)
        },
        Damage("encoded as ASCII", .fileDecodedAsText) { $0.map { $0 < 0x80 ? $0 : UInt8(ascii: "?") } },
        Damage("LF as CRLF", .convertedLineBreaks) { $0.flatMap { $0 == 10 ? [13, 10] : [$0] } },
        Damage("base64", .base64Content) { base64($0) },
        Damage("base64 in lines", .base64Content) {
            let text = base64($0)
            return Array(
                stride(from: 0, to: text.count, by: 76).map { text[$0..<min($0 + 76, text.count)] }
                    .joined(separator: [13, 10]))
        },
        Damage("a data: URL", .base64Content) { Array("data:image/png;base64,".utf8) + base64($0) },
        Damage("hexadecimal", .hexadecimalContent) { Array($0.hexadecimal.utf8) },
        Damage("a string of JSON", .escapedContent) { file in
            let escaped = latin(file).unicodeScalars.map { scalar -> String in
                let digits = String(scalar.value, radix: 16)
                let isPlain = scalar.isASCII && scalar.value >= 0x20 && scalar != "\"" && scalar != "\\"
                return isPlain ? String(scalar) : "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
            return Array("\"\(escaped.joined())\"".utf8)
        },
        Damage("a list of numbers", .escapedContent) { Array("[\($0.map(String.init).joined(separator: ","))]".utf8) },
        Damage("bytes of Node.js", .escapedContent) {
            Array(#"{"type":"Buffer","data":[\#($0.map(String.init).joined(separator: ","))]}"#.utf8)
        },
        Damage("a description", .objectDescription) { Array("\($0.count) bytes".utf8) },
        Damage("a line break before it", .extraLineBreakBeforeContent) { [13, 10] + $0 },
        Damage("cut to its length in characters", .truncatedPicture) {
            Array($0.prefix(String(decoding: $0, as: UTF8.self).unicodeScalars.count))
        },
    ]

    private static func latin(_ bytes: [UInt8]) -> String {
        String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    private static func base64(_ bytes: [UInt8]) -> [UInt8] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        return stride(from: 0, to: bytes.count, by: 3).flatMap { start -> [UInt8] in
            let piece = bytes[start..<min(start + 3, bytes.count)]
            let bits = piece.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - piece.count))
            let digits = [18, 12, 6, 0].map { alphabet[bits >> $0 & 63] }
            return digits.prefix(piece.count + 1) + [UInt8](repeating: UInt8(ascii: "="), count: 3 - piece.count)
        }
    }
}

// MARK: - Formats

extension DamagedFile {
    static func data(_ count: Int, seed: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    private static func big(_ value: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    private static func little(_ value: Int) -> [UInt8] { big(value).reversed() }

    static func jpeg(_ data: [UInt8], segments: [UInt8] = []) -> [UInt8] {
        // A zero follows each FF of the pixels.
        Array(Picture.jpeg.prefix(2)) + segments + Array(Picture.jpeg.dropFirst(2).dropLast(9))
            + data.flatMap { $0 == 0xFF ? [0xFF, 0] : [$0] } + [0xFF, 0xD9]
    }

    private static func png(_ data: [UInt8]) -> [UInt8] {
        let pixels = big(data.count) + Array("IDAT".utf8) + data + [1, 2, 3, 4]
        return Array(Picture.png.dropLast(12)) + pixels + Array(Picture.png.suffix(12))
    }

    static func gif(_ data: [UInt8], pieceLength: Int = 255, end: [UInt8] = [0, 0x3B]) -> [UInt8] {
        let pieces = stride(from: 0, to: data.count, by: pieceLength).flatMap { start -> [UInt8] in
            let piece = data[start..<min(start + pieceLength, data.count)]
            return [UInt8(piece.count)] + piece
        }
        return Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF]
            + [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 8] + pieces + end
    }

    static func webP(_ data: [UInt8]) -> [UInt8] {
        let chunk = Array("VP8 ".utf8) + little(data.count) + data + [UInt8](repeating: 0, count: data.count % 2)
        return Array("RIFF".utf8) + little(chunk.count + 4) + Array("WEBP".utf8) + chunk
    }

    static func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
        big(content.count + 8) + Array(type.utf8) + content
    }

    static func boxes(_ brand: String, _ data: [UInt8]) -> [UInt8] {
        box("ftyp", Array(brand.utf8) + [0, 0, 0, 0] + Array(brand.utf8)) + box("free", []) + box("mdat", data)
    }

    static func archive(_ data: [UInt8], wrongBy wrong: Int = 0) -> [UInt8] {
        let size = little(data.count)
        let entry = [20, 0, 0, 0, 8, 0, 0xA1, 0x9C, 0x7A, 0x5D] + Array(data.prefix(4)) + size + size + [5, 0, 0, 0]
        let file = Array("PK\u{3}\u{4}".utf8) + entry + Array("a.bin".utf8) + data
        let directory =
            Array("PK\u{1}\u{2}".utf8) + [20, 0] + entry + [UInt8](repeating: 0, count: 14) + Array("a.bin".utf8)
        return file + directory + Array("PK\u{5}\u{6}".utf8) + [0, 0, 0, 0, 1, 0, 1, 0] + little(directory.count)
            + little(file.count + wrong) + [0, 0]
    }

    static func document(_ data: [UInt8], lineBreak: String = "\n", wrongBy wrong: Int = 0) -> [UInt8] {
        let stop = Array(lineBreak.utf8)
        func line(_ text: String) -> [UInt8] { Array(text.utf8) + stop }
        let comment: [UInt8] = [0x25, 0xE2, 0xE3, 0xCF, 0xD3]
        let head = line("%PDF-1.4") + comment + stop
        let object =
            line("1 0 obj") + line("<< /Length \(data.count) >>") + line("stream") + data + stop + line("endstream")
            + line("endobj")
        let digits = String(head.count)
        let place = String(repeating: "0", count: 10 - digits.count) + digits
        let blank = stop.count == 1 ? " " : ""
        return head + object + line("xref") + line("0 2") + line("0000000000 65535 f\(blank)")
            + line("\(place) 00000 n\(blank)") + line("trailer") + line("<< /Size 2 >>") + line("startxref")
            + line(String(head.count + object.count + wrong)) + line("%%EOF")
    }
}
