import Foundation
import GRDB
import GRDBSQLite
import SystemPackage

/// The queue's SQLite database: how it is opened, its tables, and what its errors mean.
struct QueueDatabase: Sendable {
    let path: String
    private let pool: DatabasePool

    /// The version of the tables that this code writes.
    static let version = 5

    /// Identifies a file as a queue's database: "Post".
    private static let application: Int32 = 0x506F_7374

    /// The most bytes of a row, and of a value in it. The largest values are the lists of parts, with about 100 bytes for
    /// each part. A row with more was not written by the queue and cannot be read.
    static let maximumRowBytes: Int32 = 64 << 20

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
            // On Darwin, FULL alone leaves bytes in the drive's own cache. Temporary files would be made elsewhere.
            try db.execute(
                sql: """
                    PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
                    PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;
                    PRAGMA temp_store = MEMORY;
                    """)
            sqlite3_limit(db.sqliteConnection, SQLITE_LIMIT_LENGTH, Self.maximumRowBytes)
            sqlite3_limit(db.sqliteConnection, SQLITE_LIMIT_ATTACHED, 0)
        }
        do {
            pool = try DatabasePool(path: path, configuration: configuration)
            // What is marked as sent must not be forgotten. A pool sets NORMAL when it is made.
            try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            try pool.read { try $0.checkContent(folder) }
            try pool.write { db in
                let found = try db.checkVersion(folder)
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
        case let error as DatabaseError where damages.contains(error.resultCode):
            .damaged(path, error.message ?? "it is damaged", underlying: error)
        case let error as RowDamage:
            .damaged(path, "\(error)", underlying: error)
        case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
            UploadQueueError(.full, "There is no room left for the queue's database \(path).", underlying: error)
        case let error as DatabaseError where error.resultCode == .SQLITE_AUTH:
            // What iOS's SQLite answers for protected files before the first unlock.
            .locked(error)
        case let error as DatabaseError where error.resultCode == .SQLITE_CANTOPEN:
            UploadQueueError(
                .unusableDirectory, "The queue's database \(path) cannot be opened: \(error)", underlying: error)
        default:
            UploadQueueError(.failed, "The queue's database \(path) failed: \(error)", underlying: error)
        }
    }

    /// What SQLite answers if the tables, or what they hold, are not as the queue made them.
    private static let damages: [ResultCode] = [
        .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH,
    ]

    /// Looks at the file before SQLite does, because opening the database of another program would change it.
    static func check(_ file: FileDescriptor, at path: String) throws(UploadQueueError) {
        var header = [UInt8](repeating: 0, count: 100)
        let count: Int
        do {
            count = try header.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
        } catch {
            throw .damaged(path, "\(error)", underlying: error)
        }
        // A power cut while the database is made may leave zeros, which SQLite's journal then makes an empty database of.
        guard header.contains(where: { $0 != 0 }) else { return }
        guard count == 100, header.starts(with: Data("SQLite format 3\0".utf8)) else {
            throw .damaged(path, "it is no SQLite database")
        }
        // https://www.sqlite.org/fileformat.html, 1.3: the user version and the application's identifier.
        let found = Int32(bigEndian: header[60..<64])
        let maker = Int32(bigEndian: header[68..<72])
        guard found >= 0, maker == application || (maker == 0 && found == 0) else {
            throw .damaged(path, "it is the database of something else")
        }
        guard found <= version else { throw .newer(path, version: Int(found)) }
    }

    /// Makes the tables and indexes. ``Database/checkContent(_:)`` compares them with those of a database that is opened:
    /// changing more than blanks here needs a new version.
    ///
    /// - Parameter version: Which version's tables to make: 4, or the current one by default.
    static func makeTables(in db: Database, version: Int = version) throws {
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
                CREATE INDEX upload_ready ON upload (networks, priority DESC, id) WHERE schedule = 0;
                CREATE INDEX upload_due ON upload (due) WHERE schedule = 1;
                CREATE INDEX upload_sequence ON upload (sequence, id) WHERE sequence IS NOT NULL;
                CREATE INDEX upload_sending ON upload (id) WHERE state = 'sending';
                CREATE INDEX upload_session ON upload (session, id) WHERE session IS NOT NULL;
                CREATE TABLE queue (isPaused INTEGER NOT NULL);
                INSERT INTO queue VALUES (0);
                """)
        if version > 4 { try makeDeliveryTable(in: db) }
    }

    /// Makes the table that version 5 added: for each upload that may have arrived, the first attempt that may have
    /// delivered it.
    static func makeDeliveryTable(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE delivery (
                    id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE,
                    attempt INTEGER NOT NULL
                );
                """)
    }
}

// MARK: - Looking before using

extension Database {
    /// The version of the queue's tables; 0 if there are none yet.
    fileprivate func checkVersion(_ folder: QueueFolder) throws -> Int {
        let found = try Int.fetchOne(self, sql: "PRAGMA user_version") ?? 0
        guard found <= QueueDatabase.version else { throw UploadQueueError.newer(folder.databasePath, version: found) }
        guard found >= 0 else { throw damage("its version is \(found)") }
        return found
    }

    /// Checks that the database consists of the queue's tables and of nothing else, and that it is not damaged.
    ///
    /// A trigger, a view, a generated column or an index with an expression would run within the queue's own statements. A
    /// tree of pages that leads back to itself, or an index with entries of rows that are not there, would be read without
    /// end.
    fileprivate func checkContent(_ folder: QueueFolder) throws {
        let found = try checkVersion(folder)
        switch found {
        case 0:
            guard try schema().isEmpty else { throw damage("it is the database of something else") }
            return
        case 4...QueueDatabase.version:
            let expected = try DatabaseQueue().write { db in
                try QueueDatabase.makeTables(in: db, version: found)
                return try db.schema()
            }
            guard try schema() == expected else { throw damage("its tables are not those of a queue") }
        default:
            try checkTablesOfOlderVersions()
        }
        let pages = try Int64.fetchOne(self, sql: "PRAGMA page_count") ?? 0
        let pageBytes = try Int64.fetchOne(self, sql: "PRAGMA page_size") ?? 0
        let (bytes, isTooLarge) = pages.multipliedReportingOverflow(by: pageBytes)
        // The check below takes memory for each page that there should be.
        guard !isTooLarge, try bytes <= folder.databaseBytes() else { throw damage("it is cut off") }
        let answer = try String.fetchOne(self, sql: "PRAGMA integrity_check(1)") ?? "it cannot be checked"
        guard answer == "ok" else { throw damage(answer) }
    }

    /// Everything that the database consists of, as it was written, apart from blanks and from what ANALYZE adds.
    private func schema() throws -> Set<String> {
        let rows = try Row.fetchAll(
            self, sql: "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat_'")
        return try Set(
            rows.map { row in
                try ["type", "name", "tbl_name", "sql"].map { try row.decode(String?.self, forColumn: $0) ?? "" }
                    .joined(separator: " ").split(whereSeparator: \.isWhitespace).joined(separator: " ")
            })
    }

    /// Versions 1 to 3 have been changed by ALTER TABLE, so that their tables have no single text. Only rows are read from
    /// them: it is enough that their tables are tables.
    private func checkTablesOfOlderVersions() throws {
        let strange = try String.fetchOne(
            self,
            sql: """
                SELECT name FROM sqlite_master AS entry
                WHERE name NOT LIKE 'sqlite_stat_' AND NOT (
                    type = 'table' AND rootpage > 0
                        AND name IN ('upload', 'request', 'response', 'handover', 'sqlite_sequence')
                        AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(entry.name) WHERE hidden <> 0)
                    OR type = 'index' AND (sql IS NULL OR name IN (
                        'upload_ready', 'upload_due', 'upload_sequence', 'upload_sending', 'handover_id')))
                """)
        if let strange { throw damage("\(strange.debugDescription) is none of a queue's tables") }
    }

    private func damage(_ reason: String) -> DatabaseError {
        DatabaseError(resultCode: .SQLITE_CORRUPT, message: reason)
    }
}

extension Int32 {
    fileprivate init(bigEndian bytes: ArraySlice<UInt8>) {
        self.init(bitPattern: bytes.reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
    }
}
