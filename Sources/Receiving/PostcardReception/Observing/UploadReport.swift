package import PostcardForm
package import PostcardStore
import Synchronization

/// What the upload routes made of a request, for the middleware around them, and who watches its form.
///
/// A report lives until the response has been sent, so it keeps no record: the text of a record may be large, and a client
/// may leave its response unread.
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
        var upload: UploadID?
        var fileCount: Int?
        var observer: (any FormObserver)?
        var onOutcome: (@Sendable (Outcome) -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    /// The observer of the form that the request brings.
    package var observer: (any FormObserver)? {
        get { state.withLock { $0.observer } }
        set { state.withLock { $0.observer = newValue } }
    }

    /// The record that the request made or asked for again.
    package var upload: UploadID? { state.withLock { $0.upload } }

    /// How many files the record has that the request made.
    package var fileCount: Int? { state.withLock { $0.fileCount } }

    /// Calls a closure with what becomes of the request, as soon as that is known.
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
    /// - Parameter offset: The offset of the part's content.
    func partBegan(_ header: PartHeader, at offset: Int64)

    /// - Parameter count: How many further bytes of the part's content were read.
    func partRead(_ count: Int)

    /// The first bytes of the file that is being read show that it was damaged before it was sent.
    ///
    /// - Parameter offset: The offset of the part's content.
    func damageFound(_ damage: FileDamage, inFileAt offset: Int64, partIndex: Int)

    /// - Parameter text: The content of a text field, whose part has ended.
    func fieldEnded(text: [UInt8])

    /// The refusal that the client gets for a problem. An observer that examines the form may know its cause.
    func refusal(for problem: UploadProblem) async -> UploadProblem
}
