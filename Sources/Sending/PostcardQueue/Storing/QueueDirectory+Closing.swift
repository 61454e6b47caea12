import PostcardFiles
import PostcardFoundation
import SystemPackage

/// What is noted when a queue is closed. Reading a whole database takes long, and is only needed if a process or the
/// power ended while it wrote, or if someone else has changed the files.
extension QueueDirectory {
    /// Whether the database's files are as they were when the queue was last closed.
    var isAsClosed: Bool {
        guard let state = fileState, let note = try? root.open(Self.closingName) else { return false }
        defer { try? note.close() }
        var bytes = [UInt8](repeating: 0, count: Self.maximumNoteBytes)
        guard let count = try? bytes.withUnsafeMutableBytes({ try note.read(fromAbsoluteOffset: 0, into: $0) }) else {
            return false
        }
        return bytes[..<count].elementsEqual(state.utf8)
    }

    /// Notes what the database's files are like. If that fails, the whole database is read the next time.
    func noteClosing() {
        guard let state = fileState, let note = try? root.openOrCreate(Self.closingName) else { return }
        defer { try? note.close() }
        guard (try? note.resize(to: 0)) != nil else { return }
        _ = try? note.writeAll(state.utf8)
    }

    /// More than any note has.
    private static let maximumNoteBytes = 1024

    /// The sizes and the times of the last changes of the database and its log, or `nil` if they cannot be read. An
    /// empty log is as good as none. SQLite's other files have nothing that outlives a process.
    private var fileState: String? {
        var state = "\(QueueDatabase.version)\n"
        for name in [Self.databaseName, Self.logName] {
            guard let version = try? root.version(of: name), version.bytes > 0 else {
                if name == Self.databaseName { return nil }
                continue
            }
            state += "\(name.string) \(version)\n"
        }
        return state
    }
}
