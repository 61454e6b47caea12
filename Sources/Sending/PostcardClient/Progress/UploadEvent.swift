/// An event of an upload, from ``UploadClient/events(of:to:method:headerFields:)``.
///
/// A successful upload begins with `preparing` and ends with `done`, with any number of other events between them. A
/// failed one ends with the error that is thrown.
public enum UploadEvent: Sendable {
    /// The form's files are checked and its photos are made to fit, and nothing is sent yet. Always the first event. It
    /// is reported again if the server refuses the form as too large and the photos are made to fit its limit.
    case preparing
    /// There is no network; the upload continues when there is one.
    case waitingForNetwork
    /// The form is being sent. Reported at most once per ``ReportingOptions/progressInterval``, but always at an
    /// attempt's first step, at the end of each part, and when everything was sent.
    case sending(UploadProgress)
    /// The whole form was sent, and the server has not responded yet.
    case awaitingResponse(UploadProgress)
    /// An attempt failed; the next one starts after a delay.
    case retrying(UploadRetry)
    /// The server has accepted the form. Always the last event.
    case done(UploadResponse)

    /// The progress of the upload, for the two events that have it.
    public var progress: UploadProgress? {
        switch self {
        case .sending(let progress), .awaitingResponse(let progress): progress
        case .preparing, .waitingForNetwork, .retrying, .done: nil
        }
    }
}
