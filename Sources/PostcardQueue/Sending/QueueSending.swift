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
struct QueueSending: Sendable {
    private let claimed: ClaimedUpload
    private let queue: UploadQueue
    private let client: UploadClient
    private let options: QueueOptions

    /// More of a response is not kept.
    private static let maximumResponseBytes = 64 << 10

    init(_ claimed: ClaimedUpload, queue: UploadQueue, client: UploadClient, options: QueueOptions) {
        self.claimed = claimed
        self.queue = queue
        self.client = client
        self.options = options
    }

    private var id: QueuedUpload.ID { claimed.upload.id }

    /// Sends the upload, until the stream ends.
    ///
    /// - Throws: ``UploadQueueError``; whatever becomes of the upload is not thrown but written down.
    func run(until cancellation: AsyncStream<Never>) async throws {
        defer { queue.progress.end(id) }
        do {
            let response = try await send(until: cancellation)
            try queue.database.write { try $0.finishUpload(id, with: response) }
            if let folder = claimed.folder { queue.directory.remove(folder) }
        } catch let error as UploadQueueError {
            throw error
        } catch is CancellationError {
            // One that somebody cancelled is no longer marked as sending, and stays as it is.
            try queue.database.writeHastily { try $0.returnUpload(id) }
        } catch {
            try note(error)
        }
    }

    private func send(until cancellation: AsyncStream<Never>) async throws -> QueuedUpload.Response {
        let form = try claimed.form.form(folder: claimed.folder.map(queue.directory.folder(named:)))
        let headerFields = headerFields
        let upload = claimed.upload
        let (progress, sights) = (queue.progress, queue.sights)
        let (database, resource) = (queue.database, claimed.resource)
        let response = try await withThrowingTaskGroup(of: UploadResponse.self) { [client] group in
            defer { group.cancelAll() }
            group.addTask {
                try await client.upload(
                    form, to: upload.url, method: upload.method, headerFields: headerFields, resuming: resource,
                    keepingResource: { resource in
                        try database.writeHastily { try $0.noteResource(resource, of: upload.id) }
                    }
                ) {
                    progress.note(upload.id, bytesSent: $0.bytesSent)
                    sights.note()
                }
            }
            group.addTask {
                for await _ in cancellation {}
                throw CancellationError()
            }
            guard let response = try await group.next() else { throw CancellationError() }
            return response
        }
        return QueuedUpload.Response(
            status: response.status.code, contentType: response.headerFields[.contentType],
            body: response.body.prefix(Self.maximumResponseBytes))
    }

    private var headerFields: HTTPFields {
        var fields = HTTPFields()
        for field in claimed.headerFields {
            if let name = HTTPField.Name(field.name) { fields.append(HTTPField(name: name, value: field.value)) }
        }
        if let name = HTTPField.Name("Idempotency-Key") { fields[name] = claimed.idempotencyKey }
        return fields
    }

    /// Writes down a failure: for another attempt, or for good.
    private func note(_ error: any Error) throws {
        let policy = options.retryPolicy
        let failures = claimed.failures + 1
        guard let error = error as? UploadError, failures < policy.maximumAttempts, policy.mayPass(error) else {
            return try queue.database.write { try $0.failUpload(id, because: "\(error)") }
        }
        var generator = SystemRandomNumberGenerator()
        let delay = policy.delay(
            after: failures, retryAfter: error.response?.retryAfter(), using: &generator)
        let due = Date(timeIntervalSinceNow: delay / .seconds(1))
        try queue.database.writeHastily { try $0.delayUpload(id, until: due, because: error.message) }
    }
}
#endif
