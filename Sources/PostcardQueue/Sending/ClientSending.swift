#if Queue
import PostcardClient

/// An attempt by a client: it ends with the process.
struct ClientSending: QueueSending {
    let claimed: ClaimedUpload
    let queue: UploadQueue
    let client: UploadClient
    let retryPolicy: RetryPolicy

    func response() async throws -> UploadResponse {
        let upload = claimed.upload
        let database = queue.database
        return try await client.upload(
            try form(), to: upload.url, method: upload.method, headerFields: claimed.headerFields,
            resuming: claimed.resource,
            keepingResource: { resource in
                try database.writeHastily { try $0.noteResource(resource, of: upload.id) }
            }
        ) {
            noteProgress(bytesSent: $0.bytesSent)
        }
    }

    func interrupted() throws {
        // One that somebody cancelled is no longer marked as sending, and stays as it is.
        try queue.database.writeHastily { try $0.returnUpload(id) }
    }

    func settled() {}
}
#endif
