#if canImport(Darwin)
import Foundation
import HTTPTypes
import PostcardClient
import Synchronization

/// The transfer service of a background `URLSession`. It makes tasks from transfers, and events from delegate calls.
struct URLSessionTransferService: TransferService {
    private let settings: BackgroundSession
    /// Identifies the service's queue among the queues that this process has made with the session.
    private let token = EventRelay.Token()

    /// The estimated size of the head of a request or response, which the system uses for scheduling.
    private static let headBytes: Int64 = 4096

    init(_ settings: BackgroundSession) {
        self.settings = settings
    }

    func connect(
        _ report: @escaping @Sendable (AttemptEvent) -> Void,
        freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) async throws {
        await SystemSession.of(settings).attach(token, settings, report, freshFields)
    }

    func transfers() async throws -> [AttemptID: Bool] {
        var transfers: [AttemptID: Bool] = [:]
        for task in await SystemSession.of(settings).session.allTasks {
            guard let id = task.transfer else {
                // The task's description names no upload, so no upload waits for this task.
                task.cancel()
                continue
            }
            transfers[id] = task.state == .completed
            // If an earlier process ended between making the task and starting it, the task is started here.
            if task.state == .suspended { task.resume() }
        }
        return transfers
    }

    func begin(_ transfer: Transfer) async throws {
        var request = URLRequest(
            url: transfer.url, cachePolicy: .reloadIgnoringLocalCacheData,
            timeoutInterval: settings.idleTimeout / .seconds(1))
        request.httpMethod = transfer.method.rawValue
        request.httpShouldHandleCookies = false
        for field in transfer.headerFields { request.addValue(field.value, forHTTPHeaderField: field.name.rawName) }
        request.allow(transfer.networks)
        let task = task(for: transfer, request)
        task.taskDescription = "\(transfer.id)"
        task.earliestBeginDate = transfer.earliestBegin
        task.countOfBytesClientExpectsToSend = transfer.length + Self.headBytes
        task.countOfBytesClientExpectsToReceive = 2 * Self.headBytes
        task.priority = transfer.taskPriority
        task.resume()
    }

    private func task(for transfer: Transfer, _ request: URLRequest) -> URLSessionUploadTask {
        SystemSession.of(settings).withSession { session in
            if let data = transfer.resumeData {
                // The method is imported as never nil, but its documentation says that it returns nil for invalid data.
                let task: URLSessionUploadTask? = session.uploadTask(withResumeData: data)
                if let task { return task }
            }
            return session.uploadTask(with: request, fromFile: transfer.body)
        }
    }

    func cancel(_ ids: Set<AttemptID>) async {
        for task in await SystemSession.of(settings).session.allTasks {
            if let id = task.transfer, ids.contains(id) { task.cancel() }
        }
    }

    func pause(_ ids: Set<AttemptID>) async -> [AttemptID: Data] {
        var tasks: [AttemptID: URLSessionUploadTask] = [:]
        for task in await SystemSession.of(settings).session.allTasks {
            if let id = task.transfer, ids.contains(id), let task = task as? URLSessionUploadTask { tasks[id] = task }
        }
        return await answers(from: tasks) { task, answer in task.cancel(byProducingResumeData: answer) }
    }

    func disconnect() async {
        SystemSession.of(settings).detach(token)
    }

    func release() async {
        SystemSession.of(settings).release(token)
    }
}

/// The only session of this process with an identifier. The system allows no second session with the identifier until
/// all tasks of the first have ended. So the session lives as long as the process, unless the process gives the session
/// up for another process.
final class SystemSession: NSObject, URLSessionDataDelegate {
    private static let all = Mutex<[String: SystemSession]>([:])

    private struct State {
        var slot = SessionSlot<URLSession>.none
        /// Identifies the queue that made ``freshFields``. That closure keeps the queue's database open.
        var token: EventRelay.Token?
        var freshFields: (@Sendable (AttemptID) async -> HTTPFields?)?
        var answerChallenge:
            (@Sendable (URLAuthenticationChallenge) async -> (URLSession.AuthChallengeDisposition, URLCredential?))?
        /// The identifiers of the tasks whose servers the app rejected.
        var rejected: Set<Int> = []
    }

    private let state = Mutex(State())
    private let relay = EventRelay()
    private let configuration: URLSessionConfiguration

    static func of(_ settings: BackgroundSession) -> SystemSession {
        all.withLock { all in
            if let session = all[settings.identifier] { return session }
            let session = SystemSession(.background(settings))
            all[settings.identifier] = session
            return session
        }
    }

    private init(_ configuration: URLSessionConfiguration) {
        self.configuration = configuration
    }

    /// The session. It is made at its first use, and then reports events.
    var session: URLSession { withSession { $0 } }

    /// Calls a closure with the session. If the session has ended, makes a new one first, because making a task of an
    /// ended session would crash the app.
    func withSession<Value: Sendable>(_ work: (URLSession) -> Value) -> Value {
        state.withLock { state in
            switch state.slot {
            case .open(let session), .ending(let session, _): return work(session)
            case .none:
                let queue = OperationQueue()
                queue.maxConcurrentOperationCount = 1
                let session = URLSession(configuration: configuration, delegate: self, delegateQueue: queue)
                state.slot = .open(session)
                return work(session)
            }
        }
    }

    func attach(
        _ token: EventRelay.Token, _ settings: BackgroundSession, _ report: @escaping @Sendable (AttemptEvent) -> Void,
        _ freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) async {
        while !take(token, settings, freshFields) { await ended() }
        guard relay.attach(token, report) else { return }
        _ = session
    }

    /// Records the queue that uses the session from now on. Returns `false` if the queue must wait for the end of
    /// the session, because this process gave up the session.
    private func take(
        _ token: EventRelay.Token, _ settings: BackgroundSession,
        _ freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) -> Bool {
        state.withLock { state in
            if state.slot.isEnding { return false }
            if let latest = state.token, token < latest { return true }
            state.token = token
            state.answerChallenge = settings.answerChallenge
            state.freshFields = freshFields
            return true
        }
    }

    /// If this process gave up the session, waits until the session has ended.
    private func ended() async {
        await withCheckedContinuation { caller in
            if !state.withLock({ $0.slot.wait(caller) }) { caller.resume() }
        }
    }

    /// Gives up the session, unless a later queue uses it.
    func release(_ token: EventRelay.Token) {
        let session = state.withLock { state in
            guard state.token == token else { return nil as URLSession? }
            state.freshFields = nil
            return state.slot.giveUp()
        }
        session?.finishTasksAndInvalidate()
        relay.detach(token)
    }

    func detach(_ token: EventRelay.Token) {
        relay.detach(token)
        state.withLock { if $0.token == token { $0.freshFields = nil } }
    }

    private func report(_ event: AttemptEvent) { relay.report(event) }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        if let id = task.transfer { report(.sent(id, bytes: totalBytesSent)) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if let id = dataTask.transfer { report(.received(id, data)) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let id = task.transfer else { return }
        let isRejected = state.withLock { $0.rejected.remove(task.taskIdentifier) != nil }
        if let data = (error as? URLError)?.uploadTaskResumeData { report(.resumable(id, data)) }
        report(.ended(id, AttemptEnd(of: task, error, isRejected: isRejected)))
    }

    // The system calls this method only for tasks with an `earliestBeginDate`.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        guard let id = task.transfer, let freshFields = state.withLock({ $0.freshFields }) else {
            return completionHandler(.continueLoading, nil)
        }
        Task {
            guard let fields = await freshFields(id) else { return completionHandler(.continueLoading, nil) }
            var request = request
            for field in fields { request.setValue(nil, forHTTPHeaderField: field.name.rawName) }
            for field in fields { request.addValue(field.value, forHTTPHeaderField: field.name.rawName) }
            completionHandler(.useNewRequest, request)
        }
    }

    // The system also calls this method for the server's certificate, because the session has no separate method.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let answer = state.withLock({ $0.answerChallenge }) else {
            return completionHandler(.performDefaultHandling, nil)
        }
        let number = task.taskIdentifier
        Task {
            let (disposition, credential) = await answer(challenge)
            // The system reports such a task as cancelled, so the rejection is recorded here.
            if disposition == .cancelAuthenticationChallenge {
                state.withLock { _ = $0.rejected.insert(number) }
            }
            completionHandler(disposition, credential)
        }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        // Making a task of an invalid session would crash the app, so the next use makes another session.
        switch state.withLock({ $0.slot.end(session) }) {
        case .known: break
        case .givenUp(let waiting): for caller in waiting { caller.resume() }
        case .unexpected:
            let code = (error as? URLError)?.code.rawValue
            report(.invalidated(SessionProblem(systemCode: code, error.map { "\($0)" } ?? "no reason")))
        }
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        report(.deliveredAll)
    }
}

extension URLSessionTask {
    fileprivate var transfer: AttemptID? { taskDescription.flatMap(AttemptID.init) }
}

extension AttemptEnd {
    /// Reads from a task of the system how it has ended.
    ///
    /// - Parameter isRejected: Whether the app rejected the server's certificate or its request for credentials.
    fileprivate init(of task: URLSessionTask, _ error: (any Error)?, isRejected: Bool) {
        let url = task.originalRequest?.url ?? URL(filePath: "/")
        let response = task.response as? HTTPURLResponse
        let cause = error.map { $0 as NSError }
        if isRejected {
            self = .failed(
                .tls(.lasts, with: url, "the app rejected the server's authentication", underlyingError: error))
        } else if let error,
            !Self.isArrival(status: response?.statusCode, errorDomain: cause?.domain, code: cause?.code)
        {
            let known = (error as? URLError).flatMap { error in
                AttemptEnd(
                    systemCode: error.code.rawValue, cancellationReason: error.backgroundTaskCancelledReason?.rawValue)
            }
            self =
                known
                ?? .failed(UploadError(error, of: url, bytesSent: task.countOfBytesSent))
        } else if let response {
            self = .response(
                status: response.statusCode, headerFields: HTTPFields(response), url: response.url,
                method: task.currentRequest?.httpMethod.flatMap { HTTPRequest.Method($0) },
                requestURL: task.originalRequest?.url)
        } else {
            self = .failed(.connectionLost(to: url, "it gave no HTTP response"))
        }
    }
}

extension URLSessionConfiguration {
    fileprivate static func background(_ settings: BackgroundSession) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: settings.identifier)
        configuration.sharedContainerIdentifier = settings.appGroup
        configuration.isDiscretionary = settings.isDiscretionary
        configuration.httpMaximumConnectionsPerHost = settings.maximumConnectionsPerHost
        configuration.timeoutIntervalForRequest = settings.idleTimeout / .seconds(1)
        configuration.timeoutIntervalForResource = settings.totalTimeout / .seconds(1)
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCache = nil
        return configuration
    }
}
#endif
