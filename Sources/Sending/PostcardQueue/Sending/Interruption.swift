import PostcardClient
import PostcardFoundation

/// Why the system ended an attempt without a response.
///
/// What follows from it is decided here, without the system: a user who quits an app does not make its uploads worse,
/// and a system that cancels an upload over and over must not do so in silence.
package enum Interruption: String, Sendable, Hashable, CaseIterable {
    /// The attempt was cancelled, without a reason.
    case cancelled
    /// The user has quit the app in the app switcher.
    case forceQuit
    /// The user has turned off Background App Refresh for the app.
    case updatesDisabled
    /// The system lacked resources.
    case insufficientResources
    /// The process lost its connection to the system's process that transfers.
    case disconnected
    /// The system no longer has the attempt, and did not report how it ended.
    case lost
}

extension Interruption {
    /// How often in a row the system may end an upload's attempts before the upload fails. With the delays between
    /// them, that takes a day.
    static let maximumCount = 50

    /// The longest delay before an upload is sent again, in seconds.
    private static let longestDelay = 1800.0

    /// Whether the interruption counts as one of several in a row, after which the upload fails. A person may quit an
    /// app as often as they like, and an upload waits as long as the user has turned off background updates.
    var counts: Bool { self != .forceQuit && self != .updatesDisabled }

    /// How long to wait before the upload is sent again, in seconds.
    ///
    /// - Parameter count: The number of interruptions in a row that count, with the latest.
    func delay(after count: Int) -> Double {
        let first: Double
        switch self {
        // The app runs again, because the user has opened it.
        case .forceQuit: return 0
        case .updatesDisabled: return 300
        // The end of the attempt may still be reported.
        case .cancelled, .lost, .disconnected: first = 5
        case .insufficientResources: first = 60
        }
        return Duration.growing(after: count, from: .seconds(first), upTo: .seconds(Self.longestDelay)) / .seconds(1)
    }

    /// Why the upload waits or has failed. It may have arrived by then.
    var failure: QueuedUpload.Failure {
        let (code, message, advice): (UploadError.Code, String, String?) =
            switch self {
            case .cancelled: (.interrupted, "The system cancelled the upload.", nil)
            case .forceQuit: (.forceQuit, "The app was quit in the app switcher, which cancels its uploads.", nil)
            case .updatesDisabled:
                (
                    .backgroundUpdatesDisabled,
                    "The system cancelled the upload, because background updates are disabled for the app.",
                    "Turn on Background App Refresh for the app in Settings."
                )
            case .insufficientResources:
                (.insufficientResources, "The system cancelled the upload, because it lacks resources.", nil)
            case .disconnected: (.interrupted, "The connection to the system's transfer service was lost.", nil)
            case .lost:
                (.interrupted, "The system no longer has the upload and did not report how it ended.", nil)
            }
        return QueuedUpload.Failure(code, message, advice: advice, mayHaveArrived: true)
    }

    /// Why the upload is not sent again.
    func lastFailure(after count: Int) -> QueuedUpload.Failure {
        let failure = failure
        return QueuedUpload.Failure(
            failure.code, "\(failure.message) That happened \(count) times in a row.",
            advice: "Check whether the form has arrived, and retry the upload when the device has more resources.",
            mayHaveArrived: true)
    }
}

extension RetryPolicy {
    /// Why uploads fail that were being sent when a process ended, and that are not sent again if a server may have
    /// them.
    var unclearFailure: QueuedUpload.Failure? {
        repeatsUnclear ? nil : .unclear(after: Interruption.lost.failure)
    }
}

extension AttemptEnd {
    /// Whether the server has accepted the form although the system reports an error beside its response.
    ///
    /// The system's process stores the response among the app's files. If these cannot be written while the device is
    /// locked (`NSFileProtectionComplete`), it reports EPERM in `NSPOSIXErrorDomain` at the end of an upload that
    /// arrived.
    ///
    /// - Parameters:
    ///   - status: The status of the response, or `nil` if there is none.
    ///   - domain: The error's domain.
    ///   - code: The error's code.
    package static func isArrival(status: Int?, errorDomain domain: String?, code: Int?) -> Bool {
        guard let status, (200..<300).contains(status) else { return false }
        return domain == "NSPOSIXErrorDomain" && code == 1
    }

    /// What the system's codes for background sessions mean: those of `NSURLErrorDomain` from -999 to -995, and the
    /// reasons of a cancellation. `nil` for codes that say something about the network or the server.
    ///
    /// - Parameter reason: The value of `NSURLErrorBackgroundTaskCancelledReasonKey`, if there is one.
    package init?(systemCode code: Int, cancellationReason reason: Int?) {
        switch (code, reason) {
        case (-999, 0?): self = .interrupted(.forceQuit)
        case (-999, 1?): self = .interrupted(.updatesDisabled)
        case (-999, 2?): self = .interrupted(.insufficientResources)
        case (-999, _): self = .interrupted(.cancelled)
        // NSURLErrorBackgroundSessionWasDisconnected
        case (-997, _): self = .interrupted(.disconnected)
        case (SessionProblem.inUseCode, _): self = .unavailable(.inUse)
        case (SessionProblem.requiresSharedContainerCode, _): self = .unavailable(.requiresSharedContainer)
        default: return nil
        }
    }
}
