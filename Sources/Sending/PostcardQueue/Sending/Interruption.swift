import PostcardClient
import PostcardFoundation

/// The reason why the system ended an attempt without a response.
///
/// The type also decides how the upload continues. Quitting the app does not count against its uploads. But an upload
/// that the system cancels again and again must fail at some time.
package enum Interruption: String, Sendable, Hashable, CaseIterable {
    /// The attempt was cancelled without a reason.
    case cancelled
    /// The user has quit the app in the app switcher.
    case forceQuit
    /// The user has turned off Background App Refresh for the app.
    case updatesDisabled
    /// The system lacked resources.
    case insufficientResources
    /// The process lost its connection to the system's transfer process.
    case disconnected
    /// The system no longer has the attempt, and did not report its end.
    case lost
}

extension Interruption {
    /// The number of interruptions in a row after which the upload fails. The delays between them add up to about a
    /// day.
    static let maximumCount = 50

    /// The longest delay before an upload is sent again, in seconds.
    private static let longestDelay = 1800.0

    /// Whether the interruption counts against the upload. Users may quit an app as often as they like, and may turn
    /// off Background App Refresh for as long as they like.
    var counts: Bool { self != .forceQuit && self != .updatesDisabled }

    /// How long to wait before the upload is sent again, in seconds.
    ///
    /// - Parameter count: The number of counted interruptions in a row, including the latest.
    func delay(after count: Int) -> Double {
        let first: Double
        switch self {
        // The user has opened the app again, so the upload is sent at once.
        case .forceQuit: return 0
        case .updatesDisabled: return 300
        // The end of the attempt may still be reported.
        case .cancelled, .lost, .disconnected: first = 5
        case .insufficientResources: first = 60
        }
        return Duration.growing(after: count, from: .seconds(first), upTo: .seconds(Self.longestDelay)) / .seconds(1)
    }

    /// The failure to show while the upload waits or after it has failed. The form may have arrived.
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
        return QueuedUpload.Failure(code, message, advice: advice, delivery: .responseLost)
    }

    /// The failure of an upload after too many interruptions.
    func lastFailure(after count: Int) -> QueuedUpload.Failure {
        let failure = failure
        return QueuedUpload.Failure(
            failure.code, "\(failure.message) That happened \(count) times in a row.",
            advice: "Check whether the form has arrived, and retry the upload when the device has more resources.",
            delivery: .responseLost)
    }
}

extension RetryPolicy {
    /// The failure for uploads that an earlier process was still sending when it ended: their forms may have arrived.
    /// `nil` if the policy allows sending such a form again.
    var unclearFailure: QueuedUpload.Failure? {
        repeatsUnclear ? nil : .unclear(after: Interruption.lost.failure)
    }
}

extension AttemptEnd {
    /// Whether the server has accepted the form, in spite of an error that the system reports with the response.
    ///
    /// The system's process stores the response among the app's files. On a locked device (`NSFileProtectionComplete`)
    /// this fails, and the system reports EPERM in `NSPOSIXErrorDomain` although the form arrived.
    ///
    /// - Parameters:
    ///   - status: The status of the response, or `nil` if there is none.
    ///   - domain: The error's domain.
    ///   - code: The error's code.
    package static func isArrival(status: Int?, errorDomain domain: String?, code: Int?) -> Bool {
        guard let status, (200..<300).contains(status) else { return false }
        return domain == "NSPOSIXErrorDomain" && code == 1
    }

    /// Reads the system's codes for background sessions: those of `NSURLErrorDomain` from -999 to -995, and the reason
    /// of a cancellation. Returns `nil` for codes about the network or the server.
    ///
    /// - Parameter reason: The value of `NSURLErrorBackgroundTaskCancelledReasonKey`, if there is one.
    package init?(systemCode code: Int, cancellationReason reason: Int?) {
        switch (code, reason) {
        case (-999, 0?): self = .interrupted(.forceQuit)
        case (-999, 1?): self = .interrupted(.updatesDisabled)
        case (-999, 2?): self = .interrupted(.insufficientResources)
        case (-999, _): self = .interrupted(.cancelled)
        // The code -997 is NSURLErrorBackgroundSessionWasDisconnected.
        case (-997, _): self = .interrupted(.disconnected)
        case (SessionProblem.inUseCode, _): self = .unavailable(.inUse)
        case (SessionProblem.requiresSharedContainerCode, _): self = .unavailable(.requiresSharedContainer)
        default: return nil
        }
    }
}
