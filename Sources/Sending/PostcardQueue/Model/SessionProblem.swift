import PostcardClient

/// Why the system carries none of a background session's uploads.
package enum SessionProblem: Error, Sendable, Hashable {
    /// An extension's session has no app group.
    case requiresSharedContainer
    /// Another process uses the session.
    case inUse
    /// The session ended by itself, several times in a row.
    case invalid(String)
}

extension SessionProblem {
    var message: String {
        switch self {
        case .requiresSharedContainer: "The system does not carry the background session, because it has no app group."
        case .inUse: "Another process uses the background session."
        case .invalid(let reason): "The system ends the background session again and again: \(reason)."
        }
    }

    var advice: String {
        switch self {
        case .requiresSharedContainer: "Set the session's appGroup to a group of the app and its extension."
        case .inUse:
            "Give each run of an extension a session of its own, with BackgroundSession(extension:appGroup:). The uploads "
                + "stay in the queue, and are sent when they are handed over again or the app runs."
        case .invalid: "Run the queue again. If that does not help, restart the device."
        }
    }

    /// What it means that the system has ended a session.
    ///
    /// - Parameters:
    ///   - code: The code in `NSURLErrorDomain`, if there is one.
    ///   - reason: What the system says.
    package init(systemCode code: Int?, _ reason: String) {
        switch code {
        case Self.inUseCode: self = .inUse
        case Self.requiresSharedContainerCode: self = .requiresSharedContainer
        default: self = .invalid(reason)
        }
    }

    /// `NSURLErrorBackgroundSessionInUseByAnotherProcess`
    static let inUseCode = -996
    /// `NSURLErrorBackgroundSessionRequiresSharedContainer`
    static let requiresSharedContainerCode = -995

    /// Whether another session may do better.
    var mayPass: Bool { if case .invalid = self { true } else { false } }

    /// Why an upload could not be sent.
    var failure: QueuedUpload.Failure {
        QueuedUpload.Failure(.sessionUnavailable, message, advice: advice, mayHaveArrived: true)
    }
}
