import PostcardServer
import Synchronization

/// Records the last requests of all clients.
final class RequestInspector: Sendable {
    private struct State {
        var requests = SharedHistory<RecordedRequest>()
        var lastID = 0
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
            state.requests.append(request, of: request.client.map { PeerAddress($0) }, bytes: request.bytes)
            _ = state.requests.removeExcess(over: options.maximumRequests, maximumBytes: options.maximumBytes)
            return request
        }
        if let kept { onRecorded(RequestSummary(kept)) }
    }

    /// Removes the request of a deleted upload: nothing of it may be left.
    func forget(_ upload: UploadID) {
        state.withLock { state in
            state.deleted.insert(upload)
            state.requests.removeAll { $0.upload == upload }
        }
    }

    /// All recorded requests, newest first.
    var requests: [RecordedRequest] { state.withLock { $0.requests.items.reversed() } }

    func request(_ id: Int) -> RecordedRequest? {
        state.withLock { state in state.requests.items.last { $0.id == id } }
    }
}
