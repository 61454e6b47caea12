import Logging
import Synchronization

/// Keeps the metadata of what is logged.
struct CapturedLog: LogHandler {
    final class Lines: Sendable {
        private let lines = Mutex<[Logger.Metadata]>([])

        var all: [Logger.Metadata] { lines.withLock { $0 } }

        func add(_ metadata: Logger.Metadata) { lines.withLock { $0.append(metadata) } }
    }

    let lines: Lines
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.add(event.metadata ?? [:]) }
}
