import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

extension FormReader {
    /// Reads to the end without waiting, in pieces of a size.
    func readAll(by size: Int = 7) throws -> [UInt8] {
        var body: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: size)
        while true {
            let count = try piece.withUnsafeMutableBytes { try read(into: $0) }
            if count == 0 { return body }
            body += piece[..<count]
        }
    }

    /// Reads to the end and waits for streams.
    func readAllWaiting(by size: Int = 7) async throws -> [UInt8] {
        var body: [UInt8] = []
        while try await prepare() { body += try readAll(by: size) }
        return body
    }
}

@Suite("The reader of a body")
struct FormReaderTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func form() throws -> MultipartForm {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append("초코", named: "name")
        form.append("", named: "empty")
        form.append(
            filesAt: [try folder.file("1.jpg", Array(1...40)), try folder.file("2.jpg", [])], named: "pictures")
        form.append(Data([1, 2, 3]), named: "bytes", filename: "b")
        return form
    }

    private func stream(_ chunks: [Data], length: Int64? = nil) -> FormStream {
        FormStream(length: length) {
            AsyncStream { continuation in
                chunks.forEach { continuation.yield($0) }
                continuation.finish()
            }
        }
    }

    @Test
    func `from every offset it gives the body's rest, in buffers of any size`() throws {
        let layout = try form().layout()
        let body = try layout.reader().readAll(by: 1000)
        #expect(layout.contentLength == Int64(body.count))
        for offset in 0...body.count {
            for size in [1, 13, 1000] {
                let reader = try layout.reader(from: Int64(offset))
                #expect(try reader.readAll(by: size) == Array(body[offset...]))
                #expect(reader.position == Int64(body.count))
            }
        }
    }

    @Test(arguments: [0, 60, 260])
    func `it says where the content of each part lies, from whatever offset it began`(offset: Int64) throws {
        let layout = try form().layout()
        let body = try layout.reader().readAll()
        let reader = try layout.reader(from: offset)
        _ = try reader.readAll()
        let contents = reader.contentRanges.map { Array(body[Int($0.lowerBound)..<Int($0.upperBound)]) }
        #expect(contents == [Array("초코".utf8), [], Array(1...40), [], [1, 2, 3]])
    }

    @Test(arguments: [-1, 10_000])
    func `offsets outside the body cannot be read from`(offset: Int64) throws {
        let layout = try form().layout()
        let error = #expect(throws: FormError.self) { try layout.reader(from: offset) }
        #expect(error?.code == .offsetUnreachable)
    }

    @Test
    func `streams are read as they come, from every offset where their length is known`() async throws {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append(stream([Data([1, 2]), Data(), Data([3])], length: 3), named: "a", filename: "a")
        form.append("between", named: "b")
        form.append(stream([Data([4]), Data([5, 6])]), named: "c", filename: nil)
        let layout = try form.layout()
        #expect(layout.contentLength == nil)
        #expect(layout.isReplayable)
        let body = try await layout.reader().readAllWaiting()
        let text = String(decoding: body, as: UTF8.self)
        #expect(text.contains("\r\n\r\n\u{1}\u{2}\u{3}\r\n--XX"))
        #expect(text.hasSuffix("\r\n\r\n\u{4}\u{5}\u{6}\r\n--XX--\r\n"))
        let unreachable = body.count - "\u{4}\u{5}\u{6}\r\n--XX--\r\n".utf8.count
        for offset in 0...unreachable {
            #expect(try await layout.reader(from: Int64(offset)).readAllWaiting() == Array(body[offset...]))
        }
        #expect(throws: FormError.self) { try layout.reader(from: Int64(unreachable + 1)) }
    }

    @Test
    func `a reader that waits for nothing says when a stream is next`() async throws {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append(stream([Data([1])]), named: "a", filename: nil)
        let reader = try form.layout().reader()
        #expect(!reader.needsPreparation)
        _ = try reader.readAll()
        #expect(reader.needsPreparation)
        #expect(try await reader.prepare())
        #expect(!reader.needsPreparation)
    }

    @Test(arguments: [2, 4])
    func `a stream that gives more or fewer bytes than promised is an error`(promised: Int64) async throws {
        var form = MultipartForm()
        form.append(stream([Data([1, 2]), Data([3])], length: promised), named: "a", filename: nil)
        let reader = try form.layout().reader()
        let error = await #expect(throws: FormError.self) { try await reader.readAllWaiting() }
        #expect(error?.code == .streamLength)
    }

    /// A stream's own failure.
    private struct Failure: Error {}

    @Test
    func `after an error the reader says the same again, and never goes on to a body that looks whole`() async throws {
        var form = MultipartForm()
        let chunks = AsyncThrowingStream<Data, any Error> { continuation in
            continuation.yield(Data([1]))
            continuation.finish(throwing: Failure())
        }
        form.append(FormStream(chunks), named: "a", filename: nil)
        let reader = try form.layout().reader()
        for _ in 0..<2 {
            await #expect(throws: Failure.self) { try await reader.readAllWaiting() }
        }
        #expect(try reader.readAll().isEmpty)
    }

    @Test
    func `a negative length stands for an unknown one, and one that no body can have is an error`() throws {
        var form = MultipartForm()
        form.append(stream([], length: -1), named: "a", filename: nil)
        #expect(try form.layout().contentLength == nil)
        form = MultipartForm()
        form.append(stream([], length: .max), named: "a", filename: nil)
        let error = #expect(throws: FormError.self) { try form.layout() }
        #expect(error?.code == .streamLength)
    }

    @Test
    func `a stream that can be read only once is read once`() async throws {
        var form = MultipartForm()
        let chunks = AsyncStream { continuation in
            continuation.yield(Data([1]))
            continuation.finish()
        }
        form.append(FormStream(chunks, length: 1), named: "a", filename: nil)
        let layout = try form.layout()
        #expect(!layout.isReplayable)
        #expect(try await layout.reader().readAllWaiting().count == Int(layout.contentLength ?? 0))
        let second = try layout.reader()
        let error = await #expect(throws: FormError.self) { try await second.readAllWaiting() }
        #expect(error?.code == .streamConsumed)
    }
}

@Suite struct FormSliceTests {
    @Test func `a slice gives its bytes from any offset, and says where parts lie in it`() throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append("초코", named: "name")
        form.append(
            filesAt: [try folder.file("1.jpg", Array(1...40)), try folder.file("2.jpg", [])], named: "pictures")
        let layout = try form.layout()
        let whole = try layout.reader()
        let body = try whole.readAll(by: 1000)
        for start in 0...body.count {
            for end in start...body.count {
                let slice = layout.slice(Int64(start)..<Int64(end), contentType: "a/b")
                #expect(slice.contentLength == Int64(end - start) && slice.contentType == "a/b")
                let offset = (end - start) / 2
                let reader = try slice.reader(from: Int64(offset))
                #expect(try reader.readAll(by: 13) == Array(body[(start + offset)..<end]))
                #expect(reader.isAtEnd && !reader.needsPreparation && reader.position == slice.contentLength)
                for (part, known) in zip(reader.contentRanges, whole.contentRanges) {
                    #expect(part.lowerBound + Int64(start) == known.lowerBound)
                }
            }
        }
        #expect(throws: FormError.self) { try layout.slice(0..<5).reader(from: 6) }
    }

    @Test func `a file that is no longer what it was is found without reading`() throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm()
        form.append(fileAt: try folder.file("1.jpg", Array(1...40)), named: "picture")
        let layout = try form.layout()
        try layout.checkFiles()
        _ = try folder.file("1.jpg", Array(1...41))
        let error = #expect(throws: FormError.self) { try layout.checkFiles() }
        #expect(error?.partIndex == 0)
    }
}
