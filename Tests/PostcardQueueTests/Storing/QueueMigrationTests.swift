import Foundation
import GRDB
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardTestSupport
import Testing

/// Queues of older versions. Those of versions 1 to 3 have copies of files in a directory per upload, or only paths of
/// files.
@Suite(.timeLimit(.minutes(10))) struct QueueMigrationTests {
    private static let tables = """
        CREATE TABLE upload (
            id INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL, method TEXT NOT NULL, state TEXT NOT NULL,
            schedule INTEGER, due REAL NOT NULL DEFAULT 0, priority INTEGER NOT NULL, unmetered INTEGER NOT NULL,
            sequence TEXT, notBefore REAL, sent INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, reason TEXT,
            enqueued REAL NOT NULL
        );
        CREATE INDEX upload_ready ON upload (unmetered, priority DESC, id) WHERE schedule = 0;
        CREATE INDEX upload_due ON upload (due) WHERE schedule = 1;
        CREATE INDEX upload_sequence ON upload (sequence, id) WHERE sequence IS NOT NULL;
        CREATE INDEX upload_sending ON upload (id) WHERE state = 'sending';
        CREATE TABLE request (
            id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE, idempotencyKey TEXT NOT NULL,
            headerFields BLOB NOT NULL, form BLOB NOT NULL, folder TEXT
        );
        CREATE TABLE response (
            id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE, status INTEGER NOT NULL,
            contentType TEXT, body BLOB NOT NULL
        );
        PRAGMA application_id = 0x506F7374;
        """

    private let folder: TemporaryFolder
    private let directory: URL
    private static let copies = "0F0E0D0C-0B0A-4900-8000-000000000001"

    init() throws {
        folder = try TemporaryFolder()
        directory = folder.url.appending(path: "queue")
        try FileManager.default.createDirectory(
            at: directory.appending(path: "files/\(Self.copies)"), withIntermediateDirectories: true)
        try Data("a photo".utf8).write(to: directory.appending(path: "files/\(Self.copies)/1"))
    }

    /// Makes the database of an older version.
    private func make(version: Int, _ fill: (Database) throws -> Void) throws {
        try DatabaseQueue(path: directory.appending(path: "queue.sqlite").path).write { db in
            try db.execute(sql: Self.tables)
            if version > 1 { try db.execute(sql: "ALTER TABLE upload ADD COLUMN resource TEXT") }
            if version > 2 {
                try db.execute(
                    sql: """
                        CREATE TABLE handover (identity TEXT PRIMARY KEY, id INTEGER NOT NULL, isCurrent INTEGER NOT NULL);
                        CREATE INDEX handover_id ON handover (id);
                        """)
            }
            try fill(db)
            try db.execute(sql: "PRAGMA user_version = \(version)")
        }
    }

    private static func insert(_ db: Database, to url: URL, state: String, image: String, folder: String?) throws {
        try db.execute(
            sql: """
                INSERT INTO upload (url, method, state, schedule, priority, unmetered, total, enqueued)
                VALUES (?, 'POST', ?, ?, 0, 0, 300, 1000)
                """, arguments: [url.absoluteString, state, state == "waiting" ? 0 : nil])
        let form = """
            {"boundary":"boundary7","normalizesLineBreaks":false,"parts":[
            {"name":"name","headerFields":[],"content":{"text":{"_0":"초코"}}},
            {"name":"image","filename":"a.jpg","contentType":"image/jpeg","headerFields":[],"content":\(image)}]}
            """
        try db.execute(
            sql: "INSERT INTO request VALUES (?, '\"key\"', ?, ?, ?)",
            arguments: [
                db.lastInsertedRowID, Data("[{\"name\":\"X-Tag\",\"value\":\"1\"}]".utf8), Data(form.utf8), folder,
            ])
    }

    @Test(arguments: 1...3)
    func `a queue of versions 1 to 3 is migrated and sent, and its copies are removed`(version: Int) async throws {
        let server = try await ReceivingServer()
        try make(version: version) { db in
            for state in ["waiting", "sending", "done"] {
                try Self.insert(
                    db, to: server.uploads, state: state, image: "{\"copy\":{\"name\":\"1\"}}", folder: Self.copies)
            }
            try db.execute(sql: "INSERT INTO response VALUES (3, 201, 'text/plain', x'6f6b')")
        }
        let queue = try UploadQueue(directory: directory)
        #expect(!FileManager.default.fileExists(atPath: directory.appending(path: "files").path))
        try await queue.run(
            UploadClient(transport: AsyncHTTPTransport()), options: QueueOptions(endsWhenEmpty: true))
        let uploads = try queue.uploads()
        #expect(uploads.map(\.state.name) == ["done", "done", "done"])
        #expect(uploads.first?.parts.map(\.filename) == [nil, "a.jpg"])
        guard case .done(let response) = uploads.last?.state else { throw ProgramFailure("The upload is not done.") }
        #expect(response.status == 201 && response.body == Data("ok".utf8))
        guard case .done(let sent) = uploads.first?.state else { throw ProgramFailure("The upload is not done.") }
        #expect(String(decoding: sent.body, as: UTF8.self).contains("\"size\":7"))
        // Both have the same key, so there is one record.
        #expect(try await server.end().records.count == 1)
    }

    /// At some limits, there are enough descriptors for the database and too few for the copies.
    @Test func `copies that cannot be opened are kept and migrated at the next opening`() async throws {
        let address = try #require(URL(string: "http://127.0.0.1:1/"))
        try make(version: 3) { db in
            try Self.insert(
                db, to: address, state: "waiting", image: "{\"copy\":{\"name\":\"1\"}}", folder: Self.copies)
        }
        var statuses: Set<Int32> = []
        for limit in 8...32 {
            let copy = folder.url.appending(path: "\(limit)")
            try FileManager.default.copyItem(at: directory, to: copy)
            let command = "ulimit -n \(limit) && SWIFT_BACKTRACE=enable=no exec \"$0\" queue list --queue \"$1\""
            let ending = try await Program.run("sh", ["-c", command, Program.url.path, copy.path])
            statuses.insert(ending.status)
            let queue = try UploadQueue(directory: copy)
            #expect(try queue.uploads().map(\.state) == [.waiting], "\(limit) descriptors: \(ending.messages)")
            #expect(try queue.bodyExists(1))
        }
        #expect(statuses.contains(0) && statuses.count > 1)
    }

    @Test func `a queue of version 4 is migrated, and uploads that may have arrived are noted`() async throws {
        let address = try #require(URL(string: "http://127.0.0.1:1/"))
        let states = ["waiting", "retrying", "paused", "failed", "done"]
        do {
            let queue = try UploadQueue(directory: directory)
            for _ in 0...states.count { try await queue.enqueue(QueuedForms.form("초코"), to: address) }
        }
        let database = try DatabaseQueue(path: directory.appending(path: "queue.sqlite").path)
        try await database.write { db in
            for (index, state) in states.enumerated() {
                try db.execute(
                    sql: "UPDATE upload SET state = ?, attempts = 3, schedule = NULL WHERE id = ?",
                    arguments: [state, index + 1])
            }
            try db.execute(
                sql: """
                    DROP TABLE delivery; ALTER TABLE upload DROP COLUMN conflicts;
                    ALTER TABLE upload DROP COLUMN started; PRAGMA user_version = 4
                    """)
        }
        let uploads = try UploadQueue(directory: directory).uploads()
        #expect(uploads.map(\.state.name) == states + ["waiting"])
        let noted = try await database.read { db in
            try String.fetchAll(db, sql: "SELECT id || ': ' || attempt FROM delivery ORDER BY id")
        }
        #expect(noted == ["1: 1", "2: 1", "3: 1"])
    }

    @Test func `a queue of version 5 is migrated, and its uploads are sent`() async throws {
        let server = try await ReceivingServer()
        do {
            try await UploadQueue(directory: directory).enqueue(QueuedForms.form("초코"), to: server.uploads)
        }
        try await DatabaseQueue(path: directory.appending(path: "queue.sqlite").path).write { db in
            try db.execute(
                sql: """
                    ALTER TABLE upload DROP COLUMN conflicts; ALTER TABLE upload DROP COLUMN started;
                    PRAGMA user_version = 5
                    """)
        }
        let queue = try UploadQueue(directory: directory)
        try await queue.run(
            UploadClient(transport: AsyncHTTPTransport()), options: QueueOptions(endsWhenEmpty: true))
        #expect(try queue.uploads().map(\.state.name) == ["done"])
        #expect(try await server.end().records.count == 1)
    }

    @Test(arguments: [
        ("{\"file\":{\"path\":\"/etc/passwd\",\"_1\":{\"length\":1,\"seconds\":1,\"nanoseconds\":1}}}", nil),
        ("{\"copy\":{\"name\":\"../../../etc/passwd\"}}", copies), ("{\"copy\":{\"name\":\"1\"}}", "../../canary"),
        ("{\"copy\":{\"name\":\"1\"}}", "/etc"), ("{\"copy\":{\"name\":\"7\"}}", copies),
        ("{\"copy\":{\"name\":\"link\"}}", copies), ("{\"copy\":{\"name\":\"2\"}}", copies), ("{}", nil),
    ])
    func `files outside the queue are not read, and the upload fails with a reason`(
        image: String, copies: String?
    ) async throws {
        let server = try await ReceivingServer()
        let canary = folder.url.appending(path: "canary")
        try FileManager.default.createDirectory(at: canary, withIntermediateDirectories: true)
        try Data("secret".utf8).write(to: canary.appending(path: "1"))
        try FileManager.default.createSymbolicLink(
            at: directory.appending(path: "files/\(Self.copies)/2"),
            withDestinationURL: canary.appending(path: "1"))
        try make(version: 3) { db in
            try Self.insert(db, to: server.uploads, state: "waiting", image: image, folder: copies)
        }
        let queue = try UploadQueue(directory: directory)
        try await queue.run(
            UploadClient(transport: AsyncHTTPTransport()), options: QueueOptions(endsWhenEmpty: true))
        let upload = try #require(try queue.upload(1))
        guard case .failed(let reason) = upload.state else { throw ProgramFailure("The upload is \(upload.state).") }
        #expect(!reason.isEmpty)
        #expect(try Data(contentsOf: canary.appending(path: "1")) == Data("secret".utf8))
        #expect(try await server.end().records.isEmpty)
    }
}
