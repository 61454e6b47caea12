package import PostcardForm
package import PostcardStore
import Synchronization

/// The outcome of a request at the upload routes, for the middleware around them. It also has the observer of the
/// request's form.
///
/// A report lives until the response has been sent, so it does not keep the record: the text of a record may be large,
/// and a client may leave its response unread.
package final class UploadReport: Sendable {
    package enum Outcome: Sendable {
        /// The form became a record.
        case recorded(UploadRecord)
        /// The form was already a record, made by an earlier request.
        case repeated(UploadID)
        /// The upload was deleted.
        case deleted(UploadID)
    }

    private struct State {
        var upload: UploadID?
        var fileCount: Int?
        var observer: (any FormObserver)?
        var onOutcome: (@Sendable (Outcome) -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    /// The observer of the form in the request.
    package var observer: (any FormObserver)? {
        get { state.withLock { $0.observer } }
        set { state.withLock { $0.observer = newValue } }
    }

    /// The identifier of the record that the request made or repeated.
    package var upload: UploadID? { state.withLock { $0.upload } }

    /// The number of files in the record that the request made.
    package var fileCount: Int? { state.withLock { $0.fileCount } }

    /// Calls a closure with the outcome of the request, as soon as it is known.
    package func onOutcome(_ body: @escaping @Sendable (Outcome) -> Void) {
        state.withLock { $0.onOutcome = body }
    }

    package func note(_ outcome: Outcome) {
        let onOutcome = state.withLock { state in
            switch outcome {
            case .recorded(let record): (state.upload, state.fileCount) = (record.id, record.files.count)
            case .repeated(let id): (state.upload, state.fileCount) = (id, nil)
            case .deleted: (state.upload, state.fileCount) = (nil, nil)
            }
            return state.onOutcome
        }
        onOutcome?(outcome)
    }
}

/// Watches the parts of a form while it is received.
package protocol FormObserver: Sendable {
    /// A part has begun.
    ///
    /// - Parameter offset: The offset of the part's content.
    func partBegan(_ header: PartHeader, at offset: Int64)

    /// Further bytes of the part's content were read.
    ///
    /// - Parameter count: The number of these bytes.
    func partRead(_ count: Int)

    /// The first bytes of the current file show that it was damaged before it was sent.
    ///
    /// - Parameter offset: The offset of the part's content.
    func damageFound(_ damage: FileDamage, inFileAt offset: Int64, partIndex: Int)

    /// The part of a text field has ended.
    ///
    /// - Parameter text: The content of the field.
    func fieldEnded(text: [UInt8])

    /// The refusal that the client receives for a problem. An observer that examines the form may know the problem's
    /// cause.
    func refusal(for problem: UploadProblem) async -> UploadProblem
}
