import Foundation
import GRDB
import SystemPackage

/// The queue's SQLite database: how it is opened, its tables, and what its errors mean.
struct QueueDatabase: Sendable {
    let path: String
    private let pool: DatabasePool

    /// The version of the tables that this code writes.
    static let version = 4

    /// Identifies a file as a queue's database: "Post".
    private static let application: Int32 = 0x506F_7374

    /// Opens the database of a folder, and makes its tables if it is empty.
    ///
    /// - Throws: ``UploadQueueError``. The file is left as it is if it is damaged, newer, or something else.
    init(_ folder: QueueFolder) throws(UploadQueueError) {
        path = folder.databasePath
        var configuration = Configuration()
        configuration.label = "Postcard queue"
        configuration.maximumReaderCount = 2
        // Several processes put uploads in and look at them; each write is short.
        configuration.busyMode = .timeout(30)
        configuration.prepareDatabase { db in
            // What is marked as sent must not be forgotten: the default of a pool is NORMAL.
            // On Darwin, FULL alone leaves bytes in the drive's own cache.
            try db.execute(
                sql: """
                    PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
                    PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;
                    """)
        }
        do {
            pool = try DatabasePool(path: path, configuration: configuration)
            try pool.write { db in
                let found = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                guard found <= Self.version else { throw UploadQueueError.newer(folder.databasePath, version: found) }
                if found == 0 { try Self.makeTables(in: db) }
                if (1..<Self.version).contains(found) { try db.migrateFromVersion(found, folder) }
                if found < Self.version {
                    try db.execute(
                        sql: """
                            PRAGMA application_id = \(Self.application);
                            PRAGMA user_version = \(Self.version);
                            """)
                }
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

    /// Writes all or nothing, and waits until it is on the disk.
    func write<Value>(_ work: (Database) throws -> Value) throws(UploadQueueError) -> Value {
        do {
            return try pool.write(work)
        } catch {
            throw Self.error(error, at: path)
        }
    }

    /// Writes all or nothing, without waiting for the disk: for what a power cut may undo, such as how far an upload is.
    func writeWithoutSync<Value>(_ work: (Database) throws -> Value) throws(UploadQueueError) -> Value {
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

    private static func error(_ error: any Error, at path: String) -> UploadQueueError {
        switch error {
        case let error as UploadQueueError:
            error
        case let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode):
            .damaged(path, error.message ?? "it is damaged", underlying: error)
        case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
            UploadQueueError(.full, "There is no room left for the queue's database \(path).", underlying: error)
        case let error as DatabaseError where error.resultCode == .SQLITE_AUTH:
            // What iOS's SQLite answers for protected files before the first unlock.
            .locked(error)
        case let error as DatabaseError where error.resultCode == .SQLITE_CANTOPEN:
            UploadQueueError(
                .unusableDirectory, "The queue's database \(path) cannot be opened: \(error)", underlying: error)
        case is RowDecodingError:
            .damaged(path, "\(error)", underlying: error)
        default:
            UploadQueueError(.failed, "The queue's database \(path) failed: \(error)", underlying: error)
        }
    }

    /// Looks at the file before SQLite does, because opening the database of another program would change it.
    static func check(_ file: FileDescriptor, at path: String) throws(UploadQueueError) {
        var header = [UInt8](repeating: 0, count: 100)
        let count: Int
        do {
            count = try header.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
        } catch {
            throw .damaged(path, "\(error)", underlying: error)
        }
        guard count > 0 else { return }
        guard count == 100, header.starts(with: Data("SQLite format 3\0".utf8)) else {
            throw .damaged(path, "it is no SQLite database")
        }
        // https://www.sqlite.org/fileformat.html, 1.3: the user version and the application's identifier.
        let found = Int32(bigEndian: header[60..<64])
        let maker = Int32(bigEndian: header[68..<72])
        guard maker == application || (maker == 0 && found == 0) else {
            throw .damaged(path, "it is the database of something else")
        }
        guard found <= version else { throw .newer(path, version: Int(found)) }
    }

    private static func makeTables(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE upload (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    uuid TEXT NOT NULL UNIQUE,
                    url TEXT NOT NULL,
                    method TEXT NOT NULL,
                    state TEXT NOT NULL,
                    schedule INTEGER,
                    due REAL NOT NULL DEFAULT 0,
                    session TEXT,
                    priority INTEGER NOT NULL,
                    networks INTEGER NOT NULL,
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
                CREATE TABLE request (
                    id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE,
                    idempotencyKey TEXT NOT NULL,
                    headerFields BLOB NOT NULL,
                    contentType TEXT NOT NULL,
                    parts BLOB NOT NULL
                );
                CREATE TABLE response (
                    id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE,
                    status INTEGER NOT NULL,
                    contentType TEXT,
                    body BLOB NOT NULL
                );
                """)
        try makeIndexes(in: db)
    }

    /// The tables and indexes that version 4 has added.
    static func makeIndexes(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE INDEX upload_ready ON upload (networks, priority DESC, id) WHERE schedule = 0;
                CREATE INDEX upload_due ON upload (due) WHERE schedule = 1;
                CREATE INDEX upload_sequence ON upload (sequence, id) WHERE sequence IS NOT NULL;
                CREATE INDEX upload_sending ON upload (id) WHERE state = 'sending';
                CREATE INDEX upload_session ON upload (session, id) WHERE session IS NOT NULL;
                CREATE TABLE queue (isPaused INTEGER NOT NULL);
                INSERT INTO queue VALUES (0);
                """)
    }
}

extension Int32 {
    fileprivate init(bigEndian bytes: ArraySlice<UInt8>) {
        self.init(bitPattern: bytes.reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
    }
}
