import Foundation
import PostcardServer
import Testing

struct UploadRecordTests {
    private static let texts = [
        "", "초코", "🍊", "\"\\/", "\u{0}\u{1}\u{8}\t\n\u{B}\u{C}\r\u{1F}\u{7F}", "\u{2028}\u{FFFD}", "<b>&'",
    ]

    @Test(arguments: texts)
    func `a record's JSON is what an encoder writes, and gives the record again`(text: String) throws {
        let id = try #require(UploadID("01kz5dr1c10123456789abcdef"))
        let file = UploadRecord.File(
            name: text, filename: text, contentType: text, size: .max, sha256: text, url: "/uploads/\(id)/files/0")
        let fields = [UploadRecord.Field(name: text, value: text), UploadRecord.Field(name: "", value: text)]
        for (fields, files) in [(fields, [file, file]), ([], [])] {
            let record = UploadRecord(
                id: id, received: Date(timeIntervalSince1970: 1_795_176_000), fields: fields, files: files)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            encoder.dateEncodingStrategy = .iso8601
            #expect(try record.json() == encoder.encode(record))
            #expect(try UploadRecord(json: record.json()) == record)
        }
    }
}
