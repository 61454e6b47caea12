import PostcardServer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A request's entry in the list of `GET /requests`.
struct RequestSummary: Encodable, Sendable {
    let id: String
    let received: Date
    let method: String
    let path: String
    /// The status of the answer; `nil` where there was nobody left to be answered.
    let status: Int?
    /// What it was refused for.
    let code: String?
    /// The identifier of the upload that it became.
    let upload: String?
    /// How many bytes of the body were read.
    let bytes: Int64
    let partCount: Int
    let milliseconds: Int

    init(_ request: KeptRequest) {
        id = String(request.id)
        received = request.received
        method = request.method
        path = request.path
        status = request.status
        if case .refused(let problem) = request.outcome { code = problem.code } else { code = nil }
        upload = request.upload?.text
        bytes = request.notes.body.length
        partCount = request.notes.partCount
        milliseconds = Int(request.duration / .milliseconds(1))
    }
}
