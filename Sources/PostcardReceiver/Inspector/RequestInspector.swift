import PostcardServer
import Synchronization

/// Records the last requests, newest last.
final class RequestInspector: Sendable {
    private struct State {
        var requests: [RecordedRequest] = []
        var lastID = 0
        var bytes = 0
        var deleted = RecentUploads()
    }

    let options: InspectionOptions
    private let onRecorded: @Sendable (RequestSummary) -> Void
    private let state = Mutex(State())
    private let captures = Atomic<Int>(0)

    /// - Parameter onRecorded: Called with each request once it is recorded.
    init(options: InspectionOptions, onRecorded: @escaping @Sendable (RequestSummary) -> Void) {
        self.options = options
        self.onRecorded = onRecorded
    }

    /// How many bytes of each end of a body are recorded: fewer if many requests are in progress.
    var maximumEndBytes: Int {
        let ends = 2 * max(captures.load(ordering: .relaxed), 1)
        return min(options.maximumEndBytes, max(options.maximumBytes / ends, 1))
    }

    func recordingBegins() { captures.add(1, ordering: .relaxed) }

    func recordingEnds() { captures.subtract(1, ordering: .relaxed) }

    func keep(_ request: RecordedRequest) {
        let kept: RecordedRequest? = state.withLock { state in
            if let upload = request.upload, state.deleted.contains(upload) { return nil }
            var request = request
            state.lastID += 1
            request.id = state.lastID
            state.requests.append(request)
            state.bytes += request.bytes
            while state.requests.count > options.maximumRequests
                || (state.bytes > options.maximumBytes && state.requests.count > 1)
            {
                state.bytes -= state.requests.removeFirst().bytes
            }
            return request
        }
        if let kept { onRecorded(RequestSummary(kept)) }
    }

    /// Removes the request of a deleted upload: nothing of it may be left.
    func forget(_ upload: UploadID) {
        state.withLock { state in
            state.deleted.insert(upload)
            state.requests.removeAll { request in
                guard request.upload == upload else { return false }
                state.bytes -= request.bytes
                return true
            }
        }
    }

    /// All recorded requests, newest first.
    var requests: [RecordedRequest] { state.withLock { $0.requests.reversed() } }

    func request(_ id: Int) -> RecordedRequest? {
        state.withLock { state in state.requests.last { $0.id == id } }
    }
}
