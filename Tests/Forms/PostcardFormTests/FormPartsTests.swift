import Foundation
import PostcardForm
import Synchronization
import Testing

@Suite("The parts of a form that is coming in")
struct FormPartsTests {
    private static let contentType = "multipart/form-data; boundary=XX"

    private static let form = Array(
        body(
            "--XX", #"Content-Disposition: form-data; name="a""#, "", "초코", "--XX",
            #"Content-Disposition: form-data; name="b"; filename="b.jpg""#, "", "\r\n--X\r\n--XXY", "--XX",
            #"Content-Disposition: form-data; name="c""#, "", "", "--XX--", ""
        ).utf8)

    /// A body in chunks of a size, that counts how many were asked for.
    private final class Chunks<Chunk: FormChunk>: AsyncSequence, AsyncIteratorProtocol, Sendable {
        private let chunks: [Chunk]
        private let asked = Mutex(0)

        init(_ chunks: [Chunk]) {
            self.chunks = chunks
        }

        var count: Int { asked.withLock { $0 } }

        func makeAsyncIterator() -> Chunks { self }

        func next() async throws -> Chunk? {
            let index = asked.withLock { asked in
                defer { asked += 1 }
                return asked
            }
            return index < chunks.count ? chunks[index] : nil
        }
    }

    private static func chunks(of size: Int) -> [ArraySlice<UInt8>] {
        stride(from: 0, to: form.count, by: size).map { form[$0..<min($0 + size, form.count)] }
    }

    @Test(arguments: [1, 2, 7, 50, 1000])
    func `each is read in pieces, however the body is cut`(size: Int) async throws {
        let slices = Self.chunks(of: size)
        #expect(try await contents(of: Chunks(slices)) == ["a": "초코", "b": "\r\n--X\r\n--XXY", "c": ""])
        #expect(
            try await contents(of: Chunks(slices.map { Data($0) })) == ["a": "초코", "b": "\r\n--X\r\n--XXY", "c": ""])
    }

    private func contents<Chunk>(of chunks: Chunks<Chunk>) async throws -> [String: String] {
        var contents: [String: String] = [:]
        for try await part in try FormParts(of: chunks, contentType: Self.contentType) {
            var content: [UInt8] = []
            for try await piece in part {
                piece.withFormChunkBytes { $0.withUnsafeBytes { content += $0 } }
            }
            contents[part.header.name] = String(decoding: content, as: UTF8.self)
        }
        return contents
    }

    @Test
    func `what is not read of a part is passed over`() async throws {
        var names: [String] = []
        for try await part in try FormParts(of: Chunks(Self.chunks(of: 5)), contentType: Self.contentType) {
            names.append(part.header.name)
            guard part.header.isFile else { continue }
            var pieces = part.makeAsyncIterator()
            _ = try await pieces.next()
        }
        #expect(names == ["a", "b", "c"])
    }

    @Test
    func `a part that is read too late says so`() async throws {
        var parts = try FormParts(of: Chunks(Self.chunks(of: 5)), contentType: Self.contentType).makeAsyncIterator()
        let first = try #require(try await parts.next())
        _ = try await parts.next()
        let error = await #expect(throws: FormError.self) { try await first.collect(upTo: 100) }
        #expect(error?.code == .partPassed && error?.partIndex == 0)
    }

    @Test
    func `the body is asked for no more than is read of it`() async throws {
        let chunks = Chunks(Self.chunks(of: 1))
        var parts = try FormParts(of: chunks, contentType: Self.contentType).makeAsyncIterator()
        #expect(chunks.count == 0)
        let part = try #require(try await parts.next())
        let header = chunks.count
        #expect(header == Int(part.header.offset) + "Content-Disposition: form-data; name=\"a\"\r\n\r\n".utf8.count)
        var pieces = part.makeAsyncIterator()
        _ = try await pieces.next()
        #expect(chunks.count == header + 1)
    }

    @Test(arguments: [6, 5])
    func `more than may be held is an error, at the limit and one more`(maximumBytes: Int) async throws {
        var parts = try FormParts(of: Chunks(Self.chunks(of: 4)), contentType: Self.contentType).makeAsyncIterator()
        let part = try #require(try await parts.next())
        if maximumBytes == 6 {
            #expect(try await part.collect(upTo: maximumBytes) == Array("초코".utf8))
        } else {
            let problem = await #expect(throws: FormProblem.self) { try await part.collect(upTo: maximumBytes) }
            #expect(problem?.code == .fieldTooLarge)
        }
    }

    @Test(arguments: 0..<form.count - 2)
    func `a form that breaks off is an error, at whatever byte`(length: Int) async throws {
        let chunks = Chunks([Self.form[..<length]])
        await #expect(throws: FormProblem.self) { try await contents(of: chunks) }
    }
}
