import Foundation
import HTTPTypes
import PostcardClient
import PostcardFiles
import PostcardForm
import PostcardTestSupport
import SystemPackage
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
        // The system asked what the server has of an upload.
        (204, "https://example.com/uploads/1", "HEAD", .unclear),
        (404, "https://example.com/uploads/1", "HEAD", .failed),
        // No status of HTTP.
        (1000, nil, nil, .failed), (-1, nil, nil, .failed),
    ]

    @Test(
        arguments: [
            (200, "NSPOSIXErrorDomain", 1, true), (201, "NSPOSIXErrorDomain", 1, true),
            (503, "NSPOSIXErrorDomain", 1, false), (nil, "NSPOSIXErrorDomain", 1, false),
            (200, "NSPOSIXErrorDomain", 54, false), (200, "NSURLErrorDomain", 1, false), (200, nil, nil, false),
        ] as [(Int?, String?, Int?, Bool)])
    func `an upload has arrived if the system cannot store the response of a locked device`(
        status: Int?, domain: String?, code: Int?, isArrival: Bool
    ) {
        #expect(AttemptEnd.isArrival(status: status, errorDomain: domain, code: code) == isArrival)
    }

    @Test(arguments: cases)
    func `only a response of the form's server to the form's request counts`(
        status: Int, url: String?, method: String?, meaning: AttemptOutcomeMeaning
    ) async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let id = try await queue.enqueue(MultipartForm(), to: address)
        let upload = try #require(try await queue.upload(id))
        let end = AttemptEnd.response(
            status: status, headerFields: HTTPFields(), url: url.flatMap { URL(string: $0) },
            method: method.flatMap { HTTPRequest.Method($0) })
        let found: AttemptOutcomeMeaning =
            switch AttemptOutcome(end, body: Data(), of: upload) {
            case .accepted: .accepted
            case .failed: .failed
            case .unclear: .unclear
            case .interrupted, .postponed, .expired, .stopped: .interrupted
            }
        #expect(found == meaning)
    }

    @Test(arguments: [(-1, 0), (0, 0), (999, 999), (1000, 999)])
    func `a status that is none of HTTP is kept as the nearest one that can be kept`(status: Int, kept: Int) {
        let world = QueueWorld.withUpload(session: "session")
        let end = AttemptEnd.response(status: status, headerFields: [:], url: nil, method: nil)
        let outcome = AttemptOutcome(end, body: Data(), of: world.row(world.uploads[0]).upload)
        guard case .failed(let error, _) = outcome else { Issue.record("\(outcome)"); return }
        #expect(error.response?.status.code == kept)
    }

    @Test(arguments: [(.permissionDenied, .seconds(60)), (.noSuchFileOrDirectory, nil)] as [(Errno, Duration?)])
    func `a body that cannot be read now is read again after a minute, and one that is gone is not`(
        reason: Errno, pause: Duration?
    ) {
        let outcome = AttemptOutcome(FileError("open", "body", reason)) { .unclear("\($0)") }
        guard case .failed(let error, let found) = outcome else { Issue.record("\(outcome)"); return }
        #expect(error.code == .form && found == pause)
        #expect(error.message.contains("Enqueue it again") == (pause == nil))
    }

    @Test func `a body that could be opened and not read to its end leads to a pause of a minute`() throws {
        let error = try #require(throws: FormError.self) {
            var form = MultipartForm()
            // It reports a size of 0, and has bytes.
            form.append(fileAt: URL(filePath: "/proc/self/status"), named: "file")
            _ = try form.layout()
        }
        #expect(error.code == .fileUnreadable)
        let outcome = AttemptOutcome(UploadError.form(error)) { .unclear("\($0)") }
        guard case .failed(let found, let pause) = outcome else { Issue.record("\(outcome)"); return }
        #expect(found.code == .form && pause == .seconds(60))
    }

    @Test(arguments: [
        ("Upload-Complete", "?1", true), ("Upload-Complete", "?0", false), ("Upload-Incomplete", "?0", true),
        ("Upload-Incomplete", "?1", false),
    ])
    func `a server that says that it has the whole form has accepted it, and no other`(
        name: String, value: String, isAccepted: Bool
    ) async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let upload = try #require(try await queue.upload(try await queue.enqueue(MultipartForm(), to: address)))
        let fields = [try #require(HTTPField.Name(name)): value] as HTTPFields
        let end = AttemptEnd.response(status: 204, headerFields: fields, url: address, method: .head)
        if case .accepted = AttemptOutcome(end, body: Data(), of: upload) {
            #expect(isAccepted)
        } else {
            #expect(!isAccepted)
        }
    }

    @Test func `a message has no query, which may be a signature`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let upload = try #require(try await queue.upload(try await queue.enqueue(MultipartForm(), to: address)))
        let end = AttemptEnd.response(
            status: 200, headerFields: [:], url: URL(string: "https://example.com/page?X-Amz-Signature=secret"),
            method: .get)
        guard case .unclear(let message) = AttemptOutcome(end, body: Data(), of: upload) else {
            Issue.record("not unclear")
            return
        }
        #expect(message.contains("https://example.com/page,") && !message.contains("secret"), "\(message)")
    }

    @Test func `a form may have arrived whose server no longer knows how much it has of it`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let upload = try #require(try await queue.upload(try await queue.enqueue(MultipartForm(), to: address)))
        let end = AttemptEnd.response(status: 404, headerFields: HTTPFields(), url: address, method: .head)
        guard case .failed(let error, _) = AttemptOutcome(end, body: Data(), of: upload) else {
            Issue.record("not failed")
            return
        }
        #expect(error.delivery.mayHaveArrived && error.response?.status == .notFound)
    }

    @Test(arguments: [.neverArrived, .refused, .responseLost, .accepted] as [UploadError.Delivery])
    func `a stored failure says whether the form may have arrived, as the failure itself`(
        delivery: UploadError.Delivery
    ) async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let id = try await queue.enqueue(MultipartForm(), to: address)
        let failure = QueuedUpload.Failure(
            delivery == .accepted ? .altered : .refused, "It failed.",
            response: delivery == .refused ? .init(status: 404, headerFields: [:], body: Data()) : nil,
            delivery: delivery)
        try await queue.store.database.write { db in
            try db.noteAttempt(of: id)
            try db.failUpload(id, because: failure, mayHaveArrived: delivery.mayHaveArrived)
        }
        guard case .failed(let stored)? = try await queue.upload(id)?.state else {
            Issue.record("not failed")
            return
        }
        #expect(stored == failure)
    }

    /// The system's codes for background sessions, and the reasons of a cancellation.
    private static let systemCodes: [(Int, reason: Int?, AttemptOutcomeMeaning?, UploadError.Code?)] = [
        (-999, 0, .interrupted, .forceQuit), (-999, 1, .interrupted, .backgroundUpdatesDisabled),
        (-999, 2, .interrupted, .insufficientResources), (-999, 3, .interrupted, .interrupted),
        (-999, nil, .interrupted, .interrupted), (-998, nil, nil, nil), (-997, nil, .interrupted, .interrupted),
        (-996, nil, .interrupted, .sessionUnavailable), (-995, nil, .interrupted, .sessionUnavailable),
        (-1001, nil, nil, nil), (-1005, nil, nil, nil),
    ]

    @Test(arguments: systemCodes)
    func `the system's codes for background sessions are told apart`(
        code: Int, reason: Int?, meaning: AttemptOutcomeMeaning?, failure: UploadError.Code?
    ) async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let address = try #require(URL(string: "https://example.com/uploads"))
        let upload = try #require(try await queue.upload(try await queue.enqueue(MultipartForm(), to: address)))
        guard let end = AttemptEnd(systemCode: code, cancellationReason: reason) else {
            #expect(meaning == nil)
            return
        }
        switch AttemptOutcome(end, body: Data(), of: upload) {
        case .interrupted(let interruption):
            #expect(meaning == .interrupted && interruption.failure.code == failure)
        case .postponed(let problem):
            #expect(meaning == .interrupted && problem.code == failure)
            guard case .unavailable(let reason) = end else { return }
            #expect(reason == (code == -996 ? .inUse : .requiresSharedContainer))
        default: Issue.record("It is neither interrupted nor postponed.")
        }
    }

    @Test(
        arguments: [
            (-999, 0, .forceQuit), (-999, 1, .updatesDisabled), (-999, 2, .insufficientResources),
            (-999, 3, .cancelled), (-999, nil, .cancelled), (-997, nil, .disconnected),
        ] as [(Int, Int?, Interruption)])
    func `the system's codes for interruptions say which one it is`(
        code: Int, reason: Int?, interruption: Interruption
    ) {
        guard case .interrupted(let found) = AttemptEnd(systemCode: code, cancellationReason: reason) else {
            Issue.record("It is no interruption.")
            return
        }
        #expect(found == interruption)
    }

    @Test func `each interruption says what the system did, and that the form may have arrived`() {
        let words: [Interruption: String] = [
            .cancelled: "cancelled the upload.", .forceQuit: "quit", .updatesDisabled: "updates are disabled",
            .insufficientResources: "lacks resources", .disconnected: "transfer service", .lost: "no longer has",
        ]
        for interruption in Interruption.allCases {
            let (failure, last) = (interruption.failure, interruption.lastFailure(after: 3))
            #expect(failure.message.contains(words[interruption] ?? "a word is missing"), "\(interruption)")
            #expect(last.message.contains("3 times") && failure.delivery.mayHaveArrived && last.delivery.mayHaveArrived)
        }
    }

    @Test(
        arguments: [(-996, .inUse), (-995, .requiresSharedContainer), (-997, .invalid("why")), (nil, .invalid("why"))]
            as [(Int?, SessionProblem)])
    func `the reasons why a session has ended are told apart`(code: Int?, problem: SessionProblem) {
        #expect(SessionProblem(systemCode: code, "why") == problem)
        let error = UploadQueueError(problem)
        #expect(
            error.code == (problem == .inUse ? .sessionInUse : .sessionUnavailable) && error.advice?.isEmpty == false)
    }

    @Test(arguments: [
        "", "x", "\(UUID().uuidString)", "\(UUID().uuidString) 0", "\(UUID().uuidString) -1",
        "\(UUID().uuidString)  1", "../../etc 1", "\(UUID().uuidString) 1 2",
    ])
    func `a task with another description is not an attempt`(description: String) {
        #expect(AttemptID(description) == nil)
    }

    @Test(arguments: [1, 7, Int.max])
    func `a task's description identifies its attempt`(number: Int) {
        let id = AttemptID(upload: UUID(), number: number)
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
