import HTTPTypes
package import PostcardClient
import PostcardFiles
import PostcardForm
import PostcardFoundation
import PostcardWire

/// What the end of an attempt means for its upload.
package enum AttemptOutcome: Sendable {
    /// The server accepted the form.
    case accepted(QueuedUpload.Response)
    /// The attempt failed. The retry policy decides whether the upload is sent again.
    ///
    /// - Parameter pause: The delay after a failure of this device that passes by itself.
    case failed(UploadError, pause: Duration? = nil)
    /// The attempt has no end that says anything, because the system lost or cancelled it. The upload is sent again.
    case interrupted(Interruption)
    /// The attempt could not begin now, for a reason that is not the upload's. The upload is sent later.
    case postponed(QueuedUpload.Failure)
    /// The attempt did not begin, because its deadline had passed.
    case expired(UploadError)
    /// Nothing says what became of the form. Only a person can find out whether it arrived.
    case unclear(String)
    /// The attempt was stopped. The upload goes back into the queue.
    ///
    /// - Parameter mayHaveArrived: Whether all of the form was sent.
    case stopped(mayHaveArrived: Bool)
}

extension AttemptOutcome {
    var isStopped: Bool { if case .stopped = self { true } else { false } }

    /// - Parameters:
    ///   - end: How the attempt ended.
    ///   - body: The beginning of the response's body.
    ///   - upload: The upload that was sent.
    ///   - statuses: The statuses of success. Defaults to 200 to 299.
    init(_ end: AttemptEnd, body: Data, of upload: QueuedUpload, accepting statuses: Set<Int> = Set(200..<300)) {
        switch end {
        case .known(let outcome):
            self = outcome
        case .interrupted(let interruption):
            self = .interrupted(interruption)
        case .unavailable(let problem):
            self = .postponed(problem.failure)
        case .failed(let error):
            self = .failed(error)
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
                    status: HTTPResponse.Status(code: min(max(status, 0), 999)), headerFields: headerFields, body: body)
                // A success counts however many bytes the system says it has sent. It repeats a request whose
                // connection broke and does not report that: a server that has the form already responds to the second
                // one early. And after a relaunch it may have lost the count.
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

    /// Whether a last request is one by which the system has resumed the upload by itself: it asks the upload resource
    /// what it has, and sends the rest there. The server's response to the rest is its response to the whole form.
    private static func isResumption(_ method: HTTPRequest.Method) -> Bool { method == .patch || method == .head }

    /// The outcome if the system asked the upload resource what it has, and sent nothing after that. The response is
    /// not one to the form, which may have arrived before.
    private static func afterAsking(_ response: UploadResponse, by url: URL) -> AttemptOutcome {
        if response.status.kind == .successful {
            // Revision 01 of the draft has the opposite field.
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

    /// How long to wait before a body is read again that could not be read, for example because the phone was locked.
    private static let bodyPause = Duration.seconds(60)

    /// The outcome of an attempt that failed in this process, or that could not begin.
    ///
    /// - Parameter other: Makes the outcome of an error that is not about the upload.
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
    /// What a queue keeps of a response.
    init(_ response: UploadResponse) {
        self.init(
            status: response.status.code, headerFields: response.headerFields,
            body: response.body.prefix(Self.maximumBodyBytes))
    }
}

extension UploadError {
    /// Whether a server may have accepted the form.
    var mayHaveArrived: Bool { delivery == .responseLost || delivery == .accepted }
}
