import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The delegate of a session: hands what happens to a task to the upload that it carries.
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

    // The form is not sent again to where the server points: the response that points there is the answer.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    #if canImport(FoundationNetworking)
    // URLSession on Linux never ends a task whose challenge has no answer. It asks once the response has been
    // read to its end: that response is the answer, and the task is ended without one.
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
