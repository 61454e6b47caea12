import Synchronization

/// What the upload routes made of a request, for the middleware around them, and who watches its form.
package final class UploadReport: Sendable {
    package enum Outcome: Sendable {
        /// The form became a record.
        case recorded(UploadRecord)
        /// The form was a record already, made by an earlier request.
        case repeated(UploadID)
        /// The upload was deleted.
        case deleted(UploadID)
    }

    private struct State {
        var outcome: Outcome?
        var observer: (any FormObserver)?
    }

    private let state = Mutex(State())

    /// What became of the request; `nil` until a route has answered it, and for requests of another kind.
    package internal(set) var outcome: Outcome? {
        get { state.withLock { $0.outcome } }
        set { state.withLock { $0.outcome = newValue } }
    }

    /// The observer of the form that the request brings.
    package var observer: (any FormObserver)? {
        get { state.withLock { $0.observer } }
        set { state.withLock { $0.observer = newValue } }
    }

    /// The record that the request made or asked for again.
    package var upload: UploadID? {
        switch outcome {
        case .recorded(let record): record.id
        case .repeated(let id): id
        case .deleted, nil: nil
        }
    }
}
