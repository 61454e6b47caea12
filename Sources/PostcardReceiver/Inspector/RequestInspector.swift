import PostcardServer
import Synchronization

/// The last requests that came, newest last.
final class RequestInspector: Sendable {
    private struct State {
        var requests: [RecordedRequest] = []
        var lastID = 0
        var bytes = 0
    }

    let options: InspectionOptions
    private let live: LiveEvents
    private let state = Mutex(State())
    private let captures = Atomic<Int>(0)

    init(options: InspectionOptions, live: LiveEvents) {
        self.options = options
        self.live = live
    }

    /// The bytes that are noted of each end of a body: fewer than asked for where many requests are under way.
    var maximumEndBytes: Int {
        let ends = 2 * max(captures.load(ordering: .relaxed), 1)
        return min(options.maximumEndBytes, max(options.maximumBytes / ends, 1))
    }

    func recordingBegins() { captures.add(1, ordering: .relaxed) }

    func recordingEnds() { captures.subtract(1, ordering: .relaxed) }

    func keep(_ request: RecordedRequest) {
        let kept = state.withLock { state in
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
        live.publish(.request(RequestSummary(kept)))
    }

    /// Forgets the request of an upload that is deleted: what it held is to be gone.
    func forget(_ upload: UploadID) {
        state.withLock { state in
            state.requests.removeAll { request in
                guard request.upload == upload else { return false }
                state.bytes -= request.bytes
                return true
            }
        }
    }

    /// All that are kept, newest first.
    var requests: [RecordedRequest] { state.withLock { $0.requests.reversed() } }

    func request(_ id: Int) -> RecordedRequest? {
        state.withLock { state in state.requests.last { $0.id == id } }
    }
}

/// How much of the requests that came is kept to be looked at. It is kept in memory, and gone when the receiver ends.
public struct InspectionOptions: Sendable, Hashable {
    /// How many requests are kept: the last 200 unless set.
    public var maximumRequests = 200

    /// How many bytes are kept of a refused body, of its beginning and of its end each: 64 KiB unless set.
    public var maximumEndBytes = 64 << 10

    /// How many bytes all that is kept of bodies and headers may have together: 16 MiB unless set. Older requests
    /// go when there are more.
    public var maximumBytes = 16 << 20

    /// How many parts of a form are described: the first 200 unless set.
    public var maximumParts = 200

    /// The defaults.
    public init() {}
}
