import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The delegate of a background session: hands what happens to a task on to the account.
final class BackgroundDelegate: NSObject, URLSessionDataDelegate {
    private let account: BackgroundAccount
    private let events: BackgroundEvents

    init(_ account: BackgroundAccount, _ events: BackgroundEvents) {
        self.account = account
        self.events = events
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        account.sent(totalBytesSent, by: task)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if !account.received(data, by: dataTask) { dataTask.cancel() }
    }

    // Background sessions of Apple's follow redirects without asking; others do not.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        account.completed(task, task.response as? HTTPURLResponse, error)
    }

    #if canImport(FoundationNetworking)
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(account.bodyStream(for: task))
    }

    // URLSession on Linux never ends a task whose challenge has no answer; the response that asks is the answer.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        account.completed(task, task.response as? HTTPURLResponse, nil)
        completionHandler(.cancelAuthenticationChallenge, nil)
    }
    #else
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        Task { @MainActor in events.finish() }
    }
    #endif
}
