import HTTPTypes
import Hummingbird
import PostcardServer
import ServiceLifecycle

/// Answers `GET /events`: server-sent events until the client goes or the receiver ends.
struct EventStream: Sendable {
    let live: LiveEvents

    /// Shorter than the time after which proxies give up on a silent answer, and how a client that is gone is noticed.
    private static let heartbeat = Duration.seconds(15)

    func response() throws(UploadProblem) -> Response {
        let (events, continuation) = try live.listen()
        return Response(
            status: .ok,
            headers: [.contentType: "text/event-stream", .cacheControl: "no-store", .xContentTypeOptions: "nosniff"],
            body: ResponseBody { writer in
                defer { continuation.finish() }
                // Whoever reads this is listening: what happens from here on is not missed.
                try await writer.write(ByteBuffer(string: "retry: 2000\n: listening\n\n"))
                try await withThrowingTaskGroup(of: Void.self) { tasks in
                    tasks.addTask {
                        while !Task.isCancelled {
                            try await Task.sleep(for: Self.heartbeat)
                            continuation.yield(ByteBuffer(string: ":\n\n"))
                        }
                    }
                    for await event in events.cancelOnGracefulShutdown() { try await writer.write(event) }
                    tasks.cancelAll()
                }
                try await writer.finish(nil)
            })
    }
}

/// Publishes what the upload routes received and deleted.
struct LiveMiddleware<Context: RequestContext>: RouterMiddleware {
    let live: LiveEvents

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        try await UploadReport.observing { report in
            let response = try await next(request, context)
            switch report.outcome {
            case .recorded(let record): live.publish(.uploaded(record))
            case .deleted(let id): live.publish(.deleted(id))
            case .repeated, nil: break
            }
            return response
        }
    }
}
