import Foundation
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@Suite struct BodyObserverTests {
    /// Puts what it is told together again.
    private final class Journal: BodyObserver {
        struct Entry {
            let reader: Int
            let partIndex: Int
            let offset: Int64
            let bytes: [UInt8]
        }

        let entries = Mutex<[Entry]>([])
        let began = Mutex<[Int64]>([])
        let ended = Mutex<[Int]>([])

        func readerBegan(at offset: Int64) -> Int {
            began.withLock { began in
                began.append(offset)
                return began.count
            }
        }

        func reader(
            _ reader: Int, handsOut bytes: UnsafeRawBufferPointer, ofPart partIndex: Int, at offset: Int64
        ) {
            let entry = Entry(reader: reader, partIndex: partIndex, offset: offset, bytes: Array(bytes))
            entries.withLock { $0.append(entry) }
        }

        func readerEnded(_ reader: Int) {
            ended.withLock { $0.append(reader) }
        }
    }

    private static let contents: [[UInt8]] = [Array("초코".utf8), [], Array(0...99), Array(0..<60), [7]]

    private static func layout(in folder: TemporaryFolder) throws -> FormLayout {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append("", named: "empty")
        form.append(fileAt: try folder.file("a.bin", contents[2]), named: "file")
        let stream = FormStream(length: 60) {
            AsyncStream { continuation in
                for start in stride(from: 0, to: 60, by: 20) {
                    continuation.yield(Data(contents[3][start..<start + 20]))
                }
                continuation.finish()
            }
        }
        form.append(stream, named: "log", filename: "log.txt")
        form.append(Data([7]), named: "last", filename: "last")
        return try form.layout()
    }

    @Test(arguments: [1, 7, 1_000])
    func `every byte of every part's content is told where it lies`(size: Int) async throws {
        let folder = try TemporaryFolder()
        var layout = try Self.layout(in: folder)
        let length = try #require(layout.contentLength)
        let journal = Journal()
        layout.observer = journal
        for start in stride(from: 0, to: length, by: 5) {
            journal.entries.withLock { $0 = [] }
            let reader = try layout.reader(from: start)
            _ = try await reader.readAllWaiting(by: size)
            var contents: [[UInt8]] = Self.contents.map { Array(repeating: 0, count: $0.count) }
            for entry in journal.entries.withLock({ $0 }) {
                #expect(entry.reader == journal.began.withLock { $0.count })
                contents[entry.partIndex].replaceSubrange(
                    Int(entry.offset)..<Int(entry.offset) + entry.bytes.count, with: entry.bytes)
            }
            // What comes before the reader's beginning is not told of.
            for (index, range) in reader.contentRanges.enumerated() {
                let skipped = Int(min(max(start - range.lowerBound, 0), Int64(Self.contents[index].count)))
                #expect(contents[index][skipped...] == Self.contents[index][skipped...])
                #expect(contents[index][..<skipped].allSatisfy { $0 == 0 })
            }
        }
        let readers = journal.began.withLock { Array(1...$0.count) }
        #expect(journal.ended.withLock { $0 } == readers)
    }

    @Test func `a reader that is given up does not end`() throws {
        let folder = try TemporaryFolder()
        var layout = try Self.layout(in: folder)
        let journal = Journal()
        layout.observer = journal
        _ = try layout.reader().readAll()
        #expect(journal.ended.withLock { $0 }.isEmpty)
    }
}
