import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// Which responses are success: the app has the last word.
@Suite(.timeLimit(.minutes(10))) struct JudgementTests {
    private struct Answer: Decodable {
        let ok: Bool
        var busy: Bool?
    }

    private struct AddPet: UploadEndpoint {
        struct Response: Decodable, Sendable, Equatable { let id: String }

        let name: String
        let baseURL: URL
        let path = "pets"
        let method = HTTPRequest.Method.put
        let headerFields: HTTPFields = [.accept: "application/json"]
        let acceptedStatuses: Set<Int>? = [202]

        func form() throws -> MultipartForm { QueuedForms.form(name) }
    }

    private let folder: TemporaryFolder
    private let kept = KeptTransfers()
    private let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = try #require(URL(string: "https://example.com/uploads"))
    }

    private func queue(
        time: QueueTime = QueueTime(), _ change: (inout BackgroundSession) -> Void = { _ in }
    ) -> UploadQueue {
        var session = BackgroundSession(identifier: UUID().uuidString)
        change(&session)
        return UploadQueue(
            directory: folder.url.appending(path: "queue"), session: session, service: KeepingService(kept), time: time)
    }

    /// Has the server respond to the only transfer.
    private func respond(
        _ body: String, status: Int = 200, type: String = "application/json", in queue: UploadQueue
    ) async throws {
        let end = AttemptEnd.response(
            status: status, headerFields: [.contentType: type], url: kept.handedOver.first?.url, method: nil)
        try kept.end(end, body: Data(body.utf8))
        try await queue.handOver()
    }

    private static func judge(_ upload: QueuedUpload, _ response: QueuedUpload.Response) async throws {
        let answer = try response.decode(Answer.self)
        if answer.busy == true { throw ResponseRejection("the server is busy", mayPass: true) }
        guard answer.ok else { throw ResponseRejection("the server says no") }
    }

    @Test func `what the app rejects has failed, and keeps its form until the app accepts the response`() async throws {
        let queue = queue { $0.accepts = { try await Self.judge($0, $1) } }
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        try await respond(#"{"ok":false}"#, in: queue)
        guard case .failed(let failure) = try await queue.upload(id)?.state else {
            Issue.record("It has not failed.")
            return
        }
        #expect(failure.code == .rejected && failure.message.contains("the server says no"))
        #expect(failure.response?.body == Data(#"{"ok":false}"#.utf8) && failure.delivery.mayHaveArrived)
        #expect(try await queue.bodyExists(id))
        try await queue.retry(id)
        try await queue.handOver()
        try await respond(#"{"ok":true}"#, in: queue)
        #expect(try await queue.upload(id)?.state.isDone == true)
        #expect(try await !queue.bodyExists(id))
        await queue.disconnect()
    }

    @Test func `a rejection that may pass and a response that the app cannot read differ`() async throws {
        let queue = queue { $0.accepts = { try await Self.judge($0, $1) } }
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        try await respond(#"{"ok":false,"busy":true}"#, in: queue)
        guard case .retrying(_, let failure) = try await queue.upload(id)?.state else {
            Issue.record("It is not sent again.")
            return
        }
        #expect(failure.code == .rejected)
        try await queue.retry(id)
        try await queue.handOver()
        try await respond("{", in: queue)
        #expect(try await queue.upload(id)?.state.name == "failed")
        await queue.disconnect()
    }

    @Test func `an app that takes too long has the form sent again later`() async throws {
        // No time passes for the app's closure.
        let queue = queue(time: QueueTime(sleep: { _ in })) { session in
            session.accepts = { _, _ in try await Task.sleep(for: .seconds(3600)) }
        }
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        try await respond("{}", in: queue)
        #expect(try await queue.upload(id)?.state.isRetrying == true)
        await queue.disconnect()
    }

    @Test func `only the session's statuses are success`() async throws {
        let queue = queue { session in
            session.acceptedStatuses = [201]
            session.accepts = { _, _ in Issue.record("The app is asked.") }
        }
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        try await respond("{}", in: queue)
        guard case .failed(let failure) = try await queue.upload(id)?.state else {
            Issue.record("It has not failed.")
            return
        }
        #expect(failure.code == .refused && failure.response?.status == 200)
        #expect(try await queue.bodyExists(id))
        await queue.disconnect()
    }

    @Test(arguments: [
        ("application/json", "text/html", false), ("application/problem+json, */*", "Text/HTML; charset=utf-8", false),
        ("application/json", "application/xhtml+xml", false), ("application/json", "application/json", true),
        ("text/html", "text/html", true), (nil, "text/html", true),
    ])
    func `a page in place of JSON is a network's, and the form waits`(
        accept: String?, type: String, isDone: Bool
    ) async throws {
        let asked = Mutex(0)
        let queue = queue { session in session.accepts = { _, _ in asked.withLock { $0 += 1 } } }
        var fields = HTTPFields()
        fields[.accept] = accept
        let id = try await queue.enqueue(QueuedForms.form(), to: url, headerFields: fields)
        try await queue.handOver()
        try await respond("<html>Welcome to the hotel", type: type, in: queue)
        let state = try await queue.upload(id)?.state
        #expect(asked.withLock { $0 } == (isDone ? 1 : 0))
        if isDone {
            #expect(state?.isDone == true)
        } else if case .retrying(_, let failure) = state {
            #expect(failure.code == .intercepted && failure.advice?.contains("browser") == true)
            #expect(try await queue.bodyExists(id))
        } else {
            Issue.record("It does not wait: \(String(describing: state))")
        }
        await queue.disconnect()
    }

    @Test func `an endpoint is enqueued with its method, fields and statuses, and its response decodes`() async throws {
        let queue = queue()
        let endpoint = AddPet(name: "초코", baseURL: url)
        let id = try await queue.enqueue(endpoint, tag: "choco")
        try await queue.handOver()
        let transfer = try #require(kept.handedOver.first)
        #expect(transfer.url.absoluteString == "https://example.com/uploads/pets" && transfer.method == .put)
        #expect(transfer.headerFields[.accept] == "application/json")
        try await respond(#"{"id":"7"}"#, status: 202, in: queue)
        let upload = try #require(try await queue.upload(id))
        #expect(try upload.tag(as: String.self) == "choco")
        guard case .done(let response) = upload.state else {
            Issue.record("It is not done.")
            return
        }
        #expect(try endpoint.decode(response) == AddPet.Response(id: "7"))
        #expect(try response.decode(AddPet.Response.self).id == "7")
        // 200 is not one of its statuses.
        let other = try await queue.enqueue(endpoint)
        try await queue.handOver()
        try await respond(#"{"id":"8"}"#, in: queue)
        #expect(try await queue.upload(other)?.state.name == "failed")
        await queue.disconnect()
    }

    @Test(arguments: [false, true])
    func `a queue in this process asks the app too`(mayPass: Bool) async throws {
        let server = try await ReceivingServer()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let id = try await queue.enqueue(QueuedForms.form(), to: server.uploads)
        var options = QueueOptions.draining
        options.awaitsRetries = false
        (options.retryPolicy.firstDelay, options.retryPolicy.maximumDelay) = (.seconds(3600), .seconds(3600))
        options.accepts = { _, response in throw ResponseRejection("\(response.status) is not enough", mayPass: mayPass)
        }
        try await queue.run(UploadClient(transport: AsyncHTTPTransport()), options: options)
        let upload = try #require(try await queue.upload(id))
        #expect(upload.state.name == (mayPass ? "retrying" : "failed"))
        #expect(try await queue.bodyExists(id))
        try await queue.retry(id)
        options.accepts = { _, _ in }
        try await queue.run(UploadClient(transport: AsyncHTTPTransport()), options: options)
        #expect(try await queue.upload(id)?.state.isDone == true)
    }
}
