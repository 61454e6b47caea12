package import Foundation
package import PostcardQueue

/// Time that passes 25 times as fast as the system's, so that no test waits for a queue's delays. It is the same in all
/// processes. `POSTCARD_DAEMON_SPEED` changes how fast.
package enum FastTime {
    private static let factor = ProcessInfo.processInfo.environment["POSTCARD_DAEMON_SPEED"].flatMap(Int.init) ?? 25

    private static let start = ContinuousClock.now

    /// The clocks of queues that use a ``TransferDaemon``. As on Apple's platforms, a queue looks for changes each minute:
    /// once a second, which is 25 times here, would keep a processor busy.
    package static var time: QueueTime {
        QueueTime(
            date: { date }, instant: { start + (.now - start) * factor },
            sleep: { try await Task.sleep(until: start + ($0 - start) / factor, clock: .continuous) },
            pollInterval: .seconds(60))
    }

    /// The duration on a queue's clock that takes this long.
    package static func lasting(_ duration: Duration) -> Duration { duration * factor }

    private static var date: Date { Date(timeIntervalSince1970: Date().timeIntervalSince1970 * Double(factor)) }

    /// How many seconds it takes until a date.
    package static func seconds(until date: Date) -> Double { date.timeIntervalSince(self.date) / Double(factor) }
}
