import HTTPTypes
import Hummingbird
import Logging
import PostcardServer

/// The log line of a request.
struct RequestLine {
    /// The address of the client, as far as it is known: through a trusted proxy, the one that the proxy names.
    let client: IPAddress?
    let method: String
    /// The path without the query, which may hold secrets.
    let path: String
    var status: Int?
    /// The code of the refusal.
    var code: String?
    /// The upload that it made or repeated.
    var upload: UploadID?
    var duration = Duration.zero

    func write(to logger: Logger) {
        var metadata: Logger.Metadata = [
            "method": "\(Self.shown(method))", "path": "\(Self.shown(Secrets.masked(path: path)))",
            "milliseconds": "\(Int(duration / .milliseconds(1)))",
        ]
        metadata["client"] = client.map { "\($0)" }
        metadata["status"] = status.map { "\($0)" }
        metadata["code"] = code.map { "\($0)" }
        metadata["upload"] = upload.map { "\($0)" }
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
    init(_ refusal: EarlyRefusal) {
        let line = String(decoding: refusal.bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        let words = line.split(separator: " ", maxSplits: 2)
        client = refusal.client
        method = words.first.map(String.init) ?? ""
        path = words.dropFirst().first.map { String($0.prefix { $0 != "?" }) } ?? ""
        status = refusal.problem.status.code
        code = refusal.problem.code
    }
}

/// Logs one line for each request. It is the first middleware. Besides these lines only the receiver's own failures are
/// logged, and refusals of clients that hold too much: one line a minute for each code, and none for each request.
struct RequestLog<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard context.logger.logLevel <= .info else { return try await next(request, context) }
        let start = ContinuousClock.now
        var line = RequestLine(
            client: UploadConnection.current?.clientAddress, method: request.method.rawValue, path: request.uri.path)
        var isWritten = true
        defer {
            line.duration = start.duration(to: .now)
            if isWritten { line.write(to: context.logger) }
        }
        do {
            return try await UploadReport.observing { report in
                let response = try await next(request, context)
                line.status = response.status.code
                line.upload = report.upload
                return response
            }
        } catch let problem as UploadProblem {
            line.status = problem.status.code
            line.code = problem.code
            isWritten = !problem.isOfShare
            throw problem
        }
    }
}
