import Foundation
import PostcardDoctor
import PostcardForm
import Testing

@Suite struct DamagedFileTests {
    private static func codes(_ bytes: [UInt8], _ type: String, _ filename: String) -> [FormProblem.Code] {
        let request = SampleRequest([.file("file", filename, type, bytes)])
        return Explanation(contentType: request.contentTypeValue, body: request.body).problems.map(\.code)
    }

    @Test(arguments: DamagedFile.formats.indices)
    func `each damage of a file is one finding, and an intact file has none`(format: Int) {
        let format = DamagedFile.formats[format]
        for seed in 0..<5 {
            let file = format.file(DamagedFile.data(3000 + 700 * seed, seed: UInt64(seed)))
            #expect(Self.codes(file, format.type, format.filename) == [], "\(format.name), seed \(seed)")
            for damage in DamagedFile.damages {
                let codes = Self.codes(damage.apply(file), format.type, format.filename)
                #expect(codes == [damage.code], "\(format.name), \(damage.name), seed \(seed)")
            }
        }
    }

    @Test(arguments: [
        ("application/octet-stream", "a.png"), ("image/png", "blob"), ("application/octet-stream", "blob"),
    ])
    func `the type, the filename or the first bytes alone show that it is no text`(type: String, filename: String) {
        let text = Array(String(decoding: Picture.png, as: UTF8.self).utf8)
        #expect(Self.codes(text, type, filename) == [.fileDecodedAsText])
    }

    /// The first bytes of a PNG after a conversion of its line breaks.
    private static let starts: [[UInt8]] = [
        [0x89, 0x50, 0x4E, 0x47, 0x0A, 0x1A, 0x0A], [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0D, 0x0A, 0x1A, 0x0D, 0x0A],
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0D, 0x0A],
    ]

    @Test(arguments: starts) func `a PNG shows conversions of line breaks`(start: [UInt8]) {
        #expect(Self.codes(start + Picture.png.dropFirst(8), "image/png", "a.png") == [.convertedLineBreaks])
    }

    @Test(arguments: IntactFile.all.indices) func `a file that only looks damaged has no finding`(index: Int) {
        let file = IntactFile.all[index]
        #expect(Self.codes(file.bytes, file.type, file.filename) == [], "\(file.name)")
    }

    /// A CR and LF in compressed data, near an index.
    private static func withPair(at index: Int) -> [UInt8] {
        var data = IntactFile.data
        data.replaceSubrange(index..<(index + 2), with: [13, 10])
        return data
    }

    @Test(arguments: DamagedFile.formats.indices.filter { ![0, 9].contains($0) }, [600, 3000, 8500])
    func `a CR that is missing before an LF shows in the lengths of a file`(format: Int, place: Int) {
        let format = DamagedFile.formats[format]
        let file = format.file(Self.withPair(at: place))
        #expect(Self.codes(file, format.type, format.filename) == [], "\(format.name)")
        #expect(
            Self.codes(Self.withoutCR(file), format.type, format.filename) == [.convertedLineBreaks], "\(format.name)")
    }

    private static func withoutCR(_ file: [UInt8]) -> [UInt8] {
        file.indices.filter { file[$0] != 13 || $0 + 1 == file.count || file[$0 + 1] != 10 }.map { file[$0] }
    }

    @Test func `CRs that are missing in a box before another show in the place of that`() {
        var data = Self.withPair(at: 700)
        data.replaceSubrange(4000..<4006, with: [13, 10, 13, 10, 13, 10])
        let film = DamagedFile.boxes("isom", data) + DamagedFile.box("moov", DamagedFile.box("free", []))
        #expect(Self.codes(film, "video/mp4", "a.mp4") == [])
        #expect(Self.codes(Self.withoutCR(film), "video/mp4", "a.mp4") == [.convertedLineBreaks])
    }

    @Test func `a text of one letter is no base64 and no hexadecimal`() {
        #expect(Self.codes([UInt8](repeating: 0x41, count: 500), "image/jpeg", "a.jpg") == [.contentContradictsType])
    }

    @Test func `a line break before a PDF is a warning, and no fix deletes it`() throws {
        let request = SampleRequest([
            .file("file", "blob", "application/octet-stream", Array("\n%PDF-1.4\n".utf8) + IntactFile.data)
        ])
        let problems = Explanation(contentType: request.contentTypeValue, body: request.body).problems
        let found = try #require(problems.first)
        #expect(problems.count == 1 && found.code == .extraLineBreakBeforeContent)
        #expect(found.severity == .warning)
    }

    struct TextPart: Sendable {
        let letters: Int
        let rest: [UInt8]
        /// The offset of the first bytes that are not UTF-8.
        let malformed: Int?
    }

    @Test(arguments: [
        TextPart(letters: 8000, rest: [0xE9], malformed: 8000),
        TextPart(letters: 5000, rest: [0xE2, 0x82, 0x41], malformed: 5000),
        TextPart(letters: 4095, rest: [0xC3, 0xA9], malformed: nil),
        TextPart(letters: 5000, rest: [0xC3], malformed: 5000),
    ]) func `all of a text is read as UTF-8`(part: TextPart) {
        let text = [UInt8](repeating: 0x61, count: part.letters) + part.rest
        let request = SampleRequest([
            .init(header: [#"Content-Disposition: form-data; name="a""#], content: text)
        ])
        let start = request.body.count - text.count - "\r\n--\(SampleRequest.boundary)--\r\n".utf8.count
        let problems = Explanation(contentType: request.contentTypeValue, body: request.body).problems
        #expect(problems.map(\.code) == (part.malformed == nil ? [] : [.textNotUTF8]))
        #expect(problems.first?.offset == part.malformed.map { Int64(start + $0) })
    }

    @Test(arguments: DamagedFile.formats.indices)
    func `a receiver with rules refuses the damage that the first bytes prove`(format: Int) throws {
        let format = DamagedFile.formats[format]
        let rules = try FormRules(json: Data(#"{"files": {"file": {"types": ["\#(format.type)"]}}}"#.utf8))
        let file = format.file(DamagedFile.data(4000, seed: 9))
        func problem(_ bytes: [UInt8]) throws -> FormProblem.Code? {
            let request = SampleRequest([.file("file", format.filename, format.type, bytes)])
            var parser = try CheckedFormParser(
                contentType: request.contentTypeValue, limits: FormLimits(), rules: rules)
            var position = 0
            do {
                while try parser.nextEvent(in: request.body.span.bytes, at: &position) != nil {}
                return nil
            } catch {
                return error.code
            }
        }
        #expect(try problem(file) == nil)
        for damage in DamagedFile.damages {
            let damaged = damage.apply(file)
            // Numbers that make damage likely are no reason to refuse a file.
            let isProven = MediaType.forFirstBytes(damaged) != MediaType.forFirstBytes(file)
            #expect(
                try problem(damaged) == (isProven ? .fileContentNotAccepted : nil),
                "\(format.name), \(damage.name)")
        }
    }
}
