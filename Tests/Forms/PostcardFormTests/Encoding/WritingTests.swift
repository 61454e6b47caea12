import Foundation
import PostcardForm
import PostcardTestSupport
import SystemPackage
import Testing

@Suite("Writing a body")
struct WritingTests {
    private let folder: TemporaryFolder
    private let layout: FormLayout
    private let body: [UInt8]

    init() throws {
        folder = try TemporaryFolder()
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(
            fileAt: try folder.file("a.jpg", (0..<1000).map { UInt8(truncatingIfNeeded: $0) }), named: "picture")
        layout = try form.layout()
        body = try layout.reader().readAll()
    }

    @Test
    func `in memory, up to the bytes that may be held`() async throws {
        #expect(try await layout.data() == Data(body))
        #expect(try await layout.data(maximumBytes: body.count) == Data(body))
        let error = await #expect(throws: FormError.self) { try await layout.data(maximumBytes: body.count - 1) }
        #expect(error?.code == .bodyTooLarge)
    }

    @Test(arguments: [1, 100, 5000])
    func `in chunks of a size`(size: Int) async throws {
        var chunks: [Data] = []
        for try await chunk in layout.chunks(of: size) { chunks.append(chunk) }
        #expect(Array(chunks.joined()) == body)
        #expect(chunks.dropLast().allSatisfy { $0.count == size })
    }

    @Test
    func `to a file descriptor`() async throws {
        let file = folder.url.appending(path: "body")
        let descriptor = try FileDescriptor.open(
            FilePath(file.path), .writeOnly, options: .create, permissions: .ownerReadWrite)
        defer { try? descriptor.close() }
        #expect(try await layout.write(to: descriptor) == Int64(body.count))
        #expect(try Data(contentsOf: file) == Data(body))
    }
}
