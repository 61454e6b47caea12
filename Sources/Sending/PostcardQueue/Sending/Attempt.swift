package import HTTPTypes
package import PostcardClient
package import PostcardFoundation

/// Identifies an attempt to send an upload, across processes: the upload's UUID, and the number of the attempt, from 1.
package struct AttemptID: Sendable, Hashable, LosslessStringConvertible {
    package let upload: UUID
    package let number: Int

    package init(upload: UUID, number: Int) {
        self.upload = upload
        self.number = number
    }

    /// Reads an identifier from the form that ``description`` has, or returns `nil`.
    package init?(_ description: String) {
        let words = description.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, let upload = UUID(uuidString: String(words[0])), let number = Int(words[1]), number > 0
        else { return nil }
        self.init(upload: upload, number: number)
    }

    package var description: String { "\(upload.uuidString) \(number)" }
}

/// An event of an attempt. Those of a transfer service may arrive late, more than once, and after the upload was
/// cleared.
package enum AttemptEvent: Sendable {
    /// The number of the body's bytes sent so far.
    case sent(AttemptID, bytes: Int64)
    /// The next bytes of the response's body.
    case received(AttemptID, Data)
    /// The attempt is about to end without a response. The data resumes the next attempt.
    case resumable(AttemptID, Data)
    /// The attempt has ended.
    case ended(AttemptID, AttemptEnd)
    /// The service has reported all events for which the system woke the app.
    case deliveredAll
    /// The system has ended the session. What it carried may be lost.
    case invalidated(SessionProblem)
}

/// How an attempt ended.
package enum AttemptEnd: Sendable {
    /// A server responded to the system.
    ///
    /// - Parameters:
    ///   - status: The response's status.
    ///   - headerFields: The response's header fields.
    ///   - url: The URL that responded, after redirects.
    ///   - method: The method of the last request, or `nil` if it is not known.
    ///   - requestURL: The URL of the first request, or `nil` if it is not known. The upload may have another one by now.
    case response(
        status: Int, headerFields: HTTPFields, url: URL?, method: HTTPRequest.Method?, requestURL: URL? = nil)
    /// The system ended the attempt without a response.
    case interrupted(Interruption)
    /// The system carries none of the session's uploads.
    case unavailable(SessionProblem)
    /// There was no response.
    case failed(UploadError)
    /// The attempt has an outcome that is already known: it ended in this process, or never began.
    case known(AttemptOutcome)
}

extension UploadRow {
    /// The identifier of the current attempt.
    var attempt: AttemptID { AttemptID(upload: uuid, number: max(upload.attempts, 1)) }

    /// When an attempt begins that a background session was given before its time, or `nil` for at once.
    var earliestBegin: Date? {
        if case .retrying(let due, _) = upload.state { return due }
        return upload.conditions.notBefore
    }

    /// Whether a sender has the upload.
    ///
    /// - Parameter session: The identifier of its background session, or `nil` if the sender is in this process.
    func isHeld(by session: String?) -> Bool {
        self.session == session && (session != nil || upload.state == .sending)
    }
}
