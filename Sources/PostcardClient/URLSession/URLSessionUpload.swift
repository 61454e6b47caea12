import Foundation
import HTTPTypes
import PostcardForm
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One request of a session: its body going out, its response coming in.
final class URLSessionUpload: Sendable {
    private let request: UploadRequest
    private let report: @Sendable (TransportEvent) -> Void
    private let state: Mutex<State>

    private struct State {
        /// The body under way; another one where URLSession asks for it again.
        var reader: BlockingFormReader
        var isReaderTaken = false
        var task: URLSessionTask?
        var continuation: CheckedContinuation<UploadResponse, any Error>?
        /// Why the upload was given up, where that was not URLSession's decision.
        var cause: (any Error)?
        var received = Data()
        var bytesSent: Int64 = 0
    }

    init(_ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void) throws(FormError) {
        self.request = request
        self.report = report
        state = Mutex(State(reader: try BlockingFormReader(request.body)))
    }

    /// Takes what the upload is carried by, and who waits for it.
    func begin(_ task: URLSessionTask, _ continuation: CheckedContinuation<UploadResponse, any Error>) {
        let isCancelled = state.withLock { state in
            state.task = task
            state.continuation = continuation
            return state.cause != nil
        }
        if isCancelled { task.cancel() }
    }

    /// Gives the upload up and closes its connection; the first cause is the one that is thrown.
    func cancel(_ cause: any Error) {
        let (task, reader) = state.withLock { state in
            if state.cause == nil { state.cause = cause }
            return (state.task, state.reader)
        }
        reader.cancel()
        task?.cancel()
    }

    /// The body for URLSession to read, from its beginning; `nil` where it cannot be read again.
    func makeBodyStream() -> InputStream? {
        do {
            let reader = try state.withLock { state in
                if state.isReaderTaken { state.reader = try BlockingFormReader(request.body) }
                state.isReaderTaken = true
                return state.reader
            }
            #if canImport(FoundationNetworking)
            return FormInputStream(reader)
            #else
            return BoundBodyStream.make(reader) { [weak self] in self?.cancelAfterFailure() }
            #endif
        } catch {
            cancel(error)
            return nil
        }
    }

    func sent(_ bytesSent: Int64) {
        let reader = state.withLock { state in
            state.bytesSent = bytesSent
            return state.reader
        }
        report(.sent(BodyProgress(bytesSent: bytesSent, contentRanges: reader.progress.contentRanges)))
    }

    func receiveHead() {
        report(.received(bytes: 0))
    }

    func receive(_ data: Data) {
        let count = state.withLock { state in
            let count = state.received.count + data.count
            if count <= request.maximumResponseBytes { state.received.append(data) }
            return count
        }
        if count > request.maximumResponseBytes {
            cancel(UploadError.responseTooLarge(from: request.url, limit: request.maximumResponseBytes))
        } else {
            report(.received(bytes: count))
        }
    }

    /// Ends the upload with the response, or with the reason why there is none.
    func complete(_ response: HTTPURLResponse?, _ error: (any Error)?) {
        let (state, continuation) = state.withLock { state in
            defer { state.continuation = nil }
            return (state, state.continuation)
        }
        state.reader.cancel()
        if let cause = state.cause ?? readFailure(of: state.reader) {
            continuation?.resume(throwing: cause)
        } else if let error {
            continuation?.resume(throwing: UploadError(error, of: request.url, bytesSent: state.bytesSent))
        } else if let response {
            continuation?.resume(returning: UploadResponse(response, body: state.received))
        } else {
            continuation?.resume(throwing: UploadError.connectionLost(to: request.url, "it gave no HTTP response"))
        }
    }

    #if !canImport(FoundationNetworking)
    private func cancelAfterFailure() {
        let reader = state.withLock { $0.reader }
        if let failure = reader.failure { cancel(failure) }
    }
    #endif

    /// What kept the body from being read; that it was given up is nothing of the kind.
    private func readFailure(of reader: BlockingFormReader) -> (any Error)? {
        reader.failure.flatMap { $0 is CancellationError ? nil : $0 }
    }
}

extension UploadResponse {
    init(_ response: HTTPURLResponse, body: Data) {
        var fields = HTTPFields()
        for (key, value) in response.allHeaderFields {
            if let key = key as? String, let name = HTTPField.Name(key), let value = value as? String {
                fields.append(HTTPField(name: name, value: value))
            }
        }
        let code = min(max(response.statusCode, 0), 999)
        self.init(status: HTTPResponse.Status(code: code), headerFields: fields, body: body)
    }
}
