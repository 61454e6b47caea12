import HTTPTypes
import Hummingbird
import Logging
import PostcardServer

/// The line that is logged of a request when it is answered.
struct RequestLine {
    let method: String
    /// Without the query, which may hold secrets.
    let path: String
    var status: Int?
    /// What it was refused for.
    var code: String?
    /// The upload that it made or asked for again.
    var upload: UploadID?
    var duration = Duration.zero

    func write(to logger: Logger) {
        var metadata: Logger.Metadata = [
            "method": "\(Self.shown(method))", "path": "\(Self.shown(Secrets.masked(path: path)))",
            "milliseconds": "\(Int(duration / .milliseconds(1)))",
        ]
        metadata["status"] = status.map { "\($0)" }
        metadata["code"] = code.map { "\($0)" }
        metadata["upload"] = upload.map { "\($0)" }
        logger.info(status == nil ? "A request was not answered" : "Answered a request", metadata: metadata)
    }

    private static let maximumCharacters = 200

    /// A stranger's text as one that neither begins a new line nor moves a terminal's cursor.
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
        method = words.first.map(String.init) ?? ""
        path = words.dropFirst().first.map { String($0.prefix { $0 != "?" }) } ?? ""
        status = refusal.problem.status.code
        code = refusal.problem.code
    }
}

/// Writes one line for each request.
///
/// It stands before everything else; beside its line only failures of the receiver's own are logged.
struct RequestLog<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard context.logger.logLevel <= .info else { return try await next(request, context) }
        let start = ContinuousClock.now
        var line = RequestLine(method: request.method.rawValue, path: request.uri.path)
        defer {
            line.duration = start.duration(to: .now)
            line.write(to: context.logger)
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
            throw problem
        }
    }
}
