package import Logging
import Synchronization

/// Keeps the metadata of what is logged.
package struct CapturedLog: LogHandler {
    package final class Lines: Sendable {
        private let lines = Mutex<[Logger.Metadata]>([])

        package init() {}

        package var all: [Logger.Metadata] { lines.withLock { $0 } }

        package func add(_ metadata: Logger.Metadata) { lines.withLock { $0.append(metadata) } }
    }

    package let lines: Lines
    package var logLevel: Logger.Level
    package var metadata: Logger.Metadata = [:]

    package init(lines: Lines, logLevel: Logger.Level = .info) {
        self.lines = lines
        self.logLevel = logLevel
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) { lines.add(event.metadata ?? [:]) }
}
