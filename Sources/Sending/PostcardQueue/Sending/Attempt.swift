package import HTTPTypes
package import PostcardClient
import PostcardFiles
import PostcardForm
package import PostcardFoundation
import PostcardWire

/// Identifies an attempt to send an upload, across processes: the upload's UUID, and the number of the attempt, from 1.
package struct AttemptID: Sendable, Hashable, LosslessStringConvertible {
    package let upload: UUID
    package let number: Int

    package init(upload: UUID, number: Int) {
        self.upload = upload
        self.number = number
    }

    /// Reads an identifier from its ``description``. Returns `nil` if the text is not an identifier.
    package init?(_ description: String) {
        let words = description.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, let upload = UUID(uuidString: String(words[0])), let number = Int(words[1]), number > 0
        else { return nil }
        self.init(upload: upload, number: number)
    }

    package var description: String { "\(upload.uuidString) \(number)" }
}

/// An event of an attempt. A transfer service may report events late, more than once, and after the upload was cleared.
package enum AttemptEvent: Sendable {
    /// The number of the body's bytes sent so far.
    case sent(AttemptID, bytes: Int64)
    /// The next bytes of the response's body.
    case received(AttemptID, Data)
    /// The attempt is about to end without a response. The data is the resume data for the next attempt.
    case resumable(AttemptID, Data)
    /// The attempt has ended.
    case ended(AttemptID, AttemptEnd)
    /// The service has reported all events for which the system woke the app.
    case deliveredAll
    /// The system has ended the session. Its transfers may be lost.
    case invalidated(SessionProblem)
}

/// The way in which an attempt ended. `QueueMachine.EndedAttempt` has the end and the response's body. From both, the
/// queue decides the ``AttemptOutcome``. The outcome then leads to the `Settlement`, which the database records.
package enum AttemptEnd: Sendable {
    /// The system received a server's response.
    ///
    /// - Parameters:
    ///   - status: The response's status.
    ///   - headerFields: The response's header fields.
    ///   - url: The URL that responded, after redirects.
    ///   - method: The method of the last request; `nil` if it is not known.
    ///   - requestURL: The URL of the first request; `nil` if it is not known. The upload's URL may have changed since.
    case response(
        status: Int, headerFields: HTTPFields, url: URL?, method: HTTPRequest.Method?, requestURL: URL? = nil)
    /// The system ended the attempt without a response.
    case interrupted(Interruption)
    /// The system does not accept the session's uploads.
    case unavailable(SessionProblem)
    /// The attempt failed without a response.
    case failed(UploadError)
    /// The outcome of the attempt is already known, because the attempt ended in this process or never began.
    case known(AttemptOutcome)
}

extension UploadRow {
    /// The identifier of the current attempt.
    var attempt: AttemptID { AttemptID(upload: uuid, number: max(upload.attempts, 1)) }

    /// When the system begins an attempt that was handed over before it was due; `nil` to begin at once.
    var earliestBegin: Date? {
        if case .retrying(let due, _) = upload.state { return due }
        return upload.conditions.notBefore
    }

    /// Whether a sender has the upload. A background session also has uploads that are due later.
    ///
    /// - Parameter session: The identifier of the sender's background session; `nil` for a sender in this process.
    func isHeld(by session: String?) -> Bool {
        self.session == session && (session != nil || upload.state == .sending)
    }
}

/// The outcome of an attempt for its upload.
package enum AttemptOutcome: Sendable {
    /// The server accepted the form.
    case accepted(QueuedUpload.Response)
    /// The attempt failed. The retry policy decides whether the upload is sent again.
    ///
    /// - Parameter pause: The delay after a temporary failure of this device, such as a locked phone.
    case failed(UploadError, pause: Duration? = nil)
    /// The system lost or cancelled the attempt, so its result is unknown. The upload is sent again.
    case interrupted(Interruption)
    /// The attempt could not begin now, for a reason other than the upload. The upload is sent later.
    case postponed(QueuedUpload.Failure)
    /// The attempt did not begin, because its deadline had passed.
    case expired(UploadError)
    /// It is unknown whether the server accepted the form, and only a person can find out.
    case unclear(String)
    /// The attempt was stopped. The upload goes back into the queue.
    ///
    /// - Parameter mayHaveArrived: Whether the whole form was sent.
    case stopped(mayHaveArrived: Bool)
}

extension AttemptOutcome {
    var isStopped: Bool { if case .stopped = self { true } else { false } }

    /// Decides the outcome of an attempt from its end.
    ///
    /// - Parameters:
    ///   - end: The end of the attempt.
    ///   - body: The beginning of the response's body.
    ///   - upload: The upload that was sent.
    ///   - statuses: The statuses of success. Defaults to 200 to 299.
    init(_ end: AttemptEnd, body: Data, of upload: QueuedUpload, accepting statuses: Set<Int> = Set(200..<300)) {
        switch end {
        case .known(let outcome): self = outcome
        case .interrupted(let interruption): self = .interrupted(interruption)
        case .unavailable(let problem): self = .postponed(problem.failure)
        case .failed(let error): self = .failed(error)
        case .response(let status, let headerFields, let url, let method, let requestURL):
            let address = requestURL ?? upload.url
            if let url, !url.hasOrigin(of: address) {
                self = .unclear(
                    "The server at \(address.origin) redirected the upload to \(url.origin). Enqueue the form with that "
                        + "address if it is the right one.")
            } else if let method, method != upload.method, !Self.isResumption(method) {
                self = .unclear(
                    "The server redirected the upload to \(url?.withoutQuery ?? "another address"), and the form was "
                        + "not sent there: \(upload.method) became \(method). Check whether it arrived before you retry."
                )
            } else {
                let response = UploadResponse(
                    status: HTTPResponse.Status(clamping: status), headerFields: headerFields, body: body)
                // A success counts even if the system reports too few bytes sent. After a broken connection, the system
                // repeats the request and does not report that. A server that already has the form responds early. The
                // system may also have lost the count after a relaunch.
                let isAccepted = statuses.contains(response.status.code)
                self =
                    if method == .head {
                        Self.afterAsking(response, by: address)
                    } else if isAccepted {
                        .accepted(QueuedUpload.Response(response))
                    } else {
                        .failed(.refusedForm(response, by: address))
                    }
            }
        }
    }

    /// Whether the system used this method to resume an upload by itself: HEAD asks the upload resource for its offset,
    /// and PATCH sends the missing bytes. The response to PATCH is the server's response to the whole form.
    private static func isResumption(_ method: HTTPRequest.Method) -> Bool { method == .patch || method == .head }

    /// The outcome if the system sent nothing after asking the upload resource for its offset. The response is not
    /// about the form. The form may have arrived before.
    private static func afterAsking(_ response: UploadResponse, by url: URL) -> AttemptOutcome {
        if response.status.kind == .successful {
            // Both fields are read. In revision 01 of the draft, another field has the opposite meaning.
            let fields = response.headerFields
            let isComplete =
                fields.uploadCompleteness(in: .newest) == true || fields.uploadCompleteness(in: .interop3) == true
            return isComplete
                ? .accepted(QueuedUpload.Response(response))
                : .unclear(
                    "The system asked \(url.origin) how much of the form it has, and sent nothing after that. Check "
                        + "whether the form arrived before you retry.")
        }
        let refusal = UploadError.refusedForm(response, by: url)
        return .failed(UploadError(stored: refusal.code, refusal.message, response: response, delivery: .responseLost))
    }

    /// How long to wait before reading a body again after reading has failed, such as on a locked phone.
    private static let bodyPause = Duration.seconds(60)

    /// The outcome of an attempt that failed in this process or could not begin.
    ///
    /// - Parameter other: Makes the outcome of an error that does not concern the upload.
    init(_ error: any Error, otherwise other: (any Error) -> AttemptOutcome) {
        switch error {
        case let error as UploadError:
            self = .failed(error, pause: error.formError?.code == .fileUnreadable ? Self.bodyPause : nil)
        case let error as FileError where error.mayPass:
            self = .failed(.unreadableBody("\(error)", underlyingError: error), pause: Self.bodyPause)
        case let error as FileError:
            self = .failed(
                .unreadableBody(
                    "The form is no longer in the queue's directory. Enqueue it again. \(error)",
                    underlyingError: error))
        case let error as FormError:
            self = .failed(.unreadableBody(error.message, underlyingError: error), pause: Self.bodyPause)
        default:
            self = other(error)
        }
    }
}

extension QueuedUpload.Response {
    /// Makes the response that a queue stores from a client's response.
    init(_ response: UploadResponse) {
        self.init(
            status: response.status, headerFields: response.headerFields,
            body: response.body.prefix(Self.maximumBodyBytes))
    }
}
