import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1
import PostcardClient
import PostcardFoundation
import Synchronization

/// Collects the response to a request on the event loop, and resumes the waiting task once.
final class PendingResponse: HTTPClientResponseDelegate {
    private let request: UploadRequest
    private let report: @Sendable (TransportEvent) -> Void
    private let state = Mutex(State())

    private struct State {
        var phase = Phase.new
        var head: HTTPResponseHead?
        var body = Data()
    }

    private enum Phase {
        case new
        /// The request was cancelled before it was made.
        case cancelled
        case waiting(CheckedContinuation<UploadResponse, any Error>, HTTPClient.Task<Void>?)
        case over
    }

    init(to request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void) {
        self.request = request
        self.report = report
    }

    /// Sends a request, and waits for the response.
    ///
    /// - Throws: AsyncHTTPClient's errors; ``UploadError`` with the code ``UploadError/Code/responseTooLarge``.
    func value(
        to outgoing: HTTPClient.Request, by client: HTTPClient, on loop: any EventLoop
    ) async throws -> UploadResponse {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard begin(continuation) else { return continuation.resume(throwing: CancellationError()) }
                // The client fails without calling the delegate only after its shutdown, when all requests have ended.
                add(client.execute(request: outgoing, delegate: self, eventLoop: .delegate(on: loop), deadline: nil))
            }
        } onCancel: {
            cancel()
        }
    }

    private func begin(_ continuation: CheckedContinuation<UploadResponse, any Error>) -> Bool {
        state.withLock { state in
            guard case .new = state.phase else { return false }
            state.phase = .waiting(continuation, nil)
            return true
        }
    }

    private func add(_ task: HTTPClient.Task<Void>) {
        let isCancelled = state.withLock { state in
            switch state.phase {
            case .waiting(let continuation, _):
                state.phase = .waiting(continuation, task)
                return false
            case .cancelled: return true
            case .new, .over: return false
            }
        }
        if isCancelled { task.cancel() }
    }

    private func cancel() {
        enum Action {
            case cancel(HTTPClient.Task<Void>)
            case resume(CheckedContinuation<UploadResponse, any Error>)
        }
        let action: Action? = state.withLock { state in
            switch state.phase {
            case .new:
                state.phase = .cancelled
            case .waiting(_, let task?):
                return .cancel(task)
            case .waiting(let continuation, nil):
                state.phase = .cancelled
                return .resume(continuation)
            case .cancelled, .over: break
            }
            return nil
        }
        switch action {
        case .cancel(let task): task.cancel()
        case .resume(let continuation): continuation.resume(throwing: CancellationError())
        case nil: break
        }
    }

    // MARK: HTTPClientResponseDelegate

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        state.withLock { $0.head = head }
        report(.received(bytes: 0))
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ bytes: ByteBuffer) -> EventLoopFuture<Void> {
        let received = state.withLock { state in
            let received = state.body.count + bytes.readableBytes
            if received <= request.maximumResponseBytes { state.body.append(contentsOf: bytes.readableBytesView) }
            return received
        }
        guard received <= request.maximumResponseBytes else {
            let error = UploadError.responseTooLarge(from: request.url, limit: request.maximumResponseBytes)
            return task.eventLoop.makeFailedFuture(error)
        }
        report(.received(bytes: received))
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {
        finish(nil)
    }

    func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) {
        finish(error)
    }

    private func finish(_ error: (any Error)?) {
        let ended = state.withLock { state -> (CheckedContinuation<UploadResponse, any Error>, State)? in
            guard case .waiting(let continuation, _) = state.phase else { return nil }
            state.phase = .over
            return (continuation, state)
        }
        guard let (continuation, state) = ended else { return }
        continuation.resume(with: result(of: state, error))
    }

    private func result(of state: State, _ error: (any Error)?) -> Result<UploadResponse, any Error> {
        guard let head = state.head else { return .failure(error ?? HTTPClientError.remoteConnectionClosed) }
        // A response that refuses the form counts even if its body is cut off.
        let isCutOff = head.status.code >= 400 && !(error is UploadError) && error as? HTTPClientError != .cancelled
        if let error, !isCutOff { return .failure(error) }
        return .success(UploadResponse(head, body: state.body))
    }
}

extension UploadResponse {
    fileprivate init(_ head: HTTPResponseHead, body: Data) {
        let status = HTTPResponse.Status(
            code: min(Int(head.status.code), 999), reasonPhrase: head.status.reasonPhrase)
        self.init(status: status, headerFields: HTTPFields(head.headers), body: body)
    }
}

extension HTTPFields {
    /// Converts the header fields of a response. Fields with invalid names are left out.
    init(_ headers: HTTPHeaders) {
        self.init()
        for (name, value) in headers {
            if let name = HTTPField.Name(name) { append(HTTPField(name: name, value: value)) }
        }
    }
}
