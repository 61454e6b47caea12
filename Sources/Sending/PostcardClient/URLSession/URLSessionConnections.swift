import Dispatch
import HTTPTypes
import PostcardForm
import Synchronization

#if canImport(FoundationNetworking)
import Foundation
import FoundationNetworking
#else
package import Foundation
#endif

/// Owns a session, and invalidates the session when no one uses it any longer. Until then, the session keeps its
/// delegate and its threads alive.
final class URLSessionConnections: Sendable {
    private let session: URLSession
    private let uploads = URLSessionUploads()
    /// The URL protocols that the configuration adds. A session does not count the bytes that they send.
    private let addedProtocols: [URLProtocol.Type]

    /// The queue for calling methods of sessions. On Linux these methods wait for a queue that all sessions share, and
    /// so for the streams of other forms. Swift's own few threads must not wait for that queue, because the streams
    /// need these threads. All sessions use this queue, because about 250 such queues use up Dispatch's threads and
    /// leave none for the shared queue.
    private static let calls = DispatchQueue(label: "Postcard URLSession")

    init(_ configuration: URLSessionConfiguration) {
        session = URLSession(configuration: configuration, delegate: uploads, delegateQueue: nil)
        let system = [URLSessionConfiguration.default, .ephemeral].flatMap { $0.protocolClasses ?? [] }
        addedProtocols = (configuration.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }.filter { added in
            !system.contains { $0 == added }
        }
    }

    deinit {
        let session = session
        Self.calls.async { session.finishTasksAndInvalidate() }
    }

    /// Starts an upload, unless it was cancelled in the meantime.
    func start(_ upload: URLSessionUpload) {
        Self.calls.async { [self] in
            let task = task(for: upload)
            uploads.add(upload, for: task)
            if upload.accept(task, countingBytes: !addedProtocols.contains { $0.canInit(with: task) }) {
                task.resume()
            } else {
                uploads.remove(task)
                // A session would wait forever for a task that was never started.
                task.cancel()
                upload.complete(nil, nil, bytesSent: 0)
            }
        }
    }

    private func task(for upload: URLSessionUpload) -> URLSessionTask {
        let request = URLRequest(upload.request)
        if let content = upload.content { return session.uploadTask(with: request, from: content) }
        return upload.request.body == nil
            ? session.dataTask(with: request) : session.uploadTask(withStreamedRequest: request)
    }

    /// Cancels a task, which closes its connection.
    func cancel(_ task: URLSessionTask) {
        Self.calls.async { task.cancel() }
    }
}

/// The delegate of a session. It passes the events of each task to the task's upload.
final class URLSessionUploads: NSObject, URLSessionDataDelegate {
    private let uploads = Mutex<[Int: URLSessionUpload]>([:])

    func add(_ upload: URLSessionUpload, for task: URLSessionTask) {
        uploads.withLock { $0[task.taskIdentifier] = upload }
    }

    @discardableResult
    func remove(_ task: URLSessionTask) -> URLSessionUpload? {
        uploads.withLock { $0.removeValue(forKey: task.taskIdentifier) }
    }

    private func upload(of task: URLSessionTask) -> URLSessionUpload? {
        uploads.withLock { $0[task.taskIdentifier] }
    }

    #if !canImport(FoundationNetworking)
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        upload(of: task)?.waitForNetwork()
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        upload(of: task)?.inform(response)
    }
    #endif

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(upload(of: task)?.makeBodyStream())
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        upload(of: task)?.sent(totalBytesSent)
    }

    // The transport does not follow redirects, and returns the redirect as the response.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    #if canImport(FoundationNetworking)
    // Without credentials for an authentication challenge, URLSession on Linux never ends the task. URLSession asks for
    // credentials after the response was read to its end. So that response is the result, and the challenge is
    // cancelled.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        remove(task)?.complete(task.response as? HTTPURLResponse, nil, bytesSent: task.countOfBytesSent)
        completionHandler(.cancelAuthenticationChallenge, nil)
    }
    #endif

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        upload(of: dataTask)?.receive(response)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        upload(of: dataTask)?.receive(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        remove(task)?.complete(task.response as? HTTPURLResponse, error, bytesSent: task.countOfBytesSent)
    }
}

extension URLRequest {
    init(_ request: UploadRequest) {
        self.init(url: request.url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: 604_800)
        httpMethod = request.method.rawValue
        httpShouldHandleCookies = false
        for field in request.headerFields { addValue(field.value, forHTTPHeaderField: field.name.rawName) }
        #if canImport(FoundationNetworking)
        // If `Expect` is not set, libcurl asks for a 100 (Continue) before a body in chunks, and waits a second for it.
        // A blank value removes the field. An empty value is sent as it is, and some servers refuse an empty `Expect`.
        if value(forHTTPHeaderField: "Expect") == nil { setValue(" ", forHTTPHeaderField: "Expect") }
        // If a reused connection breaks, libcurl starts the request over without its body. So the requests before an
        // upload must close their connections.
        if request.body.map({ $0.layout.isSlice && $0.contentLength == 0 }) ?? true {
            setValue("close", forHTTPHeaderField: "Connection")
        }
        #else
        if let length = request.body?.contentLength { setValue("\(length)", forHTTPHeaderField: "Content-Length") }
        allow(request.networks)
        #endif
    }
}

#if !canImport(FoundationNetworking)
extension URLRequest {
    /// Forbids the request to use networks that are not allowed.
    package mutating func allow(_ networks: AllowedNetworks) {
        allowsCellularAccess = networks.cellular
        allowsExpensiveNetworkAccess = networks.expensive
        allowsConstrainedNetworkAccess = networks.constrained
    }
}
#endif
