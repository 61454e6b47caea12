import Foundation
import GRDB
import GRDBSQLite
import PostcardFoundation
import Synchronization
import SystemPackage

/// The queue's SQLite database: opening it, its tables, and its errors. Releasing the object closes the database.
final class QueueDatabase: Sendable {
    let path: String
    /// Whether the whole database was checked when it was opened. The check is skipped if the database's files are
    /// unchanged since they were recorded as intact.
    let wasReadThrough: Bool
    private let directory: QueueDirectory
    private let activity: ExpiringActivity
    private unowned let pool: DatabasePool
    /// The pool, which closes the database when it is released. It must not be closed explicitly, because its log is
    /// then not written back (https://github.com/groue/GRDB.swift/issues/739).
    private let owned: Mutex<DatabasePool?>

    /// The version of the tables that this code makes.
    static let version = 7

    /// The application identifier in the file's header, "Post".
    private static let application: Int32 = 0x506F_7374

    /// The maximum size of a row and of a value in bytes. The largest values are the lists of parts, with about 100
    /// bytes per part. The queue writes and reads no larger rows.
    static let maximumRowBytes: Int32 = 64 << 20

    /// Opens the database in a directory, and makes its tables if it is empty.
    ///
    /// - Throws: ``UploadQueueError``. A file that is damaged, older, newer or not a queue's stays unchanged.
    init(_ directory: QueueDirectory, _ activity: ExpiringActivity) throws(UploadQueueError) {
        self.directory = directory
        self.activity = activity
        path = directory.databasePath
        // The files are compared with their recorded state before SQLite makes its other files.
        let isKnown = directory.isAsClosed
        wasReadThrough = !isKnown
        // If opening fails, `deinit` does not run. So an unchecked database is not recorded as intact.
        let pool = try Self.open(directory, readingAll: !isKnown)
        self.pool = pool
        owned = Mutex(pool)
    }

    private static func open(
        _ directory: QueueDirectory, readingAll all: Bool
    ) throws(UploadQueueError) -> DatabasePool {
        let path = directory.databasePath
        var configuration = Configuration()
        configuration.label = "Postcard queue"
        configuration.maximumReaderCount = 2
        // Several processes may use the database at the same time, with short writes.
        configuration.busyMode = .timeout(30)
        configuration.prepareDatabase { db in
            // On Darwin, FULL alone leaves bytes in the drive's cache. Temporary tables are in memory, because their
            // files would be outside the directory.
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
            let pool = try DatabasePool(path: path, configuration: configuration)
            // The pool has set `synchronous` to NORMAL, but committed writes must survive a power failure.
            try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            try pool.read { try $0.checkContent(directory, readingAll: all) }
            try pool.write { db in
                guard try db.checkVersion(directory) == 0 else { return }
                try Self.makeTables(in: db)
                try db.execute(
                    sql: """
                        PRAGMA application_id = \(Self.application);
                        PRAGMA user_version = \(Self.version);
                        """)
            }
            return pool
        } catch {
            throw Self.error(error, at: path)
        }
    }

    deinit {
        // Closing locks the database to write back its log. The system may grant no time for closing.
        let grant = activity.begin()
        defer { grant?.end() }
        owned.withLock { $0 = nil }
        // If another process writes to the database later, its files no longer match the recorded state.
        directory.noteClosing()
    }

    /// Records that the database is intact, because the process may be ended without notice.
    func noteRest() { directory.noteClosing() }

    /// Reads from the database, even while the system is about to suspend the app. According to GRDB's documentation of
    /// `Database.suspendNotification`, iOS does not end a suspended app for the locks of reading.
    func read<Value>(_ work: (Database) throws -> Value) throws(UploadQueueError) -> Value {
        while true {
            do {
                return try pool.read(work)
            } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
                // An interrupted write also interrupts all other uses of the database at that moment.
                continue
            } catch {
                throw Self.error(error, at: path)
            }
        }
    }

    /// Runs a transaction, and waits until its changes are on disk.
    ///
    /// - Throws: ``UploadQueueError``. If its code is ``UploadQueueError/Code/suspended``, the system is about to
    ///   suspend the app, and nothing was changed.
    func write<Value>(_ work: (Database) throws -> Value) throws(UploadQueueError) -> Value {
        try locking { pool in try pool.write(work) }
    }

    /// Runs work that locks the database, within an activity. The work is interrupted if the system is about to suspend
    /// the app, because iOS ends an app that is suspended while it holds such a lock.
    private func locking<Value>(_ work: (DatabasePool) throws -> Value) throws(UploadQueueError) -> Value {
        let pool = pool
        return try activity.perform { () throws(UploadQueueError) in
            do {
                return try work(pool)
            } catch {
                throw Self.error(error, at: path)
            }
        } onExpiry: {
            pool.interrupt()
        }
    }

    /// Runs a transaction without waiting for the disk, for changes such as progress that a power failure may undo.
    func writeWithoutSync<Value>(_ work: (Database) throws -> Value) throws(UploadQueueError) -> Value {
        try locking { pool in
            try pool.writeWithoutTransaction { db in
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
        }
    }

    private static func error(_ error: any Error, at path: String) -> UploadQueueError {
        switch error {
        case let error as UploadQueueError:
            error
        case let error as DatabaseError where damages.contains(error.resultCode):
            .damaged(path, error.message ?? "it is damaged", underlyingError: error)
        case let error as RowDamage:
            .damaged(path, "\(error)", underlyingError: error)
        case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
            .databaseFull(path, error)
        case let error as DatabaseError where error.resultCode == .SQLITE_AUTH:
            // SQLite on iOS reports this error for protected files before the first unlock.
            .locked(error)
        case let error as DatabaseError where [.SQLITE_INTERRUPT, .SQLITE_ABORT].contains(error.resultCode):
            // The error means that the activity has expired.
            .suspended(error)
        case let error as DatabaseError where error.resultCode == .SQLITE_CANTOPEN:
            .unusableDirectory("The queue's database \(path) cannot be opened: \(error).", underlyingError: error)
        default:
            .databaseFailed(path, error)
        }
    }

    /// The result codes of SQLite for tables or contents that the queue has not made.
    private static let damages: [ResultCode] = [
        .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_CONSTRAINT, .SQLITE_MISMATCH,
    ]

    /// Checks the file before SQLite opens it, because SQLite would change the database of another program.
    static func check(_ file: FileDescriptor, at path: String) throws(UploadQueueError) {
        var header = [UInt8](repeating: 0, count: 100)
        let count: Int
        do {
            count = try header.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
        } catch {
            throw .damaged(path, "\(error)", underlyingError: error)
        }
        // A power failure may leave a new database full of zeros. SQLite's journal makes an empty database of it.
        guard header.contains(where: { $0 != 0 }) else { return }
        guard count == 100, header.starts(with: Data("SQLite format 3\0".utf8)) else {
            throw .damaged(path, "it is not an SQLite database")
        }
        // https://www.sqlite.org/fileformat.html, 1.3: the user version and the application's identifier.
        let found = Int32(bigEndian: header[60..<64])
        let maker = Int32(bigEndian: header[68..<72])
        guard found >= 0, maker == application || (maker == 0 && found == 0) else {
            throw .damaged(path, "it is another program's database")
        }
        guard found <= version else { throw .newer(path, version: Int(found), than: version) }
        guard found == 0 || found == version else { throw .older(path, version: Int(found), than: version) }
    }

    /// Makes the tables and indexes. ``Database/checkContent(_:readingAll:)`` compares them with those of an opened
    /// database, so every change except white space needs a new version.
    ///
    /// In the table `upload`, the column `started` is the time of the first attempt after the upload was enqueued or
    /// retried by hand. `conflicts` is the number of conflicts in a row, as `RetrySchedule` counts them.
    /// `interruptions` is the number of attempts in a row that the system has ended. `hasFreshFields` is true if the
    /// latest attempt follows a 401 or the refusal of an expired form. `code`, `reason` and `advice` describe the
    /// failure of the latest attempt. `finished` is the time at which the upload was done. `ended` is the sequence
    /// number of an end that the app has not acknowledged.
    ///
    /// In the table `request`, the column `signed` has the address of a presigned form until its upload is done, and
    /// `statuses` the statuses of success of an endpoint. The table `response` has the latest response, if it belongs
    /// to the latest failure or to success. The table `delivery` has the first attempt that may have delivered the
    /// form, for each upload whose form may have arrived. The columns `done` and `ends` of the table `queue` count the
    /// uploads that were done and the ends of uploads, including those of removed uploads.
    ///
    /// The table `import` has the forms whose picked items are being copied, until their bodies are written.
    ///
    /// The table `resumption` has a row for each upload that was taken back from the system and can resume later, with
    /// the number of the stopped attempt and the resume data. The data is `NULL` until the system has stopped the
    /// attempt.
    private static let tables = """
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
            expires REAL,
            tag BLOB,
            sent INTEGER NOT NULL DEFAULT 0,
            total INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            failures INTEGER NOT NULL DEFAULT 0,
            interruptions INTEGER NOT NULL DEFAULT 0,
            hasFreshFields INTEGER NOT NULL DEFAULT 0,
            code TEXT,
            reason TEXT,
            advice TEXT,
            resource TEXT,
            enqueued REAL NOT NULL,
            started REAL,
            conflicts INTEGER NOT NULL DEFAULT 0,
            finished REAL,
            ended INTEGER
        );
        CREATE TABLE request (
            id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE,
            idempotencyKey TEXT NOT NULL,
            headerFields BLOB NOT NULL,
            contentType TEXT NOT NULL,
            parts BLOB NOT NULL,
            signed BLOB,
            statuses BLOB
        );
        CREATE TABLE response (
            id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE,
            status INTEGER NOT NULL,
            headerFields BLOB NOT NULL,
            body BLOB NOT NULL
        );
        CREATE INDEX upload_ready ON upload (networks, priority DESC, id) WHERE schedule = 0;
        CREATE INDEX upload_due ON upload (due) WHERE schedule = 1;
        CREATE INDEX upload_sequence ON upload (sequence, id) WHERE sequence IS NOT NULL;
        CREATE INDEX upload_sending ON upload (id) WHERE state = 'sending';
        CREATE INDEX upload_session ON upload (session, id) WHERE session IS NOT NULL;
        CREATE INDEX upload_expires ON upload (expires)
            WHERE expires IS NOT NULL AND state NOT IN ('done', 'failed', 'cancelled');
        CREATE INDEX upload_done ON upload (finished, id) WHERE state = 'done' AND ended IS NULL;
        CREATE INDEX upload_ended ON upload (ended, id) WHERE ended IS NOT NULL;
        CREATE TABLE queue (
            isPaused INTEGER NOT NULL,
            done INTEGER NOT NULL DEFAULT 0,
            ends INTEGER NOT NULL DEFAULT 0
        );
        INSERT INTO queue (isPaused) VALUES (0);
        CREATE TABLE delivery (
            id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE,
            attempt INTEGER NOT NULL
        );
        CREATE TABLE import (
            id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE,
            form BLOB NOT NULL
        );
        CREATE TABLE resumption (
            id INTEGER PRIMARY KEY REFERENCES upload (id) ON DELETE CASCADE,
            stopped INTEGER NOT NULL,
            resumeData BLOB
        );
        """

    static func makeTables(in db: Database) throws {
        try db.execute(sql: tables)
    }
}

// MARK: - Checking before use

extension Database {
    /// The version of the queue's tables; 0 if there are no tables yet.
    fileprivate func checkVersion(_ directory: QueueDirectory) throws -> Int {
        let found = try Int.fetchOne(self, sql: "PRAGMA user_version") ?? 0
        guard found <= QueueDatabase.version else {
            throw UploadQueueError.newer(directory.databasePath, version: found, than: QueueDatabase.version)
        }
        guard found >= 0 else { throw damage("its version is \(found)") }
        guard found == 0 || found == QueueDatabase.version else {
            throw UploadQueueError.older(directory.databasePath, version: found, than: QueueDatabase.version)
        }
        return found
    }

    /// Checks that the database has the queue's tables and nothing else, and that it is not damaged.
    ///
    /// - Parameter all: Whether to read the whole database, or else only the definitions of its tables.
    ///
    /// A trigger, a view, a generated column or an index on an expression would run as part of the queue's statements.
    /// A cycle in the tree of pages, or an index with entries for missing rows, could make reading endless.
    fileprivate func checkContent(_ directory: QueueDirectory, readingAll all: Bool) throws {
        guard try checkVersion(directory) > 0 else {
            guard try schema().isEmpty else { throw damage("it is another program's database") }
            return
        }
        let expected = try DatabaseQueue().write { db in
            try QueueDatabase.makeTables(in: db)
            return try db.schema()
        }
        guard try schema() == expected else { throw damage("its tables are not a queue's") }
        let pages = try Int64.fetchOne(self, sql: "PRAGMA page_count") ?? 0
        let pageBytes = try Int64.fetchOne(self, sql: "PRAGMA page_size") ?? 0
        let (bytes, isTooLarge) = pages.multipliedReportingOverflow(by: pageBytes)
        // The check below allocates memory for each page that the file's header announces.
        guard !isTooLarge, try bytes <= directory.databaseBytes() else { throw damage("it is cut off") }
        guard all else { return }
        let result = try String.fetchOne(self, sql: "PRAGMA integrity_check(1)") ?? "it cannot be checked"
        guard result == "ok" else { throw damage(result) }
    }

    /// The SQL statements that made the database, with normalized white space and without the tables of ANALYZE.
    private func schema() throws -> Set<String> {
        let rows = try Row.fetchAll(
            self, sql: "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat_'")
        return try Set(
            rows.map { row in
                try ["type", "name", "tbl_name", "sql"].map { try row.decode(String?.self, forColumn: $0) ?? "" }
                    .joined(separator: " ").split(whereSeparator: \.isWhitespace).joined(separator: " ")
            })
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
