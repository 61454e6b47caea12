import Hummingbird
import Logging
import NIOCore
import PostcardServer
import Testing

/// A store that takes no upload.
private struct FailingStore: UploadStore {
    struct Upload: PendingUpload {
        let error: UploadStoreError

        func beginFile(
            name: String, filename: String, contentType: String, detectedType: String?
        ) async throws { throw error }
        func write(_ bytes: ByteBuffer) async throws { throw error }
        func endFile() async throws { throw error }
        func finishedFiles() async throws -> [FinishedFile] { throw error }
        func commit(
            fields: [UploadRecord.Field], parts: [UploadRecord.Part]
        ) async throws -> CommittedUpload { throw error }
        func discard() async {}
    }

    let error: UploadStoreError

    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending Upload {
        Upload(error: error)
    }
    func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID] { throw error }
    func record(_ id: UploadID) async throws -> UploadRecord? { throw error }
    func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)? { throw error }
    func delete(_ id: UploadID) async throws -> Bool { throw error }
}

@Suite(.timeLimit(.minutes(10)))
struct StoreFailureTests {
    @Test(
        "A store that fails is a refusal that says whether to try again",
        arguments: [
            (UploadStoreError.Code.full, "60", "store-full"), (.unavailable, "10", "store-unavailable"),
        ])
    func failure(code: UploadStoreError.Code, retryAfter: String, problem: String) async throws {
        let router = Router()
        var options = UploadOptions()
        options.access = .reading
        router.addUploads(to: FailingStore(error: UploadStoreError(code, "The disk said no.")), options: options)
        try await withApplication(router: router) { receiver in
            let posted = try await receiver.exchange(Form.request(body: Form.small))
            #expect(posted.status == 503)
            #expect(posted.headers["retry-after"] == retryAfter)
            #expect(posted.problem?.code == problem)
            #expect(posted.problem?.detail.contains("The disk said no.") == false)
            let listed = try await receiver.exchange("GET /uploads HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(listed.status == 503)
            #expect(listed.problem?.detail == "What was stored could not be read.")
        }
    }
}
