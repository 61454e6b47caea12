// What the queue uses of GRDB 7. The package is a dependency, but its sources need the SQLite of Apple's SDKs.
public import Dispatch
public import Foundation

public struct Configuration: Sendable {
    public init() { fatalError() }
    public var foreignKeysEnabled: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    public var readonly: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    public var label: String? {
        get { fatalError() }
        set { fatalError() }
    }
    public var busyMode: Database.BusyMode {
        get { fatalError() }
        set { fatalError() }
    }
    public var journalMode: JournalModeConfiguration {
        get { fatalError() }
        set { fatalError() }
    }
    public var observesSuspensionNotifications: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    public var maximumReaderCount: Int {
        get { fatalError() }
        set { fatalError() }
    }
    public var qos: DispatchQoS {
        get { fatalError() }
        set { fatalError() }
    }
    public var automaticMemoryManagement: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    public var persistentReadOnlyConnections: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    public mutating func prepareDatabase(_ setup: @escaping @Sendable (Database) throws -> Void) { fatalError() }
    public enum JournalModeConfiguration: Sendable { case `default`, wal }
}

public final class Database {
    public typealias BusyCallback = @Sendable (_ numberOfTries: Int) -> Bool
    public enum BusyMode: Sendable { case immediateError, timeout(TimeInterval), callback(BusyCallback) }
    public enum CheckpointMode: CInt, Sendable { case passive, full, restart, truncate }
    public enum TransactionCompletion: Sendable { case commit, rollback }
    public enum TransactionKind: String, Sendable { case deferred, immediate, exclusive }
    init() { fatalError() }
    public static let suspendNotification = Notification.Name("GRDB.Database.Suspend")
    public static let resumeNotification = Notification.Name("GRDB.Database.Resume")
    public var sqliteConnection: OpaquePointer? { fatalError() }
    public var lastInsertedRowID: Int64 { fatalError() }
    public var changesCount: Int { fatalError() }
    public var totalChangesCount: Int { fatalError() }
    public var isInsideTransaction: Bool { fatalError() }
    public func execute(sql: String, arguments: StatementArguments = StatementArguments()) throws { fatalError() }
    public func makeStatement(sql: String) throws -> Statement { fatalError() }
    public func cachedStatement(sql: String) throws -> Statement { fatalError() }
    public func tableExists(_ name: String, in schemaName: String? = nil) throws -> Bool { fatalError() }
    public func inTransaction(
        _ kind: TransactionKind? = nil, _ operations: () throws -> TransactionCompletion
    ) throws { fatalError() }
    public func inSavepoint(_ operations: () throws -> TransactionCompletion) throws { fatalError() }
    @discardableResult public func checkpoint(
        _ kind: Database.CheckpointMode = .passive, on dbName: String? = "main"
    ) throws -> (walFrameCount: Int, checkpointedFrameCount: Int) { fatalError() }
}
@available(*, unavailable)
extension Database: Sendable {}

public final class Statement {
    init() { fatalError() }
    public var arguments: StatementArguments {
        get { fatalError() }
        set { fatalError() }
    }
    public func execute(arguments: StatementArguments? = nil) throws { fatalError() }
}
@available(*, unavailable)
extension Statement: Sendable {}

public protocol DatabaseReader: AnyObject, Sendable {
    var configuration: Configuration { get }
    var path: String { get }
    func close() throws
    func interrupt()
    func read<T>(_ value: (Database) throws -> T) throws -> T
    func read<T: Sendable>(_ value: @Sendable (Database) throws -> T) async throws -> T
}
public protocol DatabaseWriter: DatabaseReader {
    func writeWithoutTransaction<T>(_ updates: (Database) throws -> T) rethrows -> T
    func writeWithoutTransaction<T: Sendable>(_ updates: @Sendable (Database) throws -> T) async throws -> T
    func barrierWriteWithoutTransaction<T>(_ updates: (Database) throws -> T) throws -> T
}
extension DatabaseWriter {
    public func write<T>(_ updates: (Database) throws -> T) throws -> T { fatalError() }
    public func write<T: Sendable>(_ updates: @Sendable (Database) throws -> T) async throws -> T { fatalError() }
    public func erase() throws { fatalError() }
    public func vacuum() throws { fatalError() }
}
public final class DatabasePool: DatabaseWriter {
    public init(path: String, configuration: Configuration = Configuration()) throws { fatalError() }
    public var configuration: Configuration { fatalError() }
    public var path: String { fatalError() }
    public func close() throws { fatalError() }
    public func interrupt() { fatalError() }
    public func releaseMemory() { fatalError() }
    public func read<T>(_ value: (Database) throws -> T) throws -> T { fatalError() }
    public func read<T: Sendable>(_ value: @Sendable (Database) throws -> T) async throws -> T { fatalError() }
    public func writeWithoutTransaction<T>(_ updates: (Database) throws -> T) rethrows -> T { fatalError() }
    public func writeWithoutTransaction<T: Sendable>(
        _ updates: @Sendable (Database) throws -> T
    ) async throws -> T { fatalError() }
    public func barrierWriteWithoutTransaction<T>(_ updates: (Database) throws -> T) throws -> T { fatalError() }
}
public final class DatabaseQueue: DatabaseWriter {
    public init(path: String, configuration: Configuration = Configuration()) throws { fatalError() }
    public init(named name: String? = nil, configuration: Configuration = Configuration()) throws { fatalError() }
    public var configuration: Configuration { fatalError() }
    public var path: String { fatalError() }
    public func close() throws { fatalError() }
    public func interrupt() { fatalError() }
    public func read<T>(_ value: (Database) throws -> T) throws -> T { fatalError() }
    public func read<T: Sendable>(_ value: @Sendable (Database) throws -> T) async throws -> T { fatalError() }
    public func inDatabase<T>(_ updates: (Database) throws -> T) rethrows -> T { fatalError() }
    public func inTransaction(
        _ kind: Database.TransactionKind? = nil, _ updates: (Database) throws -> Database.TransactionCompletion
    ) throws { fatalError() }
    public func writeWithoutTransaction<T>(_ updates: (Database) throws -> T) rethrows -> T { fatalError() }
    public func writeWithoutTransaction<T: Sendable>(
        _ updates: @Sendable (Database) throws -> T
    ) async throws -> T { fatalError() }
    public func barrierWriteWithoutTransaction<T>(_ updates: (Database) throws -> T) throws -> T { fatalError() }
}

public struct DatabaseMigrator: Sendable {
    public init() { fatalError() }
    public mutating func registerMigration(
        _ identifier: String, migrate: @escaping @Sendable (Database) throws -> Void
    ) { fatalError() }
    public func migrate(_ writer: any DatabaseWriter) throws { fatalError() }
}

public struct ResultCode: RawRepresentable, Equatable, Hashable, Sendable {
    public let rawValue: CInt
    public init(rawValue: CInt) { self.rawValue = rawValue }
    public var primaryResultCode: ResultCode { fatalError() }
    public static func ~= (pattern: ResultCode, code: ResultCode) -> Bool { fatalError() }
    public static let SQLITE_OK = ResultCode(rawValue: 0)
    public static let SQLITE_ERROR = ResultCode(rawValue: 1)
    public static let SQLITE_PERM = ResultCode(rawValue: 3)
    public static let SQLITE_ABORT = ResultCode(rawValue: 4)
    public static let SQLITE_BUSY = ResultCode(rawValue: 5)
    public static let SQLITE_LOCKED = ResultCode(rawValue: 6)
    public static let SQLITE_READONLY = ResultCode(rawValue: 8)
    public static let SQLITE_INTERRUPT = ResultCode(rawValue: 9)
    public static let SQLITE_IOERR = ResultCode(rawValue: 10)
    public static let SQLITE_CORRUPT = ResultCode(rawValue: 11)
    public static let SQLITE_FULL = ResultCode(rawValue: 13)
    public static let SQLITE_CANTOPEN = ResultCode(rawValue: 14)
    public static let SQLITE_CONSTRAINT = ResultCode(rawValue: 19)
    public static let SQLITE_TOOBIG = ResultCode(rawValue: 18)
    public static let SQLITE_MISMATCH = ResultCode(rawValue: 20)
    public static let SQLITE_AUTH = ResultCode(rawValue: 23)
    public static let SQLITE_NOTADB = ResultCode(rawValue: 26)
}
public struct DatabaseError: Error, CustomStringConvertible {
    public init(
        resultCode: ResultCode = .SQLITE_ERROR, message: String? = nil, sql: String? = nil,
        arguments: StatementArguments? = nil, publicStatementArguments: Bool = false
    ) { fatalError() }
    public var resultCode: ResultCode { fatalError() }
    public var extendedResultCode: ResultCode { fatalError() }
    public var message: String? { fatalError() }
    public var sql: String? { fatalError() }
    public var description: String { fatalError() }
}

public protocol DatabaseValueConvertible {
    static func fromDatabaseValue(_ dbValue: DatabaseValue) -> Self?
}
extension DatabaseValueConvertible {
    public static func fromDatabaseValue(_ dbValue: DatabaseValue) -> Self? { fatalError() }
}
public struct DatabaseValue: Hashable, Sendable, DatabaseValueConvertible {
    public enum Storage: Sendable { case null, int64(Int64), double(Double), string(String), blob(Data) }
    public var storage: Storage { fatalError() }
    public var isNull: Bool { fatalError() }
    public static func == (left: DatabaseValue, right: DatabaseValue) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
}
public protocol StatementColumnConvertible {}
extension Bool: DatabaseValueConvertible, StatementColumnConvertible {}
extension Int: DatabaseValueConvertible, StatementColumnConvertible {}
extension Int32: DatabaseValueConvertible, StatementColumnConvertible {}
extension Int64: DatabaseValueConvertible, StatementColumnConvertible {}
extension UInt32: DatabaseValueConvertible, StatementColumnConvertible {}
extension Double: DatabaseValueConvertible, StatementColumnConvertible {}
extension String: DatabaseValueConvertible, StatementColumnConvertible {}
extension Data: DatabaseValueConvertible, StatementColumnConvertible {}
extension Date: DatabaseValueConvertible, StatementColumnConvertible {}
extension UUID: DatabaseValueConvertible, StatementColumnConvertible {}
extension URL: DatabaseValueConvertible {}
extension Optional: DatabaseValueConvertible where Wrapped: DatabaseValueConvertible {}
extension Optional: StatementColumnConvertible where Wrapped: StatementColumnConvertible {}

extension DatabaseValueConvertible {
    public static func fetchOne(
        _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
    ) throws -> Self? { fatalError() }
    public static func fetchAll(
        _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
    ) throws -> [Self] { fatalError() }
    public static func fetchOne(_ statement: Statement, arguments: StatementArguments? = nil) throws -> Self? {
        fatalError()
    }
    public static func fetchAll(_ statement: Statement, arguments: StatementArguments? = nil) throws -> [Self] {
        fatalError()
    }
}
extension DatabaseValueConvertible where Self: Hashable {
    public static func fetchSet(
        _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
    ) throws -> Set<Self> { fatalError() }
}

public struct StatementArguments: Hashable, Sendable, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
    public init() { fatalError() }
    public init(_ values: some Sequence<(any DatabaseValueConvertible)?>) { fatalError() }
    public init(_ values: some Sequence<some DatabaseValueConvertible>) { fatalError() }
    public init(_ dictionary: [String: (any DatabaseValueConvertible)?]) { fatalError() }
    public init(arrayLiteral elements: (any DatabaseValueConvertible)?...) { fatalError() }
    public init(dictionaryLiteral elements: (String, (any DatabaseValueConvertible)?)...) { fatalError() }
    public static func + (lhs: StatementArguments, rhs: StatementArguments) -> StatementArguments { fatalError() }
    public static func += (lhs: inout StatementArguments, rhs: StatementArguments) { fatalError() }
}

public protocol Cursor<Element>: AnyObject {
    associatedtype Element
    func next() throws -> Element?
}
extension Cursor {
    public func forEach(_ body: (Element) throws -> Void) throws { fatalError() }
    public func map<T>(_ transform: @escaping (Element) throws -> T) -> AnyCursor<T> { fatalError() }
}
public final class AnyCursor<Element>: Cursor {
    init() { fatalError() }
    public func next() throws -> Element? { fatalError() }
}
extension Array {
    public init<C: Cursor>(_ cursor: C, minimumCapacity: Int = 0) throws where C.Element == Element { fatalError() }
}
public final class RowCursor: Cursor {
    init() { fatalError() }
    public func next() throws -> Row? { fatalError() }
}
public final class Row: Hashable {
    public init() { fatalError() }
    public subscript(_ index: Int) -> (any DatabaseValueConvertible)? { fatalError() }
    public subscript<Value: DatabaseValueConvertible>(_ index: Int) -> Value { fatalError() }
    public subscript(_ columnName: String) -> (any DatabaseValueConvertible)? { fatalError() }
    public subscript<Value: DatabaseValueConvertible>(_ columnName: String) -> Value { fatalError() }
    public var count: Int { fatalError() }
    public var columnNames: [String] { fatalError() }
    public func hasColumn(_ columnName: String) -> Bool { fatalError() }
    public func decode<Value: DatabaseValueConvertible>(
        _ type: Value.Type = Value.self, forColumn columnName: String
    ) throws -> Value { fatalError() }
    public func copy() -> Row { fatalError() }
    public static func fetchCursor(
        _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
    ) throws -> RowCursor { fatalError() }
    public static func fetchAll(
        _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
    ) throws -> [Row] { fatalError() }
    public static func fetchSet(
        _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
    ) throws -> Set<Row> { fatalError() }
    public static func fetchOne(
        _ db: Database, sql: String, arguments: StatementArguments = StatementArguments()
    ) throws -> Row? { fatalError() }
    public static func fetchCursor(_ statement: Statement, arguments: StatementArguments? = nil) throws -> RowCursor {
        fatalError()
    }
    public static func fetchAll(_ statement: Statement, arguments: StatementArguments? = nil) throws -> [Row] {
        fatalError()
    }
    public static func fetchOne(_ statement: Statement, arguments: StatementArguments? = nil) throws -> Row? {
        fatalError()
    }
    public static func == (lhs: Row, rhs: Row) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
}
@available(*, unavailable)
extension Row: Sendable {}
public struct RowDecodingError: Error, Sendable {}
