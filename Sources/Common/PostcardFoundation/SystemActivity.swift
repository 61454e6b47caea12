#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
import Dispatch
import Foundation
import Synchronization
#endif

/// The calls that ask the system not to suspend the app for a moment.
package struct SystemActivity: Sendable {
    /// Begins an activity, during which the system does not suspend the app. Blocks until the system has decided.
    ///
    /// - Parameter expire: Called at most once, if the system is about to suspend the app before the activity has
    ///   ended. May be called when the activity has just ended.
    /// - Returns: A closure that ends the activity, or `nil` if the system is about to suspend the app and grants none.
    package let begin: @Sendable (_ expire: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)?

    package init(begin: @escaping @Sendable (_ expire: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)?) {
        self.begin = begin
    }

    /// The activities on a system that suspends no processes.
    package static let unlimited = SystemActivity { _ in {} }

    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
    /// The expiring activities of `ProcessInfo`, which also exist in extensions.
    package static let usual = SystemActivity { (expire: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)? in
        let answer = ActivityAnswer()
        ProcessInfo.processInfo.performExpiringActivity(withReason: "Postcard") { isExpired in
            if isExpired {
                // Without a call before it, the system grants no activity.
                if !answer.give(false) { expire() }
            } else if answer.give(true) {
                // The activity lasts as long as this block.
                answer.waitForEnd()
            }
        }
        guard answer.wait() else { return nil }
        return { answer.end() }
    }
    #else
    package static let usual = unlimited
    #endif
}

#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
/// The system's answer to a request for an activity, and the activity's end.
private final class ActivityAnswer: Sendable {
    private let answer = Mutex<Bool?>(nil)
    private let given = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// How long to wait for the system, which answers at once unless all threads for its block are taken.
    private static let patience = DispatchTimeInterval.seconds(5)

    /// Sets the answer, unless it is already set. Returns `false` if it is.
    func give(_ isGranted: Bool) -> Bool {
        let isFirst = answer.withLock { answer in
            guard answer == nil else { return false }
            answer = isGranted
            return true
        }
        if isFirst { given.signal() }
        return isFirst
    }

    func wait() -> Bool {
        if given.wait(timeout: .now() + Self.patience) == .timedOut { _ = give(false) }
        return answer.withLock { $0 } ?? false
    }

    func waitForEnd() { ended.wait() }

    func end() { ended.signal() }
}
#endif
