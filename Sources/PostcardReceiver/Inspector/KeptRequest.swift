import Hummingbird
import PostcardForm
import PostcardServer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A request that came, and what became of it.
struct KeptRequest: Sendable {
    /// How it was answered.
    enum Outcome: Sendable {
        case answered(status: Int, upload: UploadID?)
        case refused(UploadProblem)
        /// The connection was gone before it could be answered.
        case unanswered
    }

    /// Counts the requests since the receiver was started, from 1.
    var id = 0
    let received: Date
    let duration: Duration
    let method: String
    let scheme: String
    let host: String
    /// The path and the query, secrets masked.
    let path: String
    /// The header fields in their order, secrets masked.
    let fields: [(name: String, value: String)]
    let contentType: String?
    let outcome: Outcome
    let notes: RequestCapture.Notes

    var status: Int? {
        switch outcome {
        case .answered(let status, _): status
        case .refused(let problem): problem.status.code
        case .unanswered: nil
        }
    }

    var upload: UploadID? {
        if case .answered(_, let upload) = outcome { upload } else { nil }
    }

    /// How many bytes are kept.
    var bytes: Int {
        notes.body.first.count + notes.body.last.count + method.utf8.count + path.utf8.count
            + notes.parts.reduce(0) { $0 + $1.bytes }
            + fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    }
}

extension KeptRequest {
    init(
        _ request: Request, scheme: String, received: Date, duration: Duration, outcome: Outcome,
        notes: RequestCapture.Notes
    ) {
        let head = request.head
        let host = head.authority.map(Secrets.masked(authority:))
        let fields = head.headerFields.map { field in
            (field.name.rawName, Secrets.masked(field.value, of: field.name.canonicalName))
        }
        self.init(
            received: received, duration: duration, method: head.method.rawValue, scheme: scheme,
            host: host ?? "", path: Secrets.masked(path: head.path ?? "/"),
            fields: (host.map { [("Host", $0)] } ?? []) + fields,
            contentType: head.headerFields[.contentType], outcome: outcome, notes: notes)
    }
}
