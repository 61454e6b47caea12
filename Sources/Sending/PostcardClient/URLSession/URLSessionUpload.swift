package import HTTPTypes
import Synchronization

#if canImport(FoundationNetworking)
import Foundation
package import FoundationNetworking
#else
package import Foundation
#endif

/// A request of a session.
final class URLSessionUpload: Sendable {
    let request: UploadRequest
    /// The body, if it is sent from memory.
    let content: Data?
    private let connections: URLSessionConnections
    private let report: @Sendable (TransportEvent) -> Void
    private let state: Mutex<State>

    private struct State {
        /// The reader of the body, once URLSession has asked for it.
        var reader: BlockingBodyReader?
        var task: URLSessionTask?
        var continuation: CheckedContinuation<UploadResponse, any Error>?
        /// Why the upload was cancelled, if URLSession did not decide it.
        var cause: (any Error)?
        var received = Data()
        /// The head of the response.
        var response: HTTPURLResponse?
        var bytesSent: Int64 = 0
        /// Whether the session counts the bytes of the body that it sends.
        var countsBytes = true
        /// Closes the stream of a body that could not be read to its end.
        var closeBody: (@Sendable () -> Void)?
    }

    init(
        _ request: UploadRequest, content: Data?, on connections: URLSessionConnections,
        reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) {
        self.request = request
        self.content = content
        self.connections = connections
        self.report = report
        state = Mutex(State())
    }

    /// Starts the upload, and resumes the continuation once when it is over.
    func start(_ continuation: CheckedContinuation<UploadResponse, any Error>) {
        state.withLock { $0.continuation = continuation }
        connections.start(self)
    }

    /// Accepts the task that performs the upload.
    ///
    /// - Parameter countsBytes: Whether the session counts the bytes of the body that the task sends.
    /// - Returns: `false` if the upload was cancelled.
    func accept(_ task: URLSessionTask, countingBytes countsBytes: Bool) -> Bool {
        state.withLock { state in
            guard state.cause == nil else { return false }
            state.task = task
            state.countsBytes = countsBytes
            return true
        }
    }

    /// Cancels the upload and closes its connection. The first cause is thrown.
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
    /// There is only one: URLSession sends a request again whose response was lost on a reused connection. The form may
    /// have been stored by then, and the retry policy decides whether it is sent again.
    func makeBodyStream() -> InputStream? {
        do {
            let reader = try takeReader()
            #if canImport(FoundationNetworking)
            return BodyInputStream(reader)
            #else
            return BoundBodyStream.make(reader) { [weak self] close in
                guard let self else { return close() }
                endAfterFailure(of: reader, closing: close)
            }
            #endif
        } catch {
            cancel(error)
            #if canImport(FoundationNetworking)
            // Without a body libcurl would send an empty one. A body in memory cannot be replaced by a stream: libcurl
            // sends less of it than the head promises, until the connection is closed.
            return content == nil ? BodyInputStream(nil) : nil
            #else
            return nil
            #endif
        }
    }

    /// The reader of the body.
    ///
    /// - Throws: `FormError` if the body cannot be read; ``UploadError`` if it was read before.
    private func takeReader() throws -> BlockingBodyReader {
        if content != nil || state.withLock({ $0.reader != nil }) {
            throw UploadError.connectionLost(to: request.url, "the server closed it")
        }
        guard let body = request.body else { throw CancellationError() }
        let reader = try BlockingBodyReader(body)
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
        let bytes = state.withLock { state -> Int64 in
            state.bytesSent = max(state.bytesSent, bytesSent)
            // Before URLSession has asked for the body, nothing of it can have been sent.
            if let content { return min(state.bytesSent, Int64(content.count)) }
            return state.reader == nil ? 0 : state.bytesSent
        }
        report(.sent(bytes: bytes))
    }

    func receive(_ response: URLResponse) {
        // URLSession on Linux passes interim responses like others.
        if let response = response as? HTTPURLResponse, response.isInterim { return inform(response) }
        state.withLock { $0.response = response as? HTTPURLResponse }
        report(.received(bytes: 0))
        endAfterEarlyResponse()
    }

    /// Reports an interim response.
    func inform(_ response: HTTPURLResponse) {
        report(
            .informed(status: HTTPResponse.Status(code: response.statusCode), headerFields: HTTPFields(response)))
    }

    /// Ends the upload if a whole successful response was received before the body was sent. URLSession on Linux would
    /// send the rest of it to a server that need not read it; elsewhere it ends by itself.
    private func endAfterEarlyResponse() {
        #if canImport(FoundationNetworking)
        let state = state.withLock { $0 }
        guard isEarlySuccess(state) else { return }
        complete(state.response, nil, bytesSent: state.bytesSent)
        if let task = state.task { connections.cancel(task) }
        #endif
    }

    /// Whether a whole successful response was received, and some of the body was not sent.
    private func isEarlySuccess(_ state: State) -> Bool {
        guard state.countsBytes, let body = request.body, let response = state.response,
            (200..<300).contains(response.statusCode),
            response.statusCode == 204 || response.expectedContentLength == Int64(state.received.count)
        else { return false }
        return body.knownLength.map { state.bytesSent < $0 } ?? true
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
            endAfterEarlyResponse()
        }
    }

    /// Ends the upload with the response, or with the reason why there is none.
    ///
    /// - Parameters:
    ///   - lastResponse: The latest response, which may be an interim one.
    ///   - error: Why the request ended, if it did not end well.
    ///   - bytesSent: How many bytes of the body the session says it has sent.
    func complete(_ lastResponse: HTTPURLResponse?, _ error: (any Error)?, bytesSent: Int64) {
        let response = lastResponse.flatMap { $0.isInterim ? nil : $0 }
        // Reported before the end, so that an early response is recognized, and a connection that was lost before
        // anything was sent. If the session does not count, neither is known.
        if request.body != nil, state.withLock({ $0.countsBytes }) {
            #if canImport(FoundationNetworking)
            sent(bytesSent)
            #else
            // Elsewhere the count may still be 0 when the connection breaks after a small body.
            if response != nil || bytesSent > 0 { sent(bytesSent) }
            #endif
        }
        let (state, continuation) = state.withLock { state in
            defer { state.continuation = nil }
            return (state, state.continuation)
        }
        state.reader?.cancel()
        state.closeBody?()
        if let cause = state.cause ?? state.reader.flatMap(readFailure) {
            continuation?.resume(throwing: cause)
        } else if let reason = response?.framingProblem {
            continuation?.resume(throwing: UploadError.connectionLost(to: request.url, reason))
        } else if let response, error != nil, response.statusCode >= 400 {
            // A refusal counts even if its body was cut off when the server closed the connection on the request.
            continuation?.resume(returning: UploadResponse(response, body: state.received))
        } else if let response, error != nil, isEarlySuccess(state) {
            // So does a whole success.
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
    /// Cancels an upload whose body cannot be read to its end. The stream is closed when the upload is over and not
    /// before: URLSession would take its end for that of the body.
    private func endAfterFailure(of reader: BlockingBodyReader, closing close: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if state.continuation != nil { state.closeBody = close }
            return state.continuation == nil
        }
        if isOver { return close() }
        cancel(reader.failure ?? CancellationError())
    }
    #endif

    /// Why the body could not be read, unless reading was cancelled.
    private func readFailure(of reader: BlockingBodyReader) -> (any Error)? {
        reader.failure.flatMap { $0 is CancellationError ? nil : $0 }
    }
}

extension UploadResponse {
    init(_ response: HTTPURLResponse, body: Data) {
        let code = min(max(response.statusCode, 0), 999)
        self.init(status: HTTPResponse.Status(code: code), headerFields: HTTPFields(response), body: body)
    }
}

extension HTTPURLResponse {
    /// Whether another response must follow (RFC 9110 §15.2). After a 101 the connection has another protocol.
    fileprivate var isInterim: Bool { (100..<200).contains(statusCode) && statusCode != 101 }

    /// Why it is not certain where the response ends; `nil` if it is (RFC 9112, section 6.3).
    ///
    /// URLSession on Linux takes one of two lengths. The bytes that it leaves could be those of another response.
    fileprivate var framingProblem: String? {
        let fields = HTTPFields(self).streamSafe
        guard let length = fields[.contentLength] else { return nil }
        if !length.utf8.allSatisfy({ (0x30...0x39).contains($0) }) || Int64(length) == nil {
            return "the response is not valid HTTP: its Content-Length is \(length.debugDescription)"
        }
        // URLSession on Apple's systems may add a Transfer-Encoding of "Identity".
        guard let coding = fields[.transferEncoding], coding.lowercased() != "identity" else { return nil }
        return "the response is not valid HTTP: it has both a Content-Length and a Transfer-Encoding"
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
