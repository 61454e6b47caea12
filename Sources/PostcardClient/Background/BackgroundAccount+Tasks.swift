import Foundation
import HTTPTypes
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What the session's delegate tells.
extension BackgroundAccount {
    func sent(_ bytesSent: Int64, by task: URLSessionTask) {
        let isNews = change(task) { carriage in
            carriage.bytesSent = max(carriage.bytesSent, bytesSent)
            return true
        }
        if isNews == true { ring() }
    }

    /// - Returns: Whether the task is to go on.
    func received(_ data: Data, by task: URLSessionTask) -> Bool {
        let isWithinLimit = change(task) { carriage in
            carriage.received.append(data)
            guard carriage.received.count > maximumResponseBytes else { return true }
            carriage.cause = carriage.cause ?? .responseTooLarge
            carriage.received = Data()
            return false
        }
        return isWithinLimit ?? true
    }

    #if canImport(FoundationNetworking)
    /// The body for the session to read, once: it would silently send a request again whose answer was lost on a
    /// kept connection.
    func bodyStream(for task: URLSessionTask) -> InputStream? {
        let isFirst = change(task) { carriage in
            if carriage.isBodyTaken { carriage.cause = carriage.cause ?? .answerLost }
            defer { carriage.isBodyTaken = true }
            return !carriage.isBodyTaken
        }
        guard isFirst == true, let id = task.uploadID else {
            return FormInputStream(nil)
        }
        return InputStream(url: folder.body(id)) ?? FormInputStream(nil)
    }
    #endif

    private func change(_ task: URLSessionTask, _ body: (inout Carriage) -> Bool) -> Bool? {
        guard let id = task.uploadID else { return nil }
        return state.withLock { state in
            state.carry(task, id)
            guard case .carried(var carriage) = state.entries[id]?.phase,
                carriage.task.taskIdentifier == task.taskIdentifier
            else { return nil }
            // Out of the enum while it changes, so that its data is not copied.
            state.entries[id]?.phase = .lost
            defer { state.entries[id]?.phase = .carried(carriage) }
            return body(&carriage)
        }
    }

    /// The task has ended, with a response or an error.
    func completed(_ task: URLSessionTask, _ response: HTTPURLResponse?, _ error: (any Error)?) {
        guard let id = task.uploadID else { return }
        let found = state.withLock { state -> (UploadManifest, Carriage)? in
            if state.isClosed { return nil }
            state.carry(task, id)
            guard let entry = state.entries[id], case .carried(let carriage) = entry.phase,
                carriage.task.taskIdentifier == task.taskIdentifier
            else { return nil }
            return (entry.manifest, carriage)
        }
        guard let (manifest, carriage) = found else { return }
        guard let end = self.end(of: manifest, carriage, response, error) else {
            // Nobody here cancelled it: the user ended the app, or the system gave up. The form is still there.
            state.withLock { $0.entries[id]?.phase = .lost }
            return ring()
        }
        do {
            try self.end(id, end)
        } catch {
            note(error)
        }
    }

    private func end(
        of manifest: UploadManifest, _ carriage: Carriage, _ response: HTTPURLResponse?, _ error: (any Error)?
    ) -> UploadManifest.State? {
        let failure: UploadError
        if carriage.cause == .responseTooLarge {
            failure = .responseTooLarge(from: manifest.url, limit: maximumResponseBytes)
        } else if carriage.cause == .answerLost {
            failure = .connectionLost(to: manifest.url, "the server closed it")
        } else if let error {
            let isCancelled = (error as? URLError)?.code == .cancelled
            if isCancelled { return carriage.cause == .cancelled ? .cancelled : nil }
            failure = UploadError(error, of: manifest.url, bytesSent: carriage.bytesSent)
        } else if let response {
            let response = UploadResponse(response, body: carriage.received)
            if response.status.kind == .successful { return .done(answer: UploadManifest.Answer(response)) }
            failure = .refused(response, by: manifest.url)
        } else {
            failure = .connectionLost(to: manifest.url, "it gave no HTTP response")
        }
        return .failed(
            code: failure.code.rawValue, message: failure.message,
            answer: failure.response.map(UploadManifest.Answer.init))
    }
}

extension BackgroundAccount.State {
    /// Takes a task for the one that carries an upload, where none does. The first word of a task that ended
    /// while the program was gone may come before it is found among the session's tasks.
    mutating func carry(_ task: URLSessionTask, _ id: UUID) {
        guard case .lost = entries[id]?.phase else { return }
        entries[id]?.phase = .carried(BackgroundAccount.Carriage(task: task, bytesSent: task.countOfBytesSent))
    }
}
