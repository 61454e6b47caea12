import Dispatch
import Foundation
import HTTPTypes
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardClient

@Suite(.timeLimit(.minutes(10))) struct ProgressTests {
    /// Keeps all progress that was reported.
    final class Journal: Sendable {
        private let entries = Mutex<[UploadProgress]>([])

        var all: [UploadProgress] { entries.withLock { $0 } }

        func note(_ progress: UploadProgress) {
            entries.withLock { $0.append(progress) }
        }
    }

    private static func form(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "이름")
        form.append(fileAt: try folder.file("a.jpg", size: 1_500_000), named: "images")
        form.append(fileAt: try folder.file("empty.jpg", size: 0), named: "images")
        form.append(fileAt: try folder.file("b.png", size: 700_001), named: "images")
        return form
    }

    @Test(arguments: Carrier.allCases)
    func `progress never falls and ends at the last byte, in all and for each part`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let journal = Journal()
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            try await UploadClient(transport: carrier.transport()).upload(form, to: server.url, progress: journal.note)
        }
        let all = journal.all
        let total = try #require(try form.layout().contentLength)
        for (earlier, later) in zip(all, all.dropFirst()) {
            #expect(later.bytesSent >= earlier.bytesSent)
            for (before, after) in zip(earlier.parts, later.parts) { #expect(after.bytesSent >= before.bytesSent) }
        }
        #expect(all.allSatisfy { $0.totalBytes == total && ($0.fraction ?? 2) <= 1 && $0.attempt == 1 })
        let last = try #require(all.last)
        #expect(last.bytesSent == total)
        #expect(last.fraction == 1)
        #expect(last.parts.map(\.name) == ["이름", "images", "images", "images"])
        #expect(last.parts.map(\.filename) == [nil, "a.jpg", "empty.jpg", "b.png"])
        #expect(last.parts.map(\.bytesSent) == [6, 1_500_000, 0, 700_001])
        #expect(last.parts.map(\.totalBytes) == [6, 1_500_000, 0, 700_001])
        #expect(last.parts.map(\.fraction) == [1, 1, 1, 1])
    }

    @Test(arguments: Carrier.allCases)
    func `a stream of unknown length has bytes, and a fraction when it has come to its end`(carrier: Carrier)
        async throws
    {
        var form = MultipartForm()
        form.append(SendingTests.stream(of: 30, length: nil), named: "log", filename: "log.txt")
        form.append("after", named: "after")
        let sent = form
        let journal = Journal()
        let body = try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            try await UploadClient(transport: carrier.transport()).upload(sent, to: server.url, progress: journal.note)
            return try #require(server.requests.whole.first).body
        }
        #expect(journal.all.dropLast().allSatisfy { $0.fraction == nil && $0.totalBytes == nil })
        #expect(journal.all.dropLast().allSatisfy { $0.timeRemaining == nil })
        let last = try #require(journal.all.last)
        #expect(last.bytesSent == Int64(body.count))
        #expect(last.fraction == 1)
        #expect(last.parts.map(\.bytesSent) == [300_000, 5])
        #expect(last.parts.map(\.totalBytes) == [300_000, 5])
        #expect(last.parts.map(\.fraction) == [1, 1])
    }

    /// Reports the same steps from several tasks at once.
    private struct Racing: UploadTransport {
        static let steps: Int64 = 500

        func send(
            _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
        ) async throws -> UploadResponse {
            await withDiscardingTaskGroup { group in
                for _ in 0..<4 {
                    group.addTask {
                        for step in 0...Self.steps {
                            report(.sent(bytes: step))
                        }
                    }
                }
            }
            return UploadResponse(status: .created, headerFields: HTTPFields(), body: Data())
        }
    }

    @Test func `steps from several tasks are reported in order, and none twice`() async throws {
        let journal = Journal()
        let url = try #require(URL(string: "http://example.org/"))
        var client = UploadClient(transport: Racing())
        client.reporting.progressInterval = .zero
        let response = try await client.upload(MultipartForm(), to: url) { progress in
            for _ in 0..<50 { sched_yield() }
            journal.note(progress)
        }
        // A slow closure misses outdated steps.
        let steps = journal.all.map(\.bytesSent)
        #expect(steps.first == 0 && steps.last == Racing.steps)
        #expect(zip(steps, steps.dropFirst()).allSatisfy { $0 < $1 })
        #expect(response.bytesSent == Racing.steps)
    }

    @Test func `progress is reported no more often than its interval, and always at the end of a part`() async throws {
        var form = MultipartForm(boundary: try Boundary("boundary"))
        form.append(Data(repeating: 1, count: 300), named: "first", filename: "first.bin")
        form.append(Data(repeating: 2, count: 300), named: "second", filename: "second.bin")
        let layout = try form.layout()
        let total = try #require(layout.contentLength)
        let journal = Journal()
        var client = UploadClient(transport: Scripted(chunkSizes: { 1 }))
        client.reporting.progressInterval = .seconds(3600)
        let url = try #require(URL(string: "http://example.org/"))
        try await client.upload(form, to: url, progress: journal.note)
        #expect(journal.all.count == 4)
        #expect(journal.all.first?.bytesSent == 0)
        #expect(journal.all.dropFirst().map { $0.parts.map(\.bytesSent) } == [[300, 0], [300, 300], [300, 300]])
        #expect(journal.all.last?.bytesSent == total)
    }

    @Test func `a step that came too soon is reported when nothing else moves`() async throws {
        let (reported, report) = AsyncStream.makeStream(of: Int64.self)
        /// Sends all but the last byte at once, and that one when the others were reported.
        struct Stalling: UploadTransport {
            let reported: AsyncStream<Int64>

            func send(
                _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
            ) async throws -> UploadResponse {
                let total = request.body?.contentLength ?? 0
                report(.sent(bytes: 0))
                report(.sent(bytes: total - 1))
                for await bytes in reported where bytes == total - 1 { break }
                report(.sent(bytes: total))
                return UploadResponse(status: .created, headerFields: HTTPFields(), body: Data())
            }
        }
        let url = try #require(URL(string: "http://example.org/"))
        let journal = Journal()
        try await UploadClient(transport: Stalling(reported: reported)).upload(MultipartForm(), to: url) { progress in
            journal.note(progress)
            report.yield(progress.bytesSent)
        }
        #expect(journal.all.count == 3)
    }

    @Test func `at every byte of a form the numbers of the parts follow from its offset`() async throws {
        var form = MultipartForm(boundary: try Boundary("boundary"))
        form.append("a", named: "first")
        form.append("", named: "empty")
        form.append(Data("bytes".utf8), named: "second", filename: "second.bin")
        let layout = try form.layout()
        let body = try await layout.bytes()
        let ranges = try #require(layout.contentRanges)
        for offset in 0...body.count {
            let progress = UploadProgress(
                attempt: 1, bytesSent: Int64(offset), totalBytes: Int64(body.count), parts: layout.parts,
                contentRanges: ranges)
            let expected = ranges.map { range in Int64((0..<offset).count { range.contains(Int64($0)) }) }
            #expect(progress.parts.map(\.bytesSent) == expected)
            #expect(progress.parts.map(\.hasBegun) == ranges.map { $0.lowerBound <= offset })
        }
    }

    /// A model of a screen, which only the main actor may touch.
    @MainActor private final class Screen {
        var fractions: [Double] = []

        func send(_ form: MultipartForm, to url: URL, by client: UploadClient) async throws {
            try await client.upload(form, to: url) { progress in
                MainActor.assertIsolated()
                self.fractions.append(progress.fraction ?? 0)
            }
        }
    }

    private actor Account {
        var fractions: [Double] = []

        func send(_ form: MultipartForm, to url: URL, by client: UploadClient) async throws {
            try await client.upload(form, to: url) { progress in
                self.assertIsolated()
                self.fractions.append(progress.fraction ?? 0)
            }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `progress arrives on the actor of the caller`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("201 Created") }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            let screen = Screen()
            try await screen.send(form, to: server.url, by: client)
            #expect(await screen.fractions.last == 1)
            let account = Account()
            try await account.send(form, to: server.url, by: client)
            #expect(await account.fractions.last == 1)
        }
    }

    @MainActor @Test func `a busy actor misses outdated progress, and the upload does not wait for it`() async throws {
        /// Reports many steps, from a thread that no task can keep from running, and says when it has reported the last.
        struct Steps: UploadTransport {
            let hasEnded = DispatchSemaphore(value: 0)

            func send(
                _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
            ) async throws -> UploadResponse {
                await withCheckedContinuation { continuation in
                    Thread.detachNewThread {
                        for step in 0..<10_000 { report(.sent(bytes: Int64(step))) }
                        hasEnded.signal()
                        continuation.resume()
                    }
                }
                return UploadResponse(status: .created, headerFields: HTTPFields(), body: Data())
            }
        }
        let transport = Steps()
        var client = UploadClient(transport: transport)
        client.reporting.progressInterval = .zero
        client.responses.acceptsEarly = true
        var form = MultipartForm()
        form.append(Data(count: 20_000), named: "image", filename: "a.jpg")
        var calls: [Int64] = []
        let url = try #require(URL(string: "http://example.org/"))
        try await client.upload(form, to: url) { progress in
            // The main actor is busy until the transport has sent everything.
            if calls.isEmpty { #expect(transport.hasEnded.wait(timeout: .now() + 60) == .success) }
            calls.append(progress.bytesSent)
        }
        // The first step, and the last of those that were missed.
        #expect(calls.count <= 3)
        #expect(calls.last == 9_999)
    }

    @Test func `each part of a progress has an identity of its own`() {
        let progress = UploadProgress.preview(0.75, filenames: ["a.jpg", "a.jpg"])
        #expect(progress.parts.map(\.id) == [0, 1])
        #expect(progress.parts.map(\.fraction) == [1, 0.5])
    }

    @Test func `a preview is what it says`() {
        let progress = UploadProgress.preview(0.5, bytesPerSecond: 250_000, attempt: 2)
        #expect(progress.fraction == 0.5 && progress.attempt == 2)
        #expect(progress.bytesPerSecond == 250_000)
        #expect(progress.timeRemaining == .seconds(2))
        #expect(UploadProgress.preview(1, filenames: []).fraction == nil)
        #expect(UploadProgress.preview(7, bytesPerSecond: nil).fraction == 1)
        #expect(UploadProgress.preview(bytesPerSecond: nil).bytesPerSecond == nil)
    }
}
