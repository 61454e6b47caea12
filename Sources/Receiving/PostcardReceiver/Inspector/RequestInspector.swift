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
    private let wholeBytes = Atomic<Int>(0)

    /// - Parameter onRecorded: Called with each request once it is recorded.
    init(options: InspectionOptions, onRecorded: @escaping @Sendable (RequestSummary) -> Void) {
        self.options = options
        self.onRecorded = onRecorded
    }

    /// How many bytes of each end of a body are recorded: fewer if many requests are in progress.
    var maximumEndBytes: Int {
        min(options.maximumEndBytes, max(share / 2, 1))
    }

    /// How many bytes one of the requests in progress may keep. Bodies that are kept whole and ends of bodies have half
    /// of all bytes each.
    private var share: Int { options.maximumBytes / (2 * max(captures.load(ordering: .relaxed), 1)) }

    /// How many bytes a body may have that is kept whole: fewer if many requests are in progress.
    ///
    /// - Parameter held: How many bytes of it are kept.
    func maximumWholeBytes(holding held: Int) -> Int {
        min(share, options.maximumBytes / 2 - (wholeBytesInProgress - held))
    }

    /// How many bytes are kept of all bodies in progress that are kept whole.
    var wholeBytesInProgress: Int { wholeBytes.load(ordering: .relaxed) }

    /// Counts bytes of bodies that are kept whole; fewer than 0 if they are kept no longer.
    func holds(_ bytes: Int) { wholeBytes.add(bytes, ordering: .relaxed) }

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
