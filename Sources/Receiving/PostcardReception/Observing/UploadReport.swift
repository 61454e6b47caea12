package import PostcardForm
package import PostcardStore
import Synchronization

/// Reports to the middleware which record a request stored, repeated or deleted. Also holds the observer of the
/// request's form.
///
/// A report lives until the client has read the response, so it does not contain the record, which may be large.
package final class UploadReport: Sendable {
    package enum RecordEvent: Sendable {
        /// The form became a new record.
        case recorded(UploadRecord)
        /// An earlier request had already stored the form.
        case repeated(UploadID)
        case deleted(UploadID)
    }

    private struct State {
        var upload: UploadID?
        var fileCount: Int?
        var observer: (any FormObserver)?
        var onRecordEvent: (@Sendable (RecordEvent) -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    package var observer: (any FormObserver)? {
        get { state.withLock { $0.observer } }
        set { state.withLock { $0.observer = newValue } }
    }

    /// The identifier of the record that the request made or repeated.
    package var upload: UploadID? { state.withLock { $0.upload } }

    /// The number of files in the record that the request made.
    package var fileCount: Int? { state.withLock { $0.fileCount } }

    /// Sets the closure that is called as soon as it is known what the request did to a record.
    package func onRecordEvent(_ body: @escaping @Sendable (RecordEvent) -> Void) {
        state.withLock { $0.onRecordEvent = body }
    }

    package func note(_ event: RecordEvent) {
        let onRecordEvent = state.withLock { state in
            switch event {
            case .recorded(let record): (state.upload, state.fileCount) = (record.id, record.files.count)
            case .repeated(let id): (state.upload, state.fileCount) = (id, nil)
            case .deleted: (state.upload, state.fileCount) = (nil, nil)
            }
            return state.onRecordEvent
        }
        onRecordEvent?(event)
    }
}

/// Observes the parts of a form while it is received.
package protocol FormObserver: Sendable {
    /// A part has begun. `offset` is the offset of the part's content in the body.
    func partBegan(_ header: PartHeader, at offset: Int64)

    /// More bytes of the part's content were read. `count` is the number of these bytes.
    func partRead(_ count: Int)

    /// The first bytes of a file show that the file was damaged before it was sent. `offset` is the offset of the
    /// file's content in the body.
    func damageFound(_ damage: FileDamage, inFileAt offset: Int64, partIndex: Int)

    /// A text field has ended.
    func fieldEnded(text: [UInt8])

    /// Returns the refusal for the client. An observer that examines the form may know the cause of a problem.
    func refusal(for problem: UploadProblem) async -> UploadProblem
}
