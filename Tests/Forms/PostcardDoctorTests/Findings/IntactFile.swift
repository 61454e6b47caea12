import PostcardTestSupport

/// A file that looks like a damaged one, and is not.
struct IntactFile: Sendable {
    let name: String
    let type: String
    let filename: String
    let bytes: [UInt8]

    private init(_ name: String, _ type: String, _ filename: String, _ pieces: [UInt8]...) {
        (self.name, self.type, self.filename, bytes) = (name, type, filename, pieces.flatMap(\.self))
    }

    static let all: [IntactFile] = texts + pictures + archives + documents

    /// Compressed data in which no LF follows a CR.
    static let data: [UInt8] = {
        var data = DamagedFile.data(9000, seed: 3)
        for index in 1..<data.count where data[index] == 10 && data[index - 1] == 13 { data[index] = 1 }
        return data
    }()

    private static func ascii(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func repeated(_ piece: [UInt8], _ count: Int) -> [UInt8] {
        [[UInt8]](repeating: piece, count: count).flatMap(\.self)
    }
}

// MARK: - Texts

extension IntactFile {
    private static let texts: [IntactFile] = [
        IntactFile("U+FFFD in a text", "text/plain", "a.txt", ascii("a \u{FFFD}\u{FFFD}\u{FFFD}JFIF\0\0\0")),
        IntactFile("U+FFFD in a drawing", "image/svg+xml", "a.svg", ascii("<svg><text>\u{FFFD}</text></svg>")),
        IntactFile("UTF-8 twice in a table", "text/csv", "a.csv", ascii("cafÃ©,Ã¼ber\r\n")),
        IntactFile("a text in Latin-1", "text/plain; charset=iso-8859-1", "a.txt", ascii("caf"), [0xE9, 0x0A]),
        IntactFile(
            "a certificate", "application/octet-stream", "a.pem", ascii("-----BEGIN CERTIFICATE-----\n"),
            repeated(ascii("MIIB"), 90), ascii("\n-----END CERTIFICATE-----\n")),
        IntactFile(
            "JSON with escapes", "application/json", "a.json",
            ascii(#"{"picture": "\u0089PNG\r\n\u001a\n\u0000", "bytes": [137, 80, 78, 71]}"#)),
        IntactFile(
            "a picture's base64 as a text", "text/plain", "a.b64", repeated(ascii("iVBORw0KGgoAAAANSUhEUgAA"), 9)),
        IntactFile(
            "a picture's digits as a text", "text/plain", "a.hex", ascii("89504e470d0a1a0a"), repeated([0x30], 200)),
        IntactFile(
            "a dump", "application/octet-stream", "dump", ascii("00000000: 8950 4e47 0d0a 1a0a  .PNG....\n")),
        IntactFile(
            "a dump of digits", "application/octet-stream", "dump",
            repeated(ascii("89504e470d0a1a0a0000000d494844520000000100000001080600000\n"), 6)),
        IntactFile(
            "events", "application/octet-stream", "events", ascii("data: hello; world, all\ndata: again\n\n")),
        IntactFile("random bytes", "application/octet-stream", "a.bin", DamagedFile.data(5000, seed: 1)),
    ]
}

// MARK: - Pictures

extension IntactFile {
    private static let pictures: [IntactFile] = [
        IntactFile("a GIF with short pieces", "image/gif", "a.gif", DamagedFile.gif(data, pieceLength: 200)),
        IntactFile(
            "a GIF with pieces of different lengths", "image/gif", "a.gif",
            DamagedFile.gif(Array(data.prefix(510)), end: [100]), Array(data.prefix(100)), [200],
            Array(data.prefix(200)), [0, 0x3B]),
        IntactFile(
            "zeros before the end of a GIF", "image/gif", "a.gif", DamagedFile.gif(data, end: [0, 0, 0, 0x3B])),
        IntactFile(
            "a WebP without its last byte", "image/webp", "a.webp",
            Array(DamagedFile.webP(Array(data.dropLast())).dropLast())),
        IntactFile(
            "a trailer of a camera", "image/heic", "a.heic", DamagedFile.boxes("heic", data),
            [0, 0, 1, 0x0A, 0x0E, 0, 0, 0, 0x90, 0x80, 1, 2], ascii("SEFT")),
        IntactFile(
            "ID3v1 behind a song", "audio/mp4", "a.m4a", DamagedFile.boxes("M4A ", data),
            ascii("TAGTitle of a song"), repeated([0], 110)),
        IntactFile(
            "a box that is too large", "video/mp4", "a.mp4", DamagedFile.boxes("isom", data), [0, 0, 0, 1],
            ascii("free"), repeated([0xFF], 8)),
        IntactFile(
            "CR in a table of a JPEG", "image/jpeg", "a.jpg",
            DamagedFile.jpeg(data, segments: table(repeated([13], 64)))),
        IntactFile(
            "FF and SO in a table of a JPEG", "image/jpeg", "a.jpg",
            DamagedFile.jpeg(data.prefix(600).filter { $0 != 13 }, segments: table(repeated([12, 14], 32)))),
        IntactFile(
            "LF CR in a text of a JPEG", "image/jpeg", "a.jpg",
            DamagedFile.jpeg(data, segments: [0xFF, 0xFE, 0, 206] + repeated(ascii("line\n\r"), 34))),
        IntactFile(
            "a pattern that is repeated in a JPEG", "image/jpeg", "a.jpg",
            DamagedFile.jpeg(repeated([0x8A, 0x0A, 0x0D, 0x28, 0x0E], 900))),
    ]

    private static func table(_ content: [UInt8]) -> [UInt8] { [0xFF, 0xDB, 0, 67, 0] + content }
}

// MARK: - Archives and documents

extension IntactFile {
    private static let archives: [IntactFile] = [
        IntactFile(
            "an archive whose directory is elsewhere", "application/zip", "a.zip",
            DamagedFile.archive(data, wrongBy: 3)),
        IntactFile(
            "an archive with sizes that are too large", "application/zip", "a.zip", ascii("PK\u{3}\u{4}"), data,
            ascii("PK\u{5}\u{6}"), [0, 0, 0, 0, 1, 0, 1, 0], repeated([0xFE, 0xFF, 0xFF, 0xFF], 2), [0, 0]),
        IntactFile(
            "zeros behind an archive", "application/zip", "a.zip", DamagedFile.archive(data),
            repeated([0], 400_000)),
    ]

    private static let documents: [IntactFile] = [
        IntactFile(
            "a PDF of ASCII", "application/pdf", "a.pdf",
            ascii("%PDF-1.4\r\n1 0 obj\r\n<<>>\r\nendobj\r\nstartxref\r\n10\r\n%%EOF\r\n")),
        IntactFile(
            "a PDF whose table is elsewhere", "application/pdf", "a.pdf", DamagedFile.document(data, wrongBy: 2)),
        IntactFile(
            "a PDF with a place that is too large", "application/pdf", "a.pdf",
            ascii("%PDF-1.4\nxref\n0 1\nstartxref\n9223372036854775807\n%%EOF\n")),
        IntactFile(
            "a PDF in UTF-8", "application/pdf", "a.pdf",
            ascii("%PDF-1.4\n%µ¶\n1 0 obj\n<</Title (Café)>>\nendobj\nxref\n0 1\nstartxref\n99\n%%EOF\n")),
        IntactFile(
            "a PDF of LibreOffice", "application/pdf", "a.pdf",
            ascii("%PDF-1.6\n%äüöß\n1 0 obj\n<</Title (\u{1}é)>>\nendobj\nxref\n0 1\nstartxref\n9\n%%EOF\n")),
        IntactFile(
            "a PDF that was changed", "application/pdf", "a.pdf", DamagedFile.document(data),
            ascii("9 0 obj\n<<>>\nendobj\nstartxref\n\(DamagedFile.document(data).count)\n%%EOF\n")),
        IntactFile(
            "zeros behind a PDF", "application/pdf", "a.pdf", DamagedFile.document(data), repeated([0], 4096)),
    ]
}
