import Foundation
import GRDB
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardQueue

/// When a queue is opened, what is read then, and queues of older versions.
@Suite(.timeLimit(.minutes(10))) struct OpeningTests {
    private let folder: TemporaryFolder
    private let directory: URL

    init() throws {
        folder = try TemporaryFolder()
        directory = folder.url.appending(path: "queue")
    }

    private var file: URL { directory.appending(path: "queue.sqlite") }

    private static func address() throws -> URL { try #require(URL(string: "http://127.0.0.1:1/")) }

    private func enqueue() async throws {
        try await UploadQueue(directory: directory).enqueue(QueuedForms.form(), to: Self.address())
    }

    private func execute(_ sql: String) async throws {
        try await DatabaseQueue(path: file.path).write { try $0.execute(sql: sql) }
    }

    /// Whether a queue that is opened now reads its whole database.
    private func isReadThrough() async throws -> Bool {
        try await UploadQueue(directory: directory).store.database.wasReadThrough
    }

    @Test func `a queue is made by its first call, and one that cannot be opened is tried again`() async throws {
        let queue = UploadQueue(directory: directory)
        #expect(!FileManager.default.fileExists(atPath: directory.path))
        try Data().write(to: directory)
        await #expect(throws: UploadQueueError.self) { try await queue.open() }
        try FileManager.default.removeItem(at: directory)
        try await queue.open()
        #expect(try await queue.uploads() == [])
    }

    // MARK: - After a clean end

    @Test func `a database is read through only if it was not closed as it is`() async throws {
        try await enqueue()
        #expect(try await !isReadThrough())
        #expect(try await !isReadThrough(), "Reading it is no reason.")
        try await execute("UPDATE upload SET priority = 1")
        #expect(try await isReadThrough())
        #expect(try await !isReadThrough())
        // A power cut while the note is written.
        try Data("queue.sqlite".utf8).write(to: directory.appending(path: "queue.closed"))
        #expect(try await isReadThrough())
    }

    @Test func `a database is read through after a process that ended while it was writing`() async throws {
        let killed = UploadQueue(directory: directory)
        try await killed.enqueue(QueuedForms.form(), to: Self.address())
        // What the killed process has written is in the log, and not noted.
        #expect(try await isReadThrough())
        try await killed.store.database.noteRest()
        #expect(try await !isReadThrough())
        try await killed.pause()
        #expect(try await isReadThrough())
    }

    @Test func `a database is not read through after a process that ended when it had handed its uploads over`()
        async throws
    {
        let killed = UploadQueue(
            directory: directory, session: BackgroundSession(identifier: UUID().uuidString),
            service: KeepingService(KeptTransfers()))
        try await killed.enqueue(QueuedForms.form(), to: Self.address())
        try await killed.handOver()
        #expect(try await !isReadThrough())
        await killed.disconnect()
    }

    @Test func `a damaged database is not noted as closed`() async throws {
        try await enqueue()
        try await execute("CREATE TABLE other (id)")
        for _ in 0..<2 {
            let error = await #expect(throws: UploadQueueError.self) {
                try await UploadQueue(directory: directory).open()
            }
            #expect(error?.code == .damaged)
        }
        try await execute("DROP TABLE other")
        #expect(try await isReadThrough())
    }

    // MARK: - Older versions

    private func bodies(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.appending(path: folder).path)
    }

    @Test func `a queue of an older version is set aside with its forms, and an empty one takes its place`()
        async throws
    {
        for number in 1...2 {
            try await enqueue()
            let names = try bodies("bodies")
            try await execute("PRAGMA user_version = 1")
            let queue = UploadQueue(directory: directory)
            #expect(try await queue.uploads() == [])
            let folders = try await queue.setAside
            #expect(folders.map(\.lastPathComponent) == (1...number).map { "older-\($0)" })
            #expect(try bodies("older-\(number)/bodies") == names && bodies("bodies") == [])
            let older = try DatabaseQueue(path: folders[number - 1].appending(path: "queue.sqlite").path)
            #expect(try await older.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM upload") } == 1)
        }
    }

    @Test func `a queue of an older version that two processes open is set aside once`() async throws {
        for number in 1...10 {
            try await enqueue()
            try await execute("PRAGMA user_version = 1")
            let queues = [UploadQueue(directory: directory), UploadQueue(directory: directory)]
            await withTaskGroup { group in
                for queue in queues {
                    group.addTask {
                        // The second may find the first one at work.
                        while (try? await queue.open()) == nil {}
                    }
                }
            }
            #expect(try await queues[0].setAside.count == number)
        }
    }

    @Test func `a process that ended while it set a queue aside is continued by the next one`() async throws {
        try await enqueue()
        let names = try bodies("bodies")
        try await execute("PRAGMA user_version = 1")
        try FileManager.default.createDirectory(
            at: directory.appending(path: "older-1"), withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700])
        try FileManager.default.moveItem(
            at: directory.appending(path: "bodies"), to: directory.appending(path: "older-1/bodies"))
        let queue = UploadQueue(directory: directory)
        #expect(try await queue.setAside.map(\.lastPathComponent) == ["older-1"])
        #expect(try bodies("older-1/bodies") == names)
        #expect(try bodies("older-1").contains("queue.sqlite"))
    }

    /// The version is still in the log, where the first look at the file does not see it.
    @Test func `a queue of an older version is recognized while its log is not in the database`() async throws {
        try await enqueue()
        let other = try DatabaseQueue(path: file.path)
        try await other.write { try $0.execute(sql: "PRAGMA user_version = 1") }
        let queue = UploadQueue(directory: directory)
        #expect(try await queue.uploads() == [])
        #expect(try await queue.setAside.count == 1)
        withExtendedLifetime(other) {}
    }

    @Test func `a queue of an older version from which a process sends is left where it is`() async throws {
        try await enqueue()
        let sending = UploadQueue(directory: directory)
        let lock = try await sending.store.directory.lock()
        try await execute("PRAGMA user_version = 1")
        let error = await #expect(throws: UploadQueueError.self) { try await UploadQueue(directory: directory).open() }
        #expect(error?.code == .inUse)
        #expect(FileManager.default.fileExists(atPath: file.path))
        #expect(try bodies("bodies").count == 1)
        withExtendedLifetime(lock) {}
    }
}
