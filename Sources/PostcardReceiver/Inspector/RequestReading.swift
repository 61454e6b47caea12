import HTTPTypes
import Hummingbird
import PostcardServer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Answers requests for the requests that are kept.
///
/// | request | answer |
/// | --- | --- |
/// | `GET /requests` | `{"requests":[entry…]}`, newest first |
/// | `GET /requests/ID` | the entry with header fields, parts, problems, the kept bytes and a line for curl |
struct RequestReading: Sendable {
    let window: RequestWindow
    let budget: AnswerBudget

    private struct Listing: Encodable {
        let requests: [RequestSummary]
    }

    func list() throws -> Response {
        try answer(Listing(requests: window.requests.map(RequestSummary.init)))
    }

    func request(id: String?) throws -> Response {
        guard let request = id.flatMap({ Int($0) }).flatMap(window.request) else { throw UploadProblem.requestNotFound }
        return try answer(RequestDescription(request))
    }

    private func answer(_ value: some Encodable) throws -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "application/json", .cacheControl: "no-store", .xContentTypeOptions: "nosniff"],
            body: try budget.body(of: ByteBuffer(bytes: try JSONEncoder.forAnswers.encode(value))))
    }
}

extension UploadProblem {
    fileprivate static let requestNotFound = UploadProblem(
        status: 404, code: "not-found", detail: "There is no such request, or it is no longer kept.",
        fix: "GET /requests lists those that are kept.")
}
