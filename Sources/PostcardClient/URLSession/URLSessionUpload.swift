package import HTTPTypes
import PostcardForm
import Synchronization

#if canImport(FoundationNetworking)
import Foundation
package import FoundationNetworking
#else
package import Foundation
#endif

/// One request of a session: its body going out, its response coming in.
final class URLSessionUpload: Sendable {
    let request: UploadRequest
    /// The body where it is sent from memory.
    let content: Content?
    private let connections: URLSessionConnections
    private let report: @Sendable (TransportEvent) -> Void
    private let state: Mutex<State>

    struct Content {
        let bytes: Data
        /// Where the content of each part is in it.
        let contentRanges: [Range<Int64>]
    }

    private struct State {
        /// The body under way, once URLSession has asked for it.
        var reader: BlockingFormReader?
        var task: URLSessionTask?
        var continuation: CheckedContinuation<UploadResponse, any Error>?
        /// Why the upload was given up, where that was not URLSession's decision.
        var cause: (any Error)?
        var received = Data()
        /// The head of the answer.
        var response: HTTPURLResponse?
        var bytesSent: Int64 = 0
        /// Whether the session counts the bytes of the body that it sends.
        var countsBytes = true
        /// Closes the stream of a body that could not be read to its end.
        var closeBody: (@Sendable () -> Void)?
    }

    init(
        _ request: UploadRequest, _ content: Content?, on connections: URLSessionConnections,
        reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) {
        self.request = request
        self.content = content
        self.connections = connections
        self.report = report
        state = Mutex(State())
    }

    /// Begins, and resumes the continuation once when it is all over.
    func start(_ continuation: CheckedContinuation<UploadResponse, any Error>) {
        state.withLock { $0.continuation = continuation }
        connections.start(self)
    }

    /// Takes the task that is to carry the upload.
    ///
    /// - Parameter countsBytes: Whether the session counts the bytes of the body that the task sends.
    /// - Returns: Whether the upload is still wanted.
    func isCarried(by task: URLSessionTask, countingBytes countsBytes: Bool) -> Bool {
        state.withLock { state in
            guard state.cause == nil else { return false }
            state.task = task
            state.countsBytes = countsBytes
            return true
        }
    }

    /// Gives the upload up and closes its connection; the first cause is the one that is thrown.
    func cancel(_ cause: any Error) {
        let (task, reader) = state.withLock { state in
            if state.cause == nil { state.cause = cause }
            return (state.task, state.reader)
        }
        reader?.cancel()
        if let task { connections.cancel(task) }
    }

    /// The body for URLSession to read, from its beginning.
    ///
    /// There is one only once: URLSession sends a request again whose answer was lost on a kept connection. The
    /// form may have been stored by then, and whether it is sent again is the retry policy's to say.
    func makeBodyStream() -> InputStream? {
        do {
            let reader = try takeReader()
            #if canImport(FoundationNetworking)
            return FormInputStream(reader)
            #else
            return BoundBodyStream.make(reader) { [weak self] close in
                guard let self else { return close() }
                endAfterFailure(of: reader, closing: close)
            }
            #endif
        } catch {
            cancel(error)
            #if canImport(FoundationNetworking)
            // Without a body libcurl would send an empty one. A body in memory can have no stream in its place: what libcurl
            // sends of it is less than the head promises, until the connection is closed.
            return content == nil ? FormInputStream(nil) : nil
            #else
            return nil
            #endif
        }
    }

    /// The reader of the body.
    ///
    /// - Throws: `FormError` where the body cannot be read; ``UploadError`` where it has been taken before.
    private func takeReader() throws -> BlockingFormReader {
        if content != nil || state.withLock({ $0.reader != nil }) {
            throw UploadError.connectionLost(to: request.url, "the server closed it")
        }
        guard let body = request.body else { throw CancellationError() }
        let reader = try BlockingFormReader(body)
        state.withLock { state in
            state.reader = reader
            if state.cause != nil { reader.cancel() }
        }
        return reader
    }

    func waitForNetwork() {
        report(.waitingForNetwork)
    }

    func sent(_ bytesSent: Int64) {
        let state = state.withLock { state in
            state.bytesSent = max(state.bytesSent, bytesSent)
            return state
        }
        report(.sent(progress(state) ?? BodyProgress(bytesSent: 0, contentRanges: [])))
    }

    /// How far the body is; `nil` where nothing of it was asked for.
    private func progress(_ state: State) -> BodyProgress? {
        if let content {
            let isWhole = state.bytesSent >= content.bytes.count
            return BodyProgress(
                bytesSent: min(state.bytesSent, Int64(content.bytes.count)), contentRanges: content.contentRanges,
                isWhole: isWhole)
        }
        return state.reader?.progress(at: state.bytesSent)
    }

    func receive(_ response: URLResponse) {
        state.withLock { $0.response = response as? HTTPURLResponse }
        report(.received(bytes: 0))
        endIfAnsweredEarly()
    }

    /// Ends the upload where a success has come whole before the body was sent. URLSession on Linux would send the rest of
    /// it to a server that need not read it; elsewhere it ends by itself.
    private func endIfAnsweredEarly() {
        #if canImport(FoundationNetworking)
        let state = state.withLock { $0 }
        guard isEarlySuccess(state) else { return }
        complete(state.response, nil, bytesSent: state.bytesSent)
        if let task = state.task { connections.cancel(task) }
        #endif
    }

    /// Whether a success has come whole, and some of the body was not sent.
    private func isEarlySuccess(_ state: State) -> Bool {
        guard state.countsBytes, let body = request.body, let response = state.response,
            (200..<300).contains(response.statusCode),
            response.statusCode == 204 || response.expectedContentLength == Int64(state.received.count)
        else { return false }
        return state.bytesSent != body.contentLength && progress(state)?.isWhole != true
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
            endIfAnsweredEarly()
        }
    }

    /// Ends the upload with the response, or with the reason why there is none.
    ///
    /// - Parameter bytesSent: How many bytes of the body the session says to have sent.
    func complete(_ response: HTTPURLResponse?, _ error: (any Error)?, bytesSent: Int64) {
        // Reported before the response is given back, so that one is seen to be early. Whether one is early is not known if
        // the session does not count.
        if response != nil, request.body != nil, state.withLock({ $0.countsBytes }) { sent(bytesSent) }
        let (state, continuation) = state.withLock { state in
            defer { state.continuation = nil }
            return (state, state.continuation)
        }
        state.reader?.cancel()
        state.closeBody?()
        if let cause = state.cause ?? state.reader.flatMap(readFailure) {
            continuation?.resume(throwing: cause)
        } else if let response, error != nil, response.statusCode >= 400 {
            // A refusal is one, though its words were cut off when the server closed the connection on the body.
            continuation?.resume(returning: UploadResponse(response, body: state.received))
        } else if let response, error != nil, isEarlySuccess(state) {
            // So is a success that came whole, though the connection was closed on the body.
            continuation?.resume(returning: UploadResponse(response, body: state.received))
        } else if let error {
            continuation?.resume(throwing: UploadError(error, of: request.url, bytesSent: state.bytesSent))
        } else if let response {
            continuation?.resume(returning: UploadResponse(response, body: state.received))
        } else {
            continuation?.resume(throwing: UploadError.connectionLost(to: request.url, "it gave no HTTP response"))
        }
    }

    #if !canImport(FoundationNetworking)
    /// Gives up an upload whose body cannot be read to its end. The stream is closed when all is over and not
    /// before: URLSession would take its end for the body's.
    private func endAfterFailure(of reader: BlockingFormReader, closing close: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if state.continuation != nil { state.closeBody = close }
            return state.continuation == nil
        }
        if isOver { return close() }
        cancel(reader.failure ?? CancellationError())
    }
    #endif

    /// What kept the body from being read; that it was given up is nothing of the kind.
    private func readFailure(of reader: BlockingFormReader) -> (any Error)? {
        reader.failure.flatMap { $0 is CancellationError ? nil : $0 }
    }
}

extension UploadResponse {
    init(_ response: HTTPURLResponse, body: Data) {
        let code = min(max(response.statusCode, 0), 999)
        self.init(status: HTTPResponse.Status(code: code), headerFields: HTTPFields(response), body: body)
    }
}

extension HTTPFields {
    /// The header fields of a response.
    package init(_ response: HTTPURLResponse) {
        self.init()
        for (key, value) in response.allHeaderFields {
            if let key = key as? String, let name = HTTPField.Name(key), let value = value as? String {
                append(HTTPField(name: name, value: value))
            }
        }
    }
}
