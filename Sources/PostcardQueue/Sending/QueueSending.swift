#if Queue
import HTTPTypes
import PostcardClient
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One attempt of one upload, and what the database is told of it.
protocol QueueSending: Sendable {
    var claimed: ClaimedUpload { get }
    var queue: UploadQueue { get }
    var retryPolicy: RetryPolicy { get }

    /// Sends the upload, and gives the answer, whose status is 2xx.
    func response() async throws -> UploadResponse

    /// Somebody gave the upload up, or the queue is run no longer: then the task is cancelled.
    func interrupted() async throws

    /// The database knows what became of the upload.
    func settled() throws
}

extension QueueSending {
    var id: QueuedUpload.ID { claimed.upload.id }

    /// Sends the upload, until the stream ends.
    ///
    /// - Throws: ``UploadQueueError``, `BackgroundUploadError` where the background uploads were closed; whatever
    ///   becomes of the upload is not thrown but written down.
    func run(until cancellation: AsyncStream<Never>) async throws {
        defer { queue.progress.end(id) }
        do {
            try finish(with: try await response(until: cancellation))
        } catch let error as UploadQueueError {
            throw error
        } catch let error as BackgroundUploadError where error.code == .closed {
            throw error
        } catch is CancellationError {
            try await interrupted()
        } catch {
            try note(error)
            try settled()
        }
    }

    private func response(until cancellation: AsyncStream<Never>) async throws -> UploadResponse {
        try await withThrowingTaskGroup(of: UploadResponse.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await response() }
            group.addTask {
                for await _ in cancellation {}
                throw CancellationError()
            }
            guard let response = try await group.next() else { throw CancellationError() }
            return response
        }
    }

    func noteProgress(bytesSent: Int64) {
        queue.progress.note(id, bytesSent: bytesSent)
        queue.sights.note()
    }

    func form() throws(FormError) -> MultipartForm {
        try claimed.form.form(folder: claimed.folder.map(queue.directory.folder(named:)))
    }

    /// Writes down that the server has taken the upload.
    func finish(with response: UploadResponse) throws {
        let kept = QueuedUpload.Response(
            status: response.status.code, contentType: response.headerFields[.contentType],
            body: response.body.prefix(QueuedUpload.Response.maximumBodyBytes))
        try queue.database.write { try $0.finishUpload(id, with: kept) }
        if let folder = claimed.folder { queue.directory.remove(folder) }
        try settled()
    }

    /// Writes down a failure: for another attempt, or for good.
    private func note(_ error: any Error) throws {
        let failures = claimed.failures + 1
        guard failures < retryPolicy.maximumAttempts, let reason = passing(error) else {
            return try queue.database.write { try $0.failUpload(id, because: "\(error)") }
        }
        var generator = SystemRandomNumberGenerator()
        let delay = retryPolicy.delay(
            after: failures, retryAfter: (error as? UploadError)?.response?.retryAfter(), using: &generator)
        let due = Date(timeIntervalSinceNow: delay / .seconds(1))
        try queue.database.writeHastily { try $0.delayUpload(id, until: due, because: reason) }
    }

    /// What an error says, where another attempt may go better.
    private func passing(_ error: any Error) -> String? {
        switch error {
        case let error as UploadError: retryPolicy.mayPass(error) || isStillUnderWay(error) ? error.message : nil
        // A disk without room, a body that is gone: the queue has the form still.
        case let error as BackgroundUploadError: error.message
        default: nil
        }
    }

    /// Whether the server is still at work on what an earlier attempt has sent
    /// (draft-ietf-httpapi-idempotency-key-header).
    private func isStillUnderWay(_ error: UploadError) -> Bool {
        claimed.upload.attempts > 1 && error.response?.status == .conflict
    }
}

extension QueuedUpload.Response {
    /// More of a response is not kept.
    fileprivate static let maximumBodyBytes = 64 << 10
}
#endif
