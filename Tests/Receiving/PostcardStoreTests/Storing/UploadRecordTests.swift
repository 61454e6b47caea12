import Foundation
import PostcardTestSupport
import Testing

@testable import PostcardStore

struct UploadRecordTests {
    private static let texts = [
        "", "초코", "🍊", "\"\\/", "\u{0}\u{1}\u{8}\t\n\u{B}\u{C}\r\u{1F}\u{7F}", "\u{2028}\u{FFFD}", "<b>&'",
    ]

    @Test(arguments: texts)
    func `a record's JSON means what an encoder writes, and gives the record again`(text: String) throws {
        let id = try #require(UploadID("01kz5dr1c10123456789abcdef"))
        let file = UploadRecord.File(
            name: text, filename: text, contentType: text, size: .max, sha256: text, url: "/uploads/\(id)/files/0")
        let unchosen = UploadRecord.File(
            name: text, filename: "", contentType: text, size: 0, sha256: text, url: "/uploads/\(id)/files/1")
        let inFolder = UploadRecord.File(
            name: text, filename: text, contentType: text, detectedType: text, damage: text, sentFilename: "a/" + text,
            size: 0, sha256: text, url: "/uploads/\(id)/files/2")
        #expect([file, unchosen, inFolder].map(\.isChosen) == [true, false, true])
        let fields = [
            UploadRecord.Field(name: text, value: text), UploadRecord.Field(name: "", value: text),
            UploadRecord.Field(name: "", value: text, bytes: Data(repeating: 0xE9, count: 100_000)),
        ]
        for (fields, files) in [(fields, [file, unchosen, inFolder]), ([], [])] {
            let record = UploadRecord(
                id: id, received: Date(timeIntervalSince1970: 1_795_176_000), fields: fields, files: files)
            let encoder = JSONEncoder()
            encoder.dateEncodingStrategy = .iso8601
            // The order of the members differs.
            #expect(try Self.members(of: record.json()) == Self.members(of: encoder.encode(record)))
            #expect(try UploadRecord(json: record.json()) == record)
        }
    }

    @Test(
        arguments: [
            (#"[{"field":0},{"file":0},{"field":1}]"#, true), (#"[{"file":0},{"field":0},{"field":1}]"#, true),
            (#"[{"field":0},{"field":1}]"#, false), (#"[{"field":1},{"field":0},{"file":0}]"#, false),
            (#"[{"field":0},{"field":0},{"file":0}]"#, false), (#"[{"field":0},{"field":1},{"file":1}]"#, false),
            (#"[{"field":0},{"field":1},{"file":-1}]"#, false),
            (#"[{"field":0},{"field":1},{"file":0},{"file":0}]"#, false),
        ])
    func `a record whose parts do not name each field and file once is not decoded`(parts: String, isWhole: Bool) throws
    {
        let id = try #require(UploadID("01kz5dr1c10123456789abcdef"))
        let field = UploadRecord.Field(name: "f", value: "v")
        let file = UploadRecord.File(
            name: "f", filename: "f", contentType: "text/plain", size: 1, sha256: "", url: "/uploads/\(id)/files/0")
        let record = UploadRecord(
            id: id, received: Date(timeIntervalSince1970: 1_795_176_000), fields: [field, field], files: [file])
        let written = String(decoding: record.json(), as: UTF8.self)
        let json = written.replacing(#"[{"field":0},{"field":1},{"file":0}]"#, with: parts)
        if isWhole {
            #expect(try UploadRecord(json: Data(json.utf8)).parts.count == 3)
        } else {
            #expect(throws: DecodingError.self) { try UploadRecord(json: Data(json.utf8)) }
        }
    }

    private static func members(of json: Data) throws -> NSDictionary {
        try #require(JSONSerialization.jsonObject(with: json) as? NSDictionary)
    }

    /// Scalars that JSON, or a reader of it, may treat apart, and any others.
    private static func text(of length: Int, using generator: inout some RandomNumberGenerator) -> String {
        let special: [ClosedRange<UInt32>] = [
            0...0x1F, 0x22...0x22, 0x5C...0x5C, 0x7F...0x9F, 0x2028...0x2029, 0xD7FF...0xD7FF, 0xE000...0xE000,
            0xFEFF...0xFEFF, 0xFFFD...0xFFFF, 0x10FFFF...0x10FFFF,
        ]
        var scalars = String.UnicodeScalarView()
        // Counting the scalars of a view takes as long as they are many.
        var count = 0
        while count < length {
            let range = Bool.random(using: &generator) ? special.randomElement(using: &generator) : nil
            // What is half of a surrogate pair is no scalar, and so in no string.
            guard let scalar = Unicode.Scalar(UInt32.random(in: range ?? 0...0x10FFFF, using: &generator)) else {
                continue
            }
            scalars.append(scalar)
            count += 1
        }
        return String(scalars)
    }

    @Test func `whatever the text is, a decoder reads from a record's JSON what was written, also piece by piece`()
        throws
    {
        var generator = SeededGenerator(seed: 5)
        let id = try #require(UploadID("01kz5dr1c10123456789abcdef"))
        var texts = (0..<300).map { Self.text(of: $0 % 40, using: &generator) }
        // Longer than the pieces in which it is written, and cut by them in the middle of a scalar.
        texts += [100_000, 70_001].map { Self.text(of: $0, using: &generator) }
        texts += (0..<4).map { String(repeating: "x", count: 65_530 + $0) + "초\u{1}🍊" }
        for text in texts {
            let record = UploadRecord(
                id: id, received: Date(timeIntervalSince1970: 1_795_176_000),
                fields: [UploadRecord.Field(name: text, value: text)], files: [])
            let json = record.json()
            let read = try UploadRecord(json: json)
            #expect(read.fields.first?.value.unicodeScalars.elementsEqual(text.unicodeScalars) == true)
            let written = Pieces()
            _ = record.writeJSON { written.bytes += $0 }
            #expect(Data(written.bytes) == json)
            #expect(written.bytes.count { $0 < 0x20 } == 0)
        }
    }

    private final class Pieces {
        var bytes: [UInt8] = []
    }
}
