package import HTTPTypes
import PostcardWire
import Synchronization

#if canImport(FoundationNetworking)
import Foundation
package import FoundationNetworking
#else
package import Foundation
#endif

/// A request that URLSession sends.
final class URLSessionUpload: Sendable {
    let request: UploadRequest
    /// The body, if it is sent from memory.
    let content: Data?
    private let connections: URLSessionConnections
    private let report: @Sendable (TransportEvent) -> Void
    private let state: Mutex<State>

    private struct State {
        /// The reader of the body; `nil` until URLSession has asked for the body.
        var reader: BlockingBodyReader?
        var task: URLSessionTask?
        var continuation: CheckedContinuation<UploadResponse, any Error>?
        /// The error that ``cancel(_:)`` was first called with; `nil` if it was not called.
        var cause: (any Error)?
        var received = Data()
        /// The head of the response.
        var response: HTTPURLResponse?
        var bytesSent: Int64 = 0
        /// Whether the session counts the bytes of the body that it sends.
        var countsBytes = true
        /// Closes the stream of a body whose reading has failed.
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

    /// Starts the upload, and resumes the continuation when the upload has ended.
    func start(_ continuation: CheckedContinuation<UploadResponse, any Error>) {
        state.withLock { $0.continuation = continuation }
        connections.start(self)
    }

    /// Accepts the task that performs the upload. Returns `false` if the upload was cancelled.
    ///
    /// - Parameter countsBytes: Whether the session counts the bytes of the body that the task sends.
    func accept(_ task: URLSessionTask, countingBytes countsBytes: Bool) -> Bool {
        state.withLock { state in
            guard state.cause == nil else { return false }
            state.task = task
            state.countsBytes = countsBytes
            return true
        }
    }

    /// Cancels the upload with an error, and closes its connection. The error of the first call is thrown.
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
    /// URLSession asks for a second stream when it repeats a request whose response was lost on a reused connection.
    /// That stream fails: the server may have stored the form, so the retry policy must decide whether the form is sent
    /// again.
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
            // Without a stream, libcurl sends an empty body. So a streamed body gets a stream that fails. A body in
            // memory gets none: with a stream, libcurl sends fewer bytes than the head announces, and waits until the
            // connection is closed.
            return content == nil ? BodyInputStream(nil) : nil
            #else
            return nil
            #endif
        }
    }

    /// The reader of the body.
    ///
    /// - Throws: `FormError` if the body cannot be read; ``UploadError`` if the body was read before.
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
            // Before URLSession has asked for the body, no bytes of the body can have been sent.
            if let content { return min(state.bytesSent, Int64(content.count)) }
            return state.reader == nil ? 0 : state.bytesSent
        }
        report(.sent(bytes: bytes))
    }

    func receive(_ response: URLResponse) {
        // URLSession on Linux passes interim responses like final ones.
        if let response = response as? HTTPURLResponse, response.isInterim { return inform(response) }
        state.withLock { $0.response = response as? HTTPURLResponse }
        report(.received(bytes: 0))
        endAfterEarlyResponse()
    }

    /// Reports an interim response.
    func inform(_ response: HTTPURLResponse) {
        report(
            .informed(status: HTTPResponse.Status(clamping: response.statusCode), headerFields: HTTPFields(response)))
    }

    /// Ends the upload if a whole successful response arrived before the body was sent. URLSession on Linux would send
    /// the rest of the body. On other systems, URLSession ends the upload itself.
    private func endAfterEarlyResponse() {
        #if canImport(FoundationNetworking)
        let state = state.withLock { $0 }
        guard isEarlySuccess(state) else { return }
        complete(state.response, nil, bytesSent: state.bytesSent)
        if let task = state.task { connections.cancel(task) }
        #endif
    }

    /// Whether a whole successful response arrived before all of the body was sent.
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

    /// Ends the upload with the response, or with an error if there is no response.
    ///
    /// - Parameters:
    ///   - lastResponse: The latest response, which may be an interim one.
    ///   - error: The error that the request ended with; `nil` if there is none.
    ///   - bytesSent: The number of bytes of the body sent, as the session counts them.
    func complete(_ lastResponse: HTTPURLResponse?, _ error: (any Error)?, bytesSent: Int64) {
        let response = lastResponse.flatMap { $0.isInterim ? nil : $0 }
        // The sent bytes are reported before the upload ends. They show whether the response was early, and whether
        // any bytes were sent before a connection broke. A session that does not count bytes shows neither.
        if request.body != nil, state.withLock({ $0.countsBytes }) {
            #if canImport(FoundationNetworking)
            sent(bytesSent)
            #else
            // On other systems, the count may still be 0 when the connection breaks after a small body.
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
            // A refusal counts even if the server closed the connection before the end of its body.
            continuation?.resume(returning: UploadResponse(response, body: state.received))
        } else if let response, error != nil, isEarlySuccess(state) {
            // A complete successful response also counts if the connection broke before the whole form was sent.
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
    /// Cancels an upload after reading its body has failed. The stream is closed only after the upload has ended,
    /// because URLSession would take the end of the stream for the end of the body.
    private func endAfterFailure(of reader: BlockingBodyReader, closing close: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if state.continuation != nil { state.closeBody = close }
            return state.continuation == nil
        }
        if isOver { return close() }
        cancel(reader.failure ?? CancellationError())
    }
    #endif

    /// The error that reading the body failed with; `nil` if there is none, or if reading was cancelled.
    private func readFailure(of reader: BlockingBodyReader) -> (any Error)? {
        reader.failure.flatMap { $0 is CancellationError ? nil : $0 }
    }
}

extension UploadResponse {
    init(_ response: HTTPURLResponse, body: Data) {
        self.init(
            status: HTTPResponse.Status(clamping: response.statusCode), headerFields: HTTPFields(response), body: body)
    }
}

extension HTTPURLResponse {
    /// Whether this response is an interim one, which another response follows (RFC 9110 §15.2). After a 101 the
    /// connection uses another protocol.
    fileprivate var isInterim: Bool { (100..<200).contains(statusCode) && statusCode != 101 }

    /// The reason why the end of the response is uncertain; `nil` if its length is certain (RFC 9112, section 6.3).
    ///
    /// If a response has two different lengths, URLSession on Linux uses one of them. The bytes that it leaves unread
    /// could be taken for another response.
    fileprivate var framingProblem: String? {
        let fields = HTTPFields(self).streamSafe
        guard let length = fields[.contentLength] else { return nil }
        if !length.utf8.allSatisfy({ (0x30...0x39).contains($0) }) || Int64(length) == nil {
            return "the response is not valid HTTP: its Content-Length is \(length.debugDescription)"
        }
        // URLSession on Apple's systems may add the Transfer-Encoding "Identity".
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
