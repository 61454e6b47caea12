import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardQueue

@Suite struct AttemptOutcomeTests {
    private static let cases: [(Int, String?, String?, AttemptOutcomeMeaning)] = [
        (201, "https://example.com/uploads", "POST", .accepted),
        (204, "https://EXAMPLE.com:443/elsewhere", "POST", .accepted), (201, nil, nil, .accepted),
        (413, "https://example.com/uploads", "POST", .failed), (301, "https://example.com/uploads", "POST", .failed),
        (200, "https://example.com/page", "GET", .unclear),
        (201, "https://example.org/uploads", "POST", .unclear),
        (201, "http://example.com/uploads", "POST", .unclear),
        (201, "https://example.com:8443/", "POST", .unclear),
        (503, "https://example.org/uploads", "POST", .unclear),
    ]

    @Test(arguments: cases)
    func `only a response of the form's server to the form's request counts`(
        status: Int, url: String?, method: String?, meaning: AttemptOutcomeMeaning
    ) async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let id = try await queue.enqueue(MultipartForm(), to: address)
        let upload = try #require(try queue.upload(id))
        let end = AttemptEnd.response(
            status: status, headerFields: HTTPFields(), url: url.flatMap { URL(string: $0) },
            method: method.flatMap { HTTPRequest.Method($0) })
        let found: AttemptOutcomeMeaning =
            switch AttemptOutcome(end, body: Data(), of: upload, after: .neverArrived) {
            case .accepted: .accepted
            case .failed: .failed
            case .unclear: .unclear
            case .interrupted, .postponed, .expired, .stopped: .interrupted
            }
        #expect(found == meaning)
    }

    @Test(
        arguments: [
            (-1, 201, false, AttemptOutcomeMeaning.failed), (0, 201, false, .accepted), (nil, 201, false, .accepted),
            (1, 201, false, .accepted), (-1, 413, false, .failed), (-1, 201, true, .accepted), (-1, 413, true, .failed),
        ] as [(Int64?, Int, Bool, AttemptOutcomeMeaning)])
    func `a success before the whole form was sent counts only if the server may know the form`(
        extra: Int64?, status: Int, mayHaveArrived: Bool, meaning: AttemptOutcomeMeaning
    ) async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let upload = try #require(try queue.upload(try await queue.enqueue(MultipartForm(), to: address)))
        let end = AttemptEnd.response(
            status: status, headerFields: HTTPFields(), url: address, method: .post,
            bytesSent: extra.map { upload.totalBytes + $0 })
        let delivery: Delivery = mayHaveArrived ? .responseLost(resource: nil) : .neverArrived
        switch AttemptOutcome(end, body: Data(), of: upload, after: delivery) {
        case .accepted: #expect(meaning == .accepted)
        case .failed(let error, _):
            #expect(meaning == .failed)
            #expect(error.code == (status == 201 ? .earlyResponse : .refused))
        default: Issue.record("The outcome is neither accepted nor failed.")
        }
    }

    @Test func `a success counts if the system has lost its count of bytes`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let upload = try #require(try queue.upload(try await queue.enqueue(MultipartForm(), to: address)))
        let end = AttemptEnd.response(
            status: 201, headerFields: HTTPFields(), url: address, method: .post, bytesSent: 0)
        guard case .accepted = AttemptOutcome(end, body: Data(), of: upload, after: .neverArrived) else {
            Issue.record("The outcome is not accepted.")
            return
        }
    }

    @Test(arguments: [
        "", "x", "\(UUID().uuidString)", "\(UUID().uuidString) 0", "\(UUID().uuidString) -1",
        "\(UUID().uuidString)  1", "../../etc 1", "\(UUID().uuidString) 1 2",
    ])
    func `a task with another description is not an attempt`(description: String) {
        #expect(AttemptID(description) == nil)
    }

    @Test func `a task's description identifies its attempt`() {
        let id = AttemptID(upload: UUID(), number: 7)
        #expect(AttemptID(id.description) == id)
    }

    @Test(arguments: [
        (NetworkPath?.none, 1), (NetworkPath(), 8), (NetworkPath(isCellular: true), 4),
        (NetworkPath(isCellular: true, isExpensive: true), 2),
        (NetworkPath(isCellular: true, isExpensive: true, isConstrained: true), 1),
    ])
    func `an upload waits until the network is known and it may use it`(path: NetworkPath?, count: Int) {
        let masks = NetworkPath.allowedMasks(on: path)
        #expect(masks.count == count && masks.contains(0))
    }
}

/// The kinds of outcomes.
enum AttemptOutcomeMeaning: Sendable {
    case accepted, failed, unclear, interrupted
}
