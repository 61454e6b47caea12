import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("A file in a value")
struct FormFileTests {
    @Test
    func `other encoders and decoders say that they cannot carry it, and what can`() throws {
        let file = FormFile(Data([1]), filename: "a.jpg")
        let encodingError = try #require(throws: EncodingError.self) { try JSONEncoder().encode(["a": file]) }
        guard case .invalidValue(_, let context) = encodingError else { throw encodingError }
        #expect(context.debugDescription.contains("FormEncoder"))
        #expect(context.codingPath.map(\.stringValue) == ["a"])
        let decodingError = try #require(throws: DecodingError.self) {
            try JSONDecoder().decode([String: FormFile].self, from: Data(#"{"a": {}}"#.utf8))
        }
        guard case .dataCorrupted(let context) = decodingError else { throw decodingError }
        #expect(context.debugDescription.contains("FormDecoder"))
    }

    @Test
    func `a file on disk is named for the last component of its path, unless it is named`() {
        let url = URL(filePath: "/photos/초코.jpg")
        #expect(FormFile(at: url).filename == "초코.jpg")
        #expect(FormFile(at: url, filename: "a.jpg").filename == "a.jpg")
    }

    @Test(arguments: [false, true])
    func `it is moved to where it stays, from memory and from the disk, and over nothing`(isOnDisk: Bool) async throws {
        let folder = try TemporaryFolder()
        let written = try folder.file("written", [1, 2, 3])
        let file = isOnDisk ? FormFile(at: written) : FormFile(Data([1, 2, 3]), filename: "a")
        let kept = written.deletingLastPathComponent().appending(path: "kept")
        try await file.move(to: kept)
        #expect(try Data(contentsOf: kept) == Data([1, 2, 3]))
        #expect(FileManager.default.fileExists(atPath: written.path) == !isOnDisk)
        let other = try folder.file("other", [4])
        let next = isOnDisk ? FormFile(at: other) : file
        await #expect(throws: (any Error).self) { try await next.move(to: kept) }
        #expect(try Data(contentsOf: kept) == Data([1, 2, 3]))
    }

    @Test func `its part keeps what is to be removed from it`() throws {
        var file = FormFile(Data([1]), filename: "a.jpg")
        file.metadata = .withoutLocation
        #expect(try MultipartForm(encoding: ["a": file]).parts.map(\.metadata) == [.withoutLocation])
    }

    @Test
    func `a type that is no media type is none`() throws {
        let body = """
            --XX\r
            Content-Disposition: form-data; name=a; filename=a\r
            Content-Type: picture\r
            \r
            \r
            --XX--
            """
        let form = try ReceivedForm(contentType: "multipart/form-data; boundary=XX", body: Data(body.utf8))
        let file = try #require(form.first(named: "a").flatMap { FormFile($0) })
        #expect(file == FormFile(Data(), filename: "a"))
    }

    @Test
    func `it codes itself where a type hands its coder on`() throws {
        struct Wrapper: Codable, Equatable {
            var file: FormFile

            init(file: FormFile) { self.file = file }
            init(from decoder: any Decoder) throws { file = try FormFile(from: decoder) }
            func encode(to encoder: any Encoder) throws { try file.encode(to: encoder) }
        }
        let value = ["a": Wrapper(file: FormFile(Data([1]), filename: "a.jpg", contentType: .jpeg))]
        let form = try ReceivedForm(sent: FormEncoder().encode(value))
        #expect(try FormDecoder().decode([String: Wrapper].self, from: form) == value)
    }
}
