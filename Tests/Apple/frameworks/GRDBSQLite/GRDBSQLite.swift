// What the queue uses of SQLite's own interface, which GRDB's package imports as this module.
public let SQLITE_LIMIT_LENGTH: Int32 = 0
public let SQLITE_LIMIT_ATTACHED: Int32 = 7
@discardableResult public func sqlite3_limit(_ db: OpaquePointer!, _ id: Int32, _ newVal: Int32) -> Int32 {
    fatalError()
}
