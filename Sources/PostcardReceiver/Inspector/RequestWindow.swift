import PostcardServer
import Synchronization

/// The last requests that came, newest last.
final class RequestWindow: Sendable {
    private struct State {
        var requests: [KeptRequest] = []
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

    func captureBegins() { captures.add(1, ordering: .relaxed) }

    func captureEnds() { captures.subtract(1, ordering: .relaxed) }

    func keep(_ request: KeptRequest) {
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
    var requests: [KeptRequest] { state.withLock { $0.requests.reversed() } }

    func request(_ id: Int) -> KeptRequest? {
        state.withLock { state in state.requests.last { $0.id == id } }
    }
}
