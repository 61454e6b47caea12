import HTTPTypes
import Hummingbird

/// The answer to a request for a file, or for a part of it.
struct FileAnswer {
    let file: UploadRecord.File
    let content: any StoredFile
    let budget: AnswerBudget

    func response(to request: Request) -> Response {
        if let known = request.headers[.ifNoneMatch], Self.matches(known, etag) {
            return Response(status: .notModified, headers: [.eTag: etag])
        }
        switch range(of: request) {
        case .notSatisfiable:
            var response = UploadProblem.rangeNotSatisfiable(size: content.size).response
            response.headers[.contentRange] = "bytes */\(content.size)"
            return response
        case .whole:
            return Response(status: .ok, headers: headers, body: body(of: 0..<content.size))
        case .part(let range):
            var headers = headers
            headers[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.size)"
            return Response(status: .partialContent, headers: headers, body: body(of: range))
        }
    }

    private var etag: String { "\"\(file.sha256)\"" }

    private func range(of request: Request) -> ByteRange {
        guard request.method == .get, let range = request.headers[.range] else { return .whole }
        // A file that is no longer the one that the client has a part of is sent whole (RFC 9110 §13.1.5).
        if let known = request.headers[.ifRange], known != etag { return .whole }
        return ByteRange(range, size: content.size)
    }

    /// Whether an `If-None-Match` names the entity (RFC 9110 §13.1.2).
    private static func matches(_ value: String, _ etag: String) -> Bool {
        value.split(separator: ",").contains { candidate in
            let tag = candidate.trimmingPrefix { $0 == " " }
            return tag == "*" || tag == etag || tag == "W/\(etag)"
        }
    }

    private var headers: HTTPFields {
        let presentation = FilePresentation(file)
        return [
            .contentType: presentation.contentType,
            .contentDisposition: presentation.contentDisposition,
            .contentSecurityPolicy: "sandbox; default-src 'none'",
            .xContentTypeOptions: "nosniff",
            .acceptRanges: "bytes",
            .eTag: etag,
            .cacheControl: "no-cache",
        ]
    }

    private func body(of range: Range<Int64>) -> ResponseBody {
        ResponseBody(contentLength: Int(range.upperBound - range.lowerBound)) { [content, budget] writer in
            try await budget.send(content, range, to: &writer)
            try await writer.finish(nil)
        }
    }
}
