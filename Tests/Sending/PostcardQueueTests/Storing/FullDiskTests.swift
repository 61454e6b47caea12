#if os(Linux)
import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardQueue

@Suite(.timeLimit(.minutes(10)), .enabled("A small disk cannot be mounted here.") { await SmallDisk.isPossible() })
struct FullDiskTests {
    private static let url = "http://127.0.0.1:1/uploads"

    @Test func `a form that fills the disk is not enqueued, and leaves space for later ones`() async throws {
        let url = try #require(URL(string: Self.url))
        let folder = try TemporaryFolder()
        let large = try folder.sparseFile("large.bin", size: 8 << 20)
        let small = try folder.file("small.bin", size: 10_000)
        try await SmallDisk.with(megabytes: 4) { disk in
            let queue = UploadQueue(directory: disk)
            let first = try await queue.enqueue(QueuedForms.form("first", small), to: url)
            let error = await #expect(throws: UploadQueueError.self) {
                try await queue.enqueue(QueuedForms.form("large", large), to: url)
            }
            #expect(error?.code == .full)
            let last = try await queue.enqueue(QueuedForms.form("last", small), to: url)
            #expect(try await queue.uploads().map(\.id) == [first, last])
            let bodies = try FileManager.default.contentsOfDirectory(atPath: disk.path + "/bodies")
            #expect(bodies.count == 2)
        }
    }

    @Test func `a form without space for its row is not enqueued, and earlier uploads are intact`() async throws {
        let url = try #require(URL(string: Self.url))
        try await SmallDisk.with(megabytes: 4) { disk in
            let queue = UploadQueue(directory: disk)
            let first = try await queue.enqueue(QueuedForms.form("first"), to: url)
            let filler = disk.appending(path: "../filler")
            try SmallDisk.fill(filler)
            let text = String(repeating: "x", count: 16_000)
            // The database has some free pages.
            let error = await #expect(throws: UploadQueueError.self) {
                for _ in 0..<1000 { try await queue.enqueue(QueuedForms.form(text), to: url) }
            }
            #expect(error?.code == .full, "\(error?.message ?? "")")
            let before = try await queue.uploads()
            #expect(before.first?.id == first && before.count < 1000)
            // Emptied and not removed: a process that another test is starting may have it open for a moment.
            try Data().write(to: filler)
            let last = try await queue.enqueue(QueuedForms.form("last"), to: url)
            let reopened = UploadQueue(directory: disk)
            let added = try #require(try await queue.upload(last))
            #expect(try await reopened.uploads() == before + [added])
        }
    }

    @Test func `an outcome is recorded when there is space again, also if something expires meanwhile`() async throws {
        /// Fills the disk while a form is sent.
        struct Filling: UploadTransport {
            let filler: URL

            func send(
                _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
            ) async throws -> UploadResponse {
                try SmallDisk.fill(filler)
                return UploadResponse(status: .created, headerFields: HTTPFields(), body: Data(count: 60_000))
            }
        }
        let url = try #require(URL(string: Self.url))
        try await SmallDisk.with(megabytes: 4) { disk in
            let clock = SteppedClock()
            let queue = UploadQueue(directory: disk, session: nil, service: nil, time: clock.time)
            let id = try await queue.enqueue(
                QueuedForms.form(), to: url, conditions: UploadConditions(expires: clock.date.addingTimeInterval(60)))
            let filler = disk.appending(path: "../filler")
            var options = QueueOptions(pollInterval: nil)
            options.resumption = nil
            let running = Task { [options] in
                try await queue.run(UploadClient(transport: Filling(filler: filler)), options: options)
            }
            // It waits for space, a second at a time, and the time of the upload does not shorten that.
            try await eventually { FileManager.default.fileExists(atPath: filler.path) }
            await clock.waitForSleep(ofAtMost: .seconds(1))
            clock.advance(by: .seconds(61))
            await clock.waitForSleep(ofAtMost: .seconds(1))
            try Data().write(to: filler)
            clock.advance(by: .seconds(2))
            try await queue.wait { $0[id]?.isEnded == true }
            #expect(try await queue.upload(id)?.state.name == "done")
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
        }
    }
}

/// A disk of a few megabytes. Mounting it requires root.
private enum SmallDisk {
    static func isPossible() async -> Bool {
        guard getuid() == 0, let folder = try? TemporaryFolder(), (try? await mount(1, at: folder.path)) == true else {
            return false
        }
        return (try? await Program.run("umount", ["-l", folder.path]).status) == 0
    }

    private static func mount(_ megabytes: Int, at path: String) async throws -> Bool {
        try await Program.run("mount", ["-t", "tmpfs", "-o", "size=\(megabytes)m", "tmpfs", path]).status == 0
    }

    static func with(megabytes: Int, _ body: (URL) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        try #require(try await mount(megabytes, at: folder.path))
        let result: Result<Void, any Error>
        do {
            // A directory of its own, because all users can write to the mounted one.
            try await body(folder.url.appending(path: "queue"))
            result = .success(())
        } catch {
            result = .failure(error)
        }
        _ = try await Program.run("umount", ["-l", folder.path])
        try result.get()
    }

    /// Fills the disk.
    static func fill(_ file: URL) throws {
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        defer { try? handle.close() }
        for size in [1 << 16, 1 << 12, 1 << 8, 1] {
            let block = Data(count: size)
            while (try? handle.write(contentsOf: block)) != nil {}
        }
    }
}
#endif
