#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
import Dispatch
import Foundation
import Synchronization
#endif

/// Calls that ask the system not to suspend the app for a while.
package struct SystemActivity: Sendable {
    /// Begins an activity, during which the system does not suspend the app. Blocks until the system has decided.
    ///
    /// - Parameter expire: Called at most once, when the system is about to suspend the app. May also be called just
    ///   after the activity has ended.
    /// - Returns: A closure that ends the activity; `nil` if the system grants none.
    package let begin: @Sendable (_ expire: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)?

    package init(begin: @escaping @Sendable (_ expire: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)?) {
        self.begin = begin
    }

    /// Activities on a system that never suspends processes.
    package static let unlimited = SystemActivity { _ in {} }

    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
    /// The expiring activities of `ProcessInfo`, which are available in extensions too.
    package static let usual = SystemActivity { (expire: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)? in
        let answer = ActivityAnswer()
        ProcessInfo.processInfo.performExpiringActivity(withReason: "Postcard") { isExpired in
            if isExpired {
                // If the first call already reports expiration, the system has granted no activity.
                if !answer.give(false) { expire() }
            } else if answer.give(true) {
                // The activity lasts until this closure returns.
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
/// The system's answer to a request for an activity, and the end of the activity.
private final class ActivityAnswer: Sendable {
    private let answer = Mutex<Bool?>(nil)
    private let given = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// How long to wait for the system's answer, which is late only if all threads are busy.
    private static let patience = DispatchTimeInterval.seconds(5)

    /// Sets the answer. Returns `false` if an answer is already set.
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
