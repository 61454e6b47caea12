import PostcardFoundation
import Synchronization

#if canImport(os)
import os
#endif

/// The log of a queue's uploads in this process. On Apple platforms, the system's log has the same events, with the
/// subsystem `Postcard` and the category `queue`.
///
/// The events have identifiers, codes, servers and the messages of errors, but no texts or files of forms.
final class QueueLog: Sendable {
    enum Level: Sendable { case notice, error }

    private struct Event {
        let date: Date
        let level: Level
        let text: String
    }

    private let latest = Mutex<[Event]>([])

    private static let maximumEvents = 200

    #if canImport(os)
    private static let system = Logger(subsystem: "Postcard", category: "queue")
    #endif

    func note(_ text: String, _ level: Level = .notice, at date: Date) {
        latest.withLock { events in
            if events.count == Self.maximumEvents { events.removeFirst() }
            events.append(Event(date: date, level: level, text: text))
        }
        #if canImport(os)
        switch level {
        case .notice: Self.system.notice("\(text, privacy: .public)")
        case .error: Self.system.error("\(text, privacy: .public)")
        }
        #endif
    }

    /// The latest events as lines of text, oldest first.
    var lines: [String] {
        latest.withLock { $0 }.map { event in
            "\(event.date.formatted(.iso8601)) \(event.level == .error ? "error: " : "")\(event.text)"
        }
    }
}
