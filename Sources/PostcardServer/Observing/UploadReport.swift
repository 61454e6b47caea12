import Synchronization

/// What the upload routes made of a request, for the middleware around them.
package final class UploadReport: Sendable {
    @TaskLocal private static var current: UploadReport?

    package enum Outcome: Sendable {
        /// The form became a record.
        case recorded(UploadRecord)
        /// The form was a record already, made by an earlier request.
        case repeated(UploadID)
        /// The upload was deleted.
        case deleted(UploadID)
    }

    private let latest = Mutex<Outcome?>(nil)

    /// What became of the request; `nil` until a route has answered it, and for requests of another kind.
    package var outcome: Outcome? { latest.withLock { $0 } }

    /// The record that the request made or asked for again.
    package var upload: UploadID? {
        switch outcome {
        case .recorded(let record): record.id
        case .repeated(let id): id
        case .deleted, nil: nil
        }
    }

    /// Handles a request with a report of it. All middleware that handles the same request shares one report.
    package static func observing<Value>(_ handle: (UploadReport) async throws -> Value) async rethrows -> Value {
        if let current { return try await handle(current) }
        let report = UploadReport()
        return try await $current.withValue(report) { try await handle(report) }
    }

    /// Reports what became of the current request.
    static func set(_ outcome: Outcome) {
        current?.latest.withLock { $0 = outcome }
    }
}
