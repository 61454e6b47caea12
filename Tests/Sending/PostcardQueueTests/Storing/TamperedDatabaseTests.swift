import Foundation
import GRDB
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardQueue

/// Databases that someone has changed to make SQLite itself do harm.
@Suite(.timeLimit(.minutes(10))) struct TamperedDatabaseTests {
    private let folder: TemporaryFolder
    private let directory: URL

    init() throws {
        folder = try TemporaryFolder()
        directory = folder.url.appending(path: "queue")
    }

    private var file: URL { directory.appending(path: "queue.sqlite") }

    /// Makes a queue with forms for an unreachable server, and closes it.
    private func makeQueue(forms: Int = 2) async throws {
        let address = try #require(URL(string: "http://127.0.0.1:1/"))
        let queue = UploadQueue(directory: directory)
        for _ in 0..<forms { try await queue.enqueue(QueuedForms.form("초코"), to: address) }
    }

    private func execute(_ sql: String) throws {
        try DatabaseQueue(path: file.path).writeWithoutTransaction { try $0.execute(sql: sql) }
    }

    private func run(_ queue: UploadQueue) async throws {
        var options = QueueOptions.draining
        options.retryPolicy.maximumAttempts = 2
        try await queue.run(UploadClient(transport: AsyncHTTPTransport()), options: options)
    }

    /// https://www.sqlite.org/fileformat.html, 3: a journal may name a file that SQLite removes after a rollback.
    @Test func `a journal that names a file elsewhere is refused, and the file is not removed`() async throws {
        try await makeQueue()
        try execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let canary = try folder.file("canary", "secret".utf8)
        let name = Array(canary.path.utf8)
        let mark: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
        func number(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
        let pages = UInt32(try Data(contentsOf: file).count / 4096)
        var journal = mark + [0, 1, pages, 512, 4096].flatMap(number)
        journal += [UInt8](repeating: 0, count: 512 - journal.count)
        let sum = name.reduce(UInt32(0)) { $0 &+ UInt32(bitPattern: Int32(Int8(bitPattern: $1))) }
        journal += number(0x4000_0000 / 4096 + 1) + name + number(UInt32(name.count)) + number(sum) + mark
        try Data(journal).write(to: directory.appending(path: "queue.sqlite-journal"))
        let error = await #expect(throws: UploadQueueError.self) { try await UploadQueue(directory: directory).open() }
        #expect(error?.code == .damaged && error?.message.contains("queue.sqlite-journal") == true)
        #expect(try Data(contentsOf: canary) == Data("secret".utf8))
    }

    @Test(arguments: [
        "CREATE TRIGGER t AFTER UPDATE ON upload BEGIN DELETE FROM upload; END",
        """
        CREATE TRIGGER t AFTER UPDATE ON upload WHEN new.state = 'sending' BEGIN
            UPDATE upload SET state = 'waiting', schedule = 0 WHERE id = new.id;
        END
        """,
        """
        DROP TABLE queue;
        CREATE VIEW queue AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)
            SELECT count(*) AS isPaused FROM n
        """,
        "ALTER TABLE request RENAME TO other; CREATE VIEW request AS SELECT * FROM other",
        "ALTER TABLE upload ADD COLUMN extra AS (printf('%.*c', 1000000, 'x'))",
        "CREATE INDEX strange ON upload (printf('%.1000c', uuid))", "CREATE VIRTUAL TABLE strange USING fts5(text)",
        "DROP TABLE response", "DROP TABLE delivery", "DROP TABLE resumption",
        "DROP TABLE import", "DROP INDEX upload_ready",
        "ALTER TABLE upload DROP COLUMN reason",
        "PRAGMA user_version = 0", "PRAGMA user_version = -1", "ALTER TABLE upload DROP COLUMN started",
        "DROP TABLE delivery; CREATE TABLE delivery (id INTEGER PRIMARY KEY, attempt BLOB)",
        "DROP TABLE delivery; CREATE VIEW delivery AS SELECT 1 AS id, 1 AS attempt",
    ])
    func `tables that are not a queue's are refused and not changed`(sql: String) async throws {
        try await makeQueue()
        try execute(sql)
        let error = await #expect(throws: UploadQueueError.self) { try await UploadQueue(directory: directory).open() }
        #expect(error?.code == .damaged, "\(error?.message ?? "")")
        let count = try await DatabaseQueue(path: file.path).read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM upload")
        }
        #expect(count == 2)
    }

    @Test func `the tables of version 7 do not change`() async throws {
        try await makeQueue()
        let tables = try await DatabaseQueue(path: file.path).read { db in
            try String.fetchAll(db, sql: "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        }.map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
        #expect(
            tables == [
                """
                CREATE TABLE upload ( id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL UNIQUE, url TEXT NOT NULL, \
                method TEXT NOT NULL, state TEXT NOT NULL, schedule INTEGER, due REAL NOT NULL DEFAULT 0, session TEXT, \
                priority INTEGER NOT NULL, networks INTEGER NOT NULL, sequence TEXT, notBefore REAL, expires REAL, tag BLOB, sent INTEGER NOT NULL \
                DEFAULT 0, total INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT \
                0, interruptions INTEGER NOT NULL DEFAULT 0, hasFreshFields INTEGER NOT NULL DEFAULT 0, code TEXT, reason TEXT, advice TEXT, resource TEXT, enqueued REAL NOT NULL, \
                started REAL, conflicts INTEGER NOT NULL DEFAULT 0, finished REAL, ended INTEGER )
                """,
                "CREATE TABLE sqlite_sequence(name,seq)",
                """
                CREATE TABLE request ( id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE, idempotencyKey TEXT \
                NOT NULL, headerFields BLOB NOT NULL, contentType TEXT NOT NULL, parts BLOB NOT NULL, signed BLOB, statuses BLOB )
                """,
                """
                CREATE TABLE response ( id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE, status INTEGER NOT \
                NULL, headerFields BLOB NOT NULL, body BLOB NOT NULL )
                """,
                "CREATE INDEX upload_ready ON upload (networks, priority DESC, id) WHERE schedule = 0",
                "CREATE INDEX upload_due ON upload (due) WHERE schedule = 1",
                "CREATE INDEX upload_sequence ON upload (sequence, id) WHERE sequence IS NOT NULL",
                "CREATE INDEX upload_sending ON upload (id) WHERE state = 'sending'",
                "CREATE INDEX upload_session ON upload (session, id) WHERE session IS NOT NULL",
                """
                CREATE INDEX upload_expires ON upload (expires) WHERE expires IS NOT NULL AND state NOT IN ('done', \
                'failed', 'cancelled')
                """,
                "CREATE INDEX upload_done ON upload (finished, id) WHERE state = 'done' AND ended IS NULL",
                "CREATE INDEX upload_ended ON upload (ended, id) WHERE ended IS NOT NULL",
                """
                CREATE TABLE queue ( isPaused INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0, ends INTEGER NOT NULL \
                DEFAULT 0 )
                """,
                """
                CREATE TABLE delivery ( id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE, attempt INTEGER \
                NOT NULL )
                """,
                """
                CREATE TABLE import ( id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE, form BLOB NOT \
                NULL )
                """,
                """
                CREATE TABLE resumption ( id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE, stopped INTEGER \
                NOT NULL, resumeData BLOB )
                """,
            ])
    }

    @Test func `an index with entries for missing rows is refused`() async throws {
        try await makeQueue()
        let root = try await DatabaseQueue(path: file.path).read { db in
            try Int.fetchOne(db, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'upload_ready'")
        }
        // The index is not updated while the schema does not list it.
        try execute("PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE name = 'upload_ready'")
        try execute("UPDATE upload SET state = 'done', schedule = NULL WHERE id = 1")
        try execute(
            """
            PRAGMA writable_schema = ON;
            INSERT INTO sqlite_master VALUES ('index', 'upload_ready', 'upload', \(try #require(root)),
                'CREATE INDEX upload_ready ON upload (networks, priority DESC, id) WHERE schedule = 0');
            """)
        let error = await #expect(throws: UploadQueueError.self) { try await UploadQueue(directory: directory).open() }
        #expect(error?.code == .damaged, "\(error?.message ?? "")")
    }

    @Test(arguments: ["9223372036854775807", "-9223372036854775808", "-1"])
    func `an upload with an impossible number of failures still fails for good`(number: String) async throws {
        try await makeQueue()
        try execute("UPDATE upload SET failures = \(number), attempts = -failures WHERE id = 1")
        let queue = UploadQueue(directory: directory)
        try await run(queue)
        #expect(try await queue.uploads().map(\.state.name) == ["failed", "failed"])
    }

    @Test func `a paused queue ends its run although a time in it is not valid`() async throws {
        try await makeQueue()
        try execute("UPDATE upload SET due = 'soon', schedule = 1 WHERE id = 1; DELETE FROM queue")
        let queue = UploadQueue(directory: directory)
        try await queue.pause()
        #expect(try await queue.isPaused)
        try await run(queue)
        #expect(try await queue.uploads().map(\.state.name) == ["waiting", "waiting"])
    }

    @Test func `damaged rows can be cancelled and cleared without harm to others`() async throws {
        try await makeQueue(forms: 3)
        try execute(
            """
            UPDATE upload SET uuid = (SELECT lower(uuid) FROM upload WHERE id = 3) WHERE id = 1;
            UPDATE upload SET state = 'strange', schedule = NULL WHERE id = 2;
            """)
        let queue = UploadQueue(directory: directory)
        #expect(try await queue.uploads().map(\.id) == [1, 3])
        for id in Int64(1)...2 { try await queue.cancel(id) }
        #expect(try await queue.clear(.ended) == 2)
        #expect(try await queue.bodyExists(3))
        try await queue.cancelAll()
        #expect(try await queue.clear(.ended) == 1)
    }

    @Test func `only a row that is too large is left out of a list`() async throws {
        try await makeQueue()
        // An empty list of parts, with many spaces.
        try execute(
            "UPDATE request SET parts = CAST('[' || printf('%.*c', 80000000, ' ') || ']' AS BLOB) WHERE id = 1")
        #expect(try await UploadQueue(directory: directory).uploads().map(\.id) == [2])
    }

    /// A commit in the log has the number of the database's pages.
    @Test func `a log that promises more pages than there are is refused`() async throws {
        try await makeQueue()
        try execute("PRAGMA wal_checkpoint(TRUNCATE)")
        var page = try Data(contentsOf: file).prefix(4096)
        page.replaceSubrange(28..<32, with: [0x7F, 0xFF, 0xFF, 0xFF])
        func words(_ data: Data) -> [UInt32] {
            stride(from: 0, to: data.count, by: 4).map { offset in
                data.dropFirst(offset).prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            }
        }
        func bytes(_ words: [UInt32]) -> Data {
            Data(words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } })
        }
        // https://www.sqlite.org/fileformat.html, 4.2: sums of words of the other byte order than this magic's.
        var sums: [UInt32] = [0, 0]
        func add(_ data: Data) {
            for (index, word) in words(data).enumerated() {
                sums[index % 2] = sums[index % 2] &+ word &+ sums[1 - index % 2]
            }
        }
        var log = bytes([0x377F_0683, 3_007_000, 4096, 0, 1, 2])
        add(log)
        log += bytes(sums)
        let frame = bytes([1, 0x7FFF_FFFF])
        add(frame + page)
        log += frame + bytes([1, 2] + sums) + page
        try log.write(to: directory.appending(path: "queue.sqlite-wal"))
        let error = await #expect(throws: UploadQueueError.self) { try await UploadQueue(directory: directory).open() }
        #expect(error?.code == .damaged && error?.message.contains("cut off") == true, "\(error?.message ?? "")")
    }

    @Test func `writes wait for the disk from the first one on`() async throws {
        let queue = UploadQueue(directory: directory)
        let synchronous = try await queue.store.database.write { try Int.fetchOne($0, sql: "PRAGMA synchronous") }
        #expect(synchronous == 2)
    }
}
