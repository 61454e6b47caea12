import Foundation
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@Suite struct BodyPaceTests {
    /// Allows 1, 2, 3 and so on bytes, and keeps account of them.
    private final class Pace: BodyPace {
        private let state = Mutex((next: 1, allowed: 0))

        /// What was allowed and not taken back.
        var allowed: Int { state.withLock { $0.allowed } }

        func allowance() async throws -> Int {
            state.withLock { state in
                defer { state.next += 1 }
                state.allowed += state.next
                return state.next
            }
        }

        func takeBack(_ count: Int) {
            state.withLock { $0.allowed -= count }
        }
    }

    private static func form(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: try folder.file("a.bin", Array(0...255)), named: "file")
        let stream = FormStream(length: nil) {
            AsyncStream { continuation in
                for number in UInt8(0)..<5 { continuation.yield(Data(repeating: number, count: 30)) }
                continuation.finish()
            }
        }
        form.append(stream, named: "log", filename: "log.txt")
        return form
    }

    @Test func `a paced reader gives the same bytes, and never more than it is allowed`() async throws {
        let folder = try TemporaryFolder()
        var layout = try Self.form(in: folder).layout()
        let body = try await layout.reader().readAllWaiting()
        let pace = Pace()
        layout.pace = pace
        let reader = try layout.reader()
        #expect(reader.needsPreparation)
        var paced: [UInt8] = []
        while try await reader.prepare() {
            #expect(!reader.needsPreparation)
            paced += try reader.readAll(by: 1_000)
            #expect(paced.count <= pace.allowed)
        }
        #expect(paced == body)
        #expect(!reader.needsPreparation)
    }

    @Test func `what a reader was allowed and did not hand out is taken back`() async throws {
        let folder = try TemporaryFolder()
        var layout = try Self.form(in: folder).layout()
        let pace = Pace()
        layout.pace = pace
        let count = try await layout.reader().readAllWaiting().count
        #expect(pace.allowed == count)
    }

    @Test func `a reader that may not go on fails for good`() async throws {
        struct Halt: BodyPace {
            func allowance() async throws -> Int { throw CancellationError() }
            func takeBack(_ count: Int) {}
        }
        let folder = try TemporaryFolder()
        var layout = try Self.form(in: folder).layout()
        layout.pace = Halt()
        let reader = try layout.reader()
        for _ in 0..<2 {
            await #expect(throws: CancellationError.self) { try await reader.prepare() }
            #expect(try reader.readAll().isEmpty)
        }
    }
}
