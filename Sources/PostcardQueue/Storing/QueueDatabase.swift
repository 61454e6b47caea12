#if Queue
import Foundation
import GRDB

/// The queue's SQLite database: opening it, its tables, and what its errors mean.
struct QueueDatabase: Sendable {
    let path: String
    let pool: DatabasePool

    /// The version of the tables that this code knows.
    static let version = 3

    /// By which a file is known for a queue's database: "Post".
    private static let application: Int32 = 0x506F_7374

    /// Opens the database, or makes it.
    ///
    /// - Throws: ``UploadQueueError``, the file being left as it is where it is damaged, newer, or something else.
    init(path: String) throws(UploadQueueError) {
        self.path = path
        try Self.checkHeader(of: path)
        var configuration = Configuration()
        configuration.label = "Postcard queue"
        configuration.maximumReaderCount = 2
        // Several processes put uploads in and look at them; each write is short.
        configuration.busyMode = .timeout(30)
        configuration.prepareDatabase { db in
            // What is marked as sent must not be forgotten: the default of a pool is NORMAL.
            try db.execute(sql: "PRAGMA synchronous = FULL")
        }
        do {
            pool = try DatabasePool(path: path, configuration: configuration)
            try pool.write { db in
                let found = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                guard found <= Self.version else { throw UploadQueueError.newer(path, version: found) }
                if found == 0 { try Self.makeTables(in: db) }
                if found == 1 { try Self.addResources(to: db) }
                if found < 3 { try Self.addHandovers(to: db) }
            }
        } catch {
            throw Self.error(error, at: path)
        }
    }

    func read<Value>(_ work: (Database) throws -> Value) throws(UploadQueueError) -> Value {
        do {
            return try pool.read(work)
        } catch {
            throw Self.error(error, at: path)
        }
    }

    /// Writes all or nothing.
    func write<Value>(_ work: (Database) throws -> Value) throws(UploadQueueError) -> Value {
        do {
            return try pool.write(work)
        } catch {
            throw Self.error(error, at: path)
        }
    }

    /// Writes all or nothing, without waiting for the disk: for what may be forgotten in a power cut, such as how far
    /// an upload is.
    func writeHastily<Value>(_ work: (Database) throws -> Value) throws(UploadQueueError) -> Value {
        do {
            return try pool.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA synchronous = NORMAL")
                defer { try? db.execute(sql: "PRAGMA synchronous = FULL") }
                var value: Value?
                try db.inTransaction {
                    value = try work(db)
                    return .commit
                }
                guard let value else { throw CancellationError() }
                return value
            }
        } catch {
            throw Self.error(error, at: path)
        }
    }

    static func error(_ error: any Error, at path: String) -> UploadQueueError {
        switch error {
        case let error as UploadQueueError:
            error
        case let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode):
            .damaged(path, error.message ?? "it is damaged", underlying: error)
        case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
            UploadQueueError(.full, "There is no room left for the queue's database \(path).", underlying: error)
        case let error as DatabaseError where error.resultCode == .SQLITE_CANTOPEN:
            .unusableDirectory(path, error)
        default:
            UploadQueueError(.failed, "The queue's database \(path) failed: \(error)", underlying: error)
        }
    }

    /// Looks at the file before SQLite does: opening another one's database would change it.
    private static func checkHeader(of path: String) throws(UploadQueueError) {
        guard let file = FileHandle(forReadingAtPath: path) else { return }
        defer { try? file.close() }
        let header: Data
        do {
            header = try file.read(upToCount: 100) ?? Data()
        } catch {
            throw .damaged(path, "\(error)", underlying: error)
        }
        guard !header.isEmpty else { return }
        guard header.count == 100, header.starts(with: Data("SQLite format 3\0".utf8)) else {
            throw .damaged(path, "it is no SQLite database")
        }
        // https://www.sqlite.org/fileformat.html, 1.3: the user version and the application's identifier.
        let found = Int(Int32(bigEndianAt: 60, of: header))
        let maker = Int32(bigEndianAt: 68, of: header)
        guard maker == application || (maker == 0 && found == 0) else {
            throw .damaged(path, "it is the database of something else")
        }
        guard found <= version else { throw .newer(path, version: found) }
    }

    private static func makeTables(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE upload (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    url TEXT NOT NULL,
                    method TEXT NOT NULL,
                    state TEXT NOT NULL,
                    schedule INTEGER,
                    due REAL NOT NULL DEFAULT 0,
                    priority INTEGER NOT NULL,
                    unmetered INTEGER NOT NULL,
                    sequence TEXT,
                    notBefore REAL,
                    sent INTEGER NOT NULL DEFAULT 0,
                    total INTEGER NOT NULL,
                    attempts INTEGER NOT NULL DEFAULT 0,
                    failures INTEGER NOT NULL DEFAULT 0,
                    reason TEXT,
                    resource TEXT,
                    enqueued REAL NOT NULL
                );
                CREATE INDEX upload_ready ON upload (unmetered, priority DESC, id) WHERE schedule = 0;
                CREATE INDEX upload_due ON upload (due) WHERE schedule = 1;
                CREATE INDEX upload_sequence ON upload (sequence, id) WHERE sequence IS NOT NULL;
                CREATE INDEX upload_sending ON upload (id) WHERE state = 'sending';
                CREATE TABLE request (
                    id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE,
                    idempotencyKey TEXT NOT NULL,
                    headerFields BLOB NOT NULL,
                    form BLOB NOT NULL,
                    folder TEXT
                );
                CREATE TABLE response (
                    id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE,
                    status INTEGER NOT NULL,
                    contentType TEXT,
                    body BLOB NOT NULL
                );
                PRAGMA application_id = \(application);
                """)
    }

    /// From version 1 to 2, which knows where a server keeps what it has of a form.
    private static func addResources(to db: Database) throws {
        try db.execute(sql: "ALTER TABLE upload ADD COLUMN resource TEXT")
    }

    /// From version 2 to 3, which knows what was handed to a background session: perhaps several times over, where an
    /// earlier attempt could not be removed there. It does not refer to the upload, which may be cleared before.
    private static func addHandovers(to db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE handover (
                    identity TEXT PRIMARY KEY,
                    id INTEGER NOT NULL,
                    isCurrent INTEGER NOT NULL
                );
                CREATE INDEX handover_id ON handover (id);
                PRAGMA user_version = \(version);
                """)
    }
}

extension Int32 {
    fileprivate init(bigEndianAt offset: Int, of bytes: Data) {
        let pattern = bytes.dropFirst(offset).prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        self.init(bitPattern: pattern)
    }
}
#endif
