import HTTPTypes
import Hummingbird
import PostcardFoundation
import PostcardReception
import PostcardServer
import Synchronization

/// Records the latest requests of all clients.
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

    /// - Parameter onRecorded: Called after each recorded request.
    init(options: InspectionOptions, onRecorded: @escaping @Sendable (RequestSummary) -> Void) {
        self.options = options
        self.onRecorded = onRecorded
    }

    /// The maximum number of bytes recorded at each end of a body. The maximum shrinks if many requests are in
    /// progress.
    var maximumEndBytes: Int {
        min(options.maximumEndBytes, max(share / 2, 1))
    }

    /// The number of bytes that each request in progress may keep. Half of the memory is for whole bodies, and half for
    /// the ends of other bodies.
    private var share: Int { options.maximumBytes / (2 * max(captures.load(ordering: .relaxed), 1)) }

    /// The maximum size of a body that is kept whole, of which `held` bytes are kept already. The maximum shrinks if
    /// many requests are in progress.
    func maximumWholeBytes(holding held: Int) -> Int {
        min(share, options.maximumBytes / 2 - (wholeBytesInProgress - held))
    }

    /// The total size, in bytes, of the bodies in progress that are kept whole.
    var wholeBytesInProgress: Int { wholeBytes.load(ordering: .relaxed) }

    /// Counts bytes of bodies that are kept whole. A negative number means that bytes were released.
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

    /// Removes the record of the request that created a deleted upload.
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

/// Limits of the recorded requests, which are kept in memory until the receiver ends. If there are too many requests,
/// the oldest request of the address with the most requests is removed.
public struct InspectionOptions: Sendable, Hashable {
    /// The maximum number of recorded requests. Defaults to 200.
    public var maximumRequests = 200

    /// The number of bytes recorded at each end of a refused body. Defaults to 64 KiB.
    public var maximumEndBytes = 64 << 10

    /// The maximum total size of all recorded bodies and headers, in bytes. Defaults to 8 MiB.
    public var maximumBytes = 8 << 20

    /// The maximum number of parts that are described for each form. Defaults to 200.
    public var maximumParts = 200

    /// Makes options with the default values.
    public init() {}
}

/// The uploads of the latest events of one kind, such as deletions. A client can delete an upload while the request
/// that created the upload is still in progress. When that request ends, its upload is therefore looked up in the
/// latest deletions.
struct RecentUploads: Sendable {
    private var ordered: [UploadID] = []
    private var known: Set<UploadID> = []

    private static let maximum = 1000

    func contains(_ id: UploadID) -> Bool { known.contains(id) }

    /// Adds an upload. Returns whether the upload was new.
    @discardableResult
    mutating func insert(_ id: UploadID) -> Bool {
        guard known.insert(id).inserted else { return false }
        ordered.append(id)
        if ordered.count > Self.maximum { known.remove(ordered.removeFirst()) }
        return true
    }
}

/// Records all requests that have a body or use the upload path, even if they are refused. The middleware must precede
/// all middleware that may refuse a request.
struct InspectionMiddleware<Context: RequestContext>: RouterMiddleware {
    let inspector: RequestInspector
    let uploadPath: String
    /// The scheme in the command for curl: `http` or `https`.
    let scheme: String

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let connection = UploadConnection.current
        guard isRecorded(request) else { return try await recordingRefusals(request, connection, context, next) }
        return try await keeping(request, connection, context, next)
    }

    private func keeping(
        _ request: Request, _ connection: UploadConnection?, _ context: Context,
        _ next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let recorder = RequestRecorder(request, for: inspector)
        let received = Date()
        let start = ContinuousClock.now
        var observed = request
        observed.body = RequestBody(asyncSequence: ObservedBody(recorder: recorder))
        connection?.report.observer = recorder
        // The recorder is removed before the response is sent, because the client may read the response slowly.
        defer { connection?.report.observer = nil }
        func keep(_ ending: RecordedRequest.Ending, _ notes: RequestRecorder.Notes) {
            let kept = RecordedRequest(
                request, on: connection, scheme: scheme, received: received, duration: start.duration(to: .now),
                ending: ending, notes: notes)
            inspector.keep(kept)
        }
        do {
            let response = try await next(observed, context)
            keep(
                .responded(status: response.status.code, upload: connection?.report.upload),
                recorder.finish(keepsBody: response.status.kind != .successful))
            return response
        } catch let problem as UploadProblem {
            // If a route refused the form, it has already called `refusal(for:)`.
            _ = await recorder.refusal(for: problem)
            keep(.refused(problem), recorder.finish(refusedFor: problem, keepsBody: true))
            throw problem
        } catch {
            keep(.cutOff, recorder.finish(keepsBody: true))
            throw error
        }
    }

    /// Responds to a request that is only recorded if access is refused.
    private func recordingRefusals(
        _ request: Request, _ connection: UploadConnection?, _ context: Context,
        _ next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let problem as UploadProblem where [.unauthorized, .misdirectedRequest].contains(problem.status) {
            inspector.keep(
                RecordedRequest(
                    request, on: connection, scheme: scheme, received: Date(), duration: .zero,
                    ending: .refused(problem), notes: .none(refusedFor: problem)))
            throw problem
        }
    }

    /// Whether the upload path is also the path of the records or of the page, which clients read with GET and HEAD.
    private var isReadingPath: Bool { [UploadRecord.readingPath, "/"].contains(uploadPath) }

    /// Whether a request is always recorded, such as a form that was posted to a wrong path.
    private func isRecorded(_ request: Request) -> Bool {
        switch request.method {
        case .post, .put, .patch: true
        case .get where isReadingPath, .head where isReadingPath: false
        default: request.uri.path == uploadPath
        }
    }
}
