import HTTPTypes
import Hummingbird
import Logging
package import PostcardFoundation
import PostcardReception
package import PostcardServer
import Synchronization

package struct RequestLine: Sendable {
    /// The time at which the response was complete or the connection was closed.
    package fileprivate(set) var ended = Date()
    /// The address of the client: as reported by a trusted proxy, or else that of the connection; `nil` if unknown.
    package let client: IPAddress?
    package let method: String
    /// The path without the query. The path may contain secrets.
    private let rawPath: String
    package fileprivate(set) var status: Int?
    /// The code of the refusal; `nil` if the request was not refused.
    package fileprivate(set) var code: String?
    /// The upload that the request created or repeated.
    package fileprivate(set) var upload: UploadID?
    /// The size of the body according to the request's head, in bytes.
    package fileprivate(set) var size: Int64?
    /// The number of files that were stored.
    package fileprivate(set) var fileCount: Int?
    package fileprivate(set) var duration = Duration.zero
    /// Whether the connection was closed before the whole response was sent.
    package fileprivate(set) var isBrokenOff = false

    /// The path without secrets, and without characters that begin a new line or move a terminal's cursor.
    package var path: String { Self.shown(Secrets.masked(path: rawPath)) }

    func write(to logger: Logger) {
        var metadata: Logger.Metadata = [
            "method": "\(Self.shown(method))", "path": "\(path)",
            "milliseconds": "\(Int(duration / .milliseconds(1)))",
        ]
        metadata["client"] = client.map { "\($0)" }
        metadata["status"] = status.map { "\($0)" }
        metadata["code"] = code.map { "\($0)" }
        metadata["upload"] = upload.map { "\($0)" }
        if isBrokenOff { metadata["sent"] = "in part" }
        logger.info(status == nil ? "A request was not answered" : "Answered a request", metadata: metadata)
    }

    private static let maximumCharacters = 200

    /// Replaces characters that would begin a new line or move a terminal's cursor.
    private static func shown(_ text: String) -> String {
        let visible = text.unicodeScalars.prefix(maximumCharacters).map { scalar in
            scalar.isASCII && scalar.value > 0x20 && scalar.value != 0x7F ? Character(scalar) : "?"
        }
        return String(visible)
    }
}

extension RequestLine {
    fileprivate init(client: IPAddress?, method: String, rawPath: String) {
        (self.client, self.method, self.rawPath) = (client, method, rawPath)
    }

    init(_ refusal: EarlyRefusal) {
        let line = String(streamSafe: refusal.bytes.prefix { $0 != UInt8(ascii: "\n") })
        let words = line.split(separator: " ", maxSplits: 2)
        client = refusal.client
        method = words.first.map(String.init) ?? ""
        rawPath = words.dropFirst().first.map { String($0.prefix { $0 != "?" }) } ?? ""
        status = refusal.problem.status.code
        code = refusal.problem.code.rawValue
    }
}

/// Logs one line for each request, and must be the first middleware. The log's other lines report the receiver's own
/// failures and the refusals of clients that exceed their limits. Such refusals are logged at most once a minute for
/// each code.
struct RequestLog<Context: RequestContext>: RouterMiddleware {
    /// Called with each line that is logged.
    let report: (@Sendable (RequestLine) -> Void)?

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard report != nil || context.logger.logLevel <= .info else { return try await next(request, context) }
        let connection = UploadConnection.current
        var line = RequestLine(
            client: connection?.clientAddress, method: request.method.rawValue, rawPath: request.uri.path)
        line.size = request.headers[.contentLength].flatMap { Int64($0) }
        let entry = LogEntry(line, in: context.logger, report)
        do {
            var response = try await next(request, context)
            entry.change { line in
                line.status = response.status.code
                line.upload = connection?.report.upload
                line.fileCount = connection?.report.fileCount
            }
            // Only responses to GET can be long, so the end of other responses is not awaited.
            if request.method == .get { response.body = entry.watching(response.body) }
            return response
        } catch let problem as UploadProblem {
            entry.change { line in
                line.status = problem.status.code
                line.code = problem.code.rawValue
            }
            if problem.isOfShare { entry.drop() }
            throw problem
        }
    }
}

/// The log line of a request in progress. It is written when this object is released, after the request was answered
/// and the response's body was sent or abandoned.
private final class LogEntry: Sendable {
    private let line: Mutex<RequestLine?>
    private let start = ContinuousClock.now
    private let logger: Logger
    private let report: (@Sendable (RequestLine) -> Void)?

    init(_ line: RequestLine, in logger: Logger, _ report: (@Sendable (RequestLine) -> Void)?) {
        self.line = Mutex(line)
        self.logger = logger
        self.report = report
    }

    deinit {
        guard var line = line.withLock({ $0 }) else { return }
        line.duration = start.duration(to: .now)
        line.ended = Date()
        line.write(to: logger)
        report?(line)
    }

    func change(_ body: (inout RequestLine) -> Void) {
        line.withLock { line in
            if var changed = line.take() {
                body(&changed)
                line = changed
            }
        }
    }

    func drop() { line.withLock { $0 = nil } }

    func watching(_ body: ResponseBody) -> ResponseBody {
        change { $0.isBrokenOff = true }
        return ResponseBody(contentLength: body.contentLength) { [self] writer in
            try await body.write(writer)
            change { $0.isBrokenOff = false }
        }
    }
}

/// Reports what each request did to a record as soon as it is known, even if sending the response fails.
struct RecordEventMiddleware<Context: RequestContext>: RouterMiddleware {
    let observe: @Sendable (UploadReport.RecordEvent) -> Void

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        UploadConnection.current?.report.onRecordEvent(observe)
        return try await next(request, context)
    }
}
