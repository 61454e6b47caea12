import HTTPTypes
import Hummingbird
import Logging
package import PostcardServer

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The log line of a request.
package struct RequestLine: Sendable {
    /// When its response was complete, or the connection was closed.
    package fileprivate(set) var ended = Date()
    /// The address of the client, as far as it is known: through a trusted proxy, the one that the proxy names.
    package let client: IPAddress?
    package let method: String
    /// The path without the query, which may hold secrets.
    private let rawPath: String
    package fileprivate(set) var status: Int?
    /// The code of the refusal.
    package fileprivate(set) var code: String?
    /// The upload that it made or repeated.
    package fileprivate(set) var upload: UploadID?
    /// The number of bytes of the body, as its head says.
    package fileprivate(set) var size: Int64?
    /// The number of files that were stored.
    package fileprivate(set) var fileCount: Int?
    package fileprivate(set) var duration = Duration.zero

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
        let line = String(decoding: refusal.bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        let words = line.split(separator: " ", maxSplits: 2)
        client = refusal.client
        method = words.first.map(String.init) ?? ""
        rawPath = words.dropFirst().first.map { String($0.prefix { $0 != "?" }) } ?? ""
        status = refusal.problem.status.code
        code = refusal.problem.code
    }
}

/// Logs one line for each request. It is the first middleware. Besides these lines only the receiver's own failures are
/// logged, and refusals of clients that hold too much: one line a minute for each code, and none for each request.
struct RequestLog<Context: RequestContext>: RouterMiddleware {
    /// Receives each line, besides the log.
    let report: (@Sendable (RequestLine) -> Void)?

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard report != nil || context.logger.logLevel <= .info else { return try await next(request, context) }
        let start = ContinuousClock.now
        let connection = UploadConnection.current
        var line = RequestLine(
            client: connection?.clientAddress, method: request.method.rawValue, rawPath: request.uri.path)
        line.size = request.headers[.contentLength].flatMap { Int64($0) }
        var isWritten = true
        defer {
            line.duration = start.duration(to: .now)
            line.ended = Date()
            if isWritten {
                line.write(to: context.logger)
                report?(line)
            }
        }
        do {
            let response = try await next(request, context)
            line.status = response.status.code
            line.upload = connection?.report.upload
            if case .recorded(let record) = connection?.report.outcome { line.fileCount = record.files.count }
            return response
        } catch let problem as UploadProblem {
            line.status = problem.status.code
            line.code = problem.code
            isWritten = !problem.isOfShare
            throw problem
        }
    }
}
