import Hummingbird
import Logging
import NIOCore
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import Synchronization
import Testing

/// A store that takes no upload.
private struct FailingStore: UploadStore {
    struct Upload: PendingUpload {
        let error: UploadStoreError
        let onDiscard: @Sendable () -> Void

        func beginFile(_ file: UploadRecord.FileHeader) async throws { throw error }
        func write(_ bytes: ByteBuffer) async throws { throw error }
        func endFile() async throws { throw error }
        func finishedFiles() async throws -> [FinishedFile] { throw error }
        func commit(
            fields: [UploadRecord.Field], parts: [UploadRecord.Part]
        ) async throws -> CommittedUpload { throw error }
        func discard() async { onDiscard() }
    }

    let error: UploadStoreError
    var onDiscard: @Sendable () -> Void = {}

    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending Upload {
        Upload(error: error, onDiscard: onDiscard)
    }
    func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID] { throw error }
    func record(_ id: UploadID) async throws -> UploadRecord? { throw error }
    func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)? { throw error }
    func delete(_ id: UploadID) async throws -> Bool { throw error }
}

@Suite(.timeLimit(.minutes(10)))
struct StoreFailureTests {
    @Test(arguments: [
        (UploadStoreError.Code.full, "60", "store-full"), (.unavailable, "10", "store-unavailable"),
    ])
    func `a store that fails is a refusal that says whether to try again`(
        code: UploadStoreError.Code, retryAfter: String, problem: String
    ) async throws {
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

    /// Requests whose forms do not become records: one ends before its form, one is malformed, and the store fails at a
    /// file and at the end.
    static let failing: [(request: String, closesInput: Bool, status: Int)] = [
        (Form.head(contentLength: 10), true, 400),
        (Form.request(body: Form.part("no field")), false, 400),
        (Form.request(body: Form.fileHeader + "content" + Form.end), false, 503),
        (Form.request(body: Form.small), false, 503),
    ]

    @Test(arguments: failing)
    func `the store discards each upload that does not become a record, once`(
        request: String, closesInput: Bool, status: Int
    ) async throws {
        let discards = Mutex(0)
        let store = FailingStore(error: UploadStoreError(.unavailable, "The disk said no.")) {
            discards.withLock { $0 += 1 }
        }
        let router = Router()
        router.addUploads(to: store)
        try await withApplication(router: router) { receiver in
            let response = try await receiver.exchange(request, closingInput: closesInput)
            #expect(response.status == status)
            #expect(discards.withLock { $0 } == 1)
        }
    }

    @Test
    func `a full store counts as one that failed, and one that has the key of another form does not`() async throws {
        try await withReceiver({ $0.keptFreeBytes = .max }) { receiver in
            let refused = try await receiver.exchange(Form.request(body: Form.small))
            #expect(refused.problem?.code == "store-full")
            let metrics = try await receiver.metrics()
            #expect(metrics[#"postcard_store_errors_total{code="full",operation="store"}"#] == 1)
        }
        try await withReceiver { receiver in
            for body in [Form.small, Form.fileHeader + Form.end] {
                _ = try await receiver.exchange(Form.request(body: body, fields: ["Idempotency-Key: k"]))
            }
            let metrics = try await receiver.metrics()
            #expect(metrics[#"postcard_refusals_total{code="idempotency-key-reused"}"#] == 1)
            #expect(!metrics.values.keys.contains { $0.hasPrefix("postcard_store_errors_total") })
        }
    }
}
