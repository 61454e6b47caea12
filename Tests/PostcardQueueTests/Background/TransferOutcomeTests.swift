import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardQueue

@Suite struct TransferOutcomeTests {
    private static let cases: [(Int, String?, String?, TransferOutcomeMeaning)] = [
        (201, "https://example.com/uploads", "POST", .accepted),
        (204, "https://EXAMPLE.com:443/elsewhere", "POST", .accepted), (201, nil, nil, .accepted),
        (413, "https://example.com/uploads", "POST", .failed), (301, "https://example.com/uploads", "POST", .failed),
        (200, "https://example.com/page", "GET", .strayed), (201, "https://example.org/uploads", "POST", .strayed),
        (201, "http://example.com/uploads", "POST", .strayed), (201, "https://example.com:8443/", "POST", .strayed),
        (503, "https://example.org/uploads", "POST", .strayed),
    ]

    @Test(arguments: cases)
    func `only an answer of the form's own server to the form's own request counts`(
        status: Int, url: String?, method: String?, meaning: TransferOutcomeMeaning
    ) async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let id = try await queue.enqueue(MultipartForm(), to: address)
        let upload = try #require(try queue.upload(id))
        let end = TransferEnd.response(
            status: status, headerFields: HTTPFields(), url: url.flatMap { URL(string: $0) },
            method: method.flatMap { HTTPRequest.Method($0) })
        let found: TransferOutcomeMeaning =
            switch TransferOutcome(end, body: Data(), of: upload, mayBeRepetition: false) {
            case .accepted: .accepted
            case .failed: .failed
            case .strayed: .strayed
            case .interrupted: .interrupted
            }
        #expect(found == meaning)
    }

    @Test(
        arguments: [
            (-1, 201, false, TransferOutcomeMeaning.failed), (0, 201, false, .accepted), (nil, 201, false, .accepted),
            (1, 201, false, .accepted), (-1, 413, false, .failed), (-1, 201, true, .accepted), (-1, 413, true, .failed),
        ] as [(Int64?, Int, Bool, TransferOutcomeMeaning)])
    func `a success that came before the whole form was sent is a failure that keeps the form`(
        extra: Int64?, status: Int, mayBeRepetition: Bool, meaning: TransferOutcomeMeaning
    ) async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let upload = try #require(try queue.upload(try await queue.enqueue(MultipartForm(), to: address)))
        let end = TransferEnd.response(
            status: status, headerFields: HTTPFields(), url: address, method: .post,
            bytesSent: extra.map { upload.totalBytes + $0 })
        switch TransferOutcome(end, body: Data(), of: upload, mayBeRepetition: mayBeRepetition) {
        case .accepted: #expect(meaning == .accepted)
        case .failed(let error):
            #expect(meaning == .failed)
            #expect(error.code == (status == 201 ? .answeredEarly : .refused))
            let policy = RetryPolicy(maximumAttempts: 9)
            #expect(policy.nextAttempt(after: error, failures: 1, mayBeRepetition: true, now: Date()) == nil)
        default: Issue.record("It is neither accepted nor failed.")
        }
    }

    @Test func `a system that has forgotten how much it sent is believed`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let upload = try #require(try queue.upload(try await queue.enqueue(MultipartForm(), to: address)))
        let end = TransferEnd.response(
            status: 201, headerFields: HTTPFields(), url: address, method: .post, bytesSent: 0)
        guard case .accepted = TransferOutcome(end, body: Data(), of: upload, mayBeRepetition: false) else {
            Issue.record("It is not accepted.")
            return
        }
    }

    @Test(arguments: [
        "", "x", "\(UUID().uuidString)", "\(UUID().uuidString) 0", "\(UUID().uuidString) -1",
        "\(UUID().uuidString)  1", "../../etc 1", "\(UUID().uuidString) 1 2",
    ])
    func `a task of something else is no transfer`(description: String) {
        #expect(Transfer.ID(description) == nil)
    }

    @Test func `a task's description names its transfer`() {
        let id = Transfer.ID(upload: UUID(), attempt: 7)
        #expect(Transfer.ID(id.description) == id)
    }

    @Test(arguments: [
        (NetworkPath?.none, 1), (NetworkPath(), 8), (NetworkPath(isCellular: true), 4),
        (NetworkPath(isCellular: true, isExpensive: true), 2),
        (NetworkPath(isCellular: true, isExpensive: true, isConstrained: true), 1),
    ])
    func `an upload waits for a network that it may use, and for one that is known`(path: NetworkPath?, count: Int) {
        let masks = NetworkPath.allowedMasks(on: path)
        #expect(masks.count == count && masks.contains(0))
    }
}

/// What a transfer's end can mean.
enum TransferOutcomeMeaning: Sendable {
    case accepted, failed, strayed, interrupted
}
