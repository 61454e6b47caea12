import PostcardClient
import PostcardForm

@testable import PostcardQueue

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The forms that the tests enqueue.
enum QueuedForms {
    static func form(_ text: String = "초코", _ file: URL? = nil) -> MultipartForm {
        var form = MultipartForm()
        form.append(text, named: "name")
        if let file { form.append(fileAt: file, named: "image") }
        return form
    }
}

extension QueueOptions {
    /// A few quick retries, and an end when no upload is left that can be sent.
    static var draining: QueueOptions {
        var options = QueueOptions(retryPolicy: RetryPolicy(maximumAttempts: 5), endsWhenEmpty: true)
        options.retryPolicy.firstDelay = .milliseconds(1)
        options.retryPolicy.maximumDelay = .milliseconds(5)
        return options
    }
}

extension UploadQueue {
    var store: QueueStore {
        get async throws { try await opening.store() }
    }

    /// Records an attempt of an hour ago that failed.
    func failAnHourAgo(_ id: QueuedUpload.ID, because reason: String) async throws {
        try await store.database.write { db in
            _ = try db.claimUpload(allowedBy: [0], excluding: [], at: Date(timeIntervalSinceNow: -3600))
            try db.noteAttempt(of: id)
            try db.delayUpload(
                id, until: Date(timeIntervalSinceNow: -3500), because: QueuedUpload.Failure(.connectionFailed, reason),
                as: .failure(conflicts: 0), mayHaveArrived: false)
        }
    }
}

extension QueuedUpload.State {
    var isDone: Bool { if case .done = self { true } else { false } }

    var isRetrying: Bool { if case .retrying = self { true } else { false } }

    /// Why the upload failed.
    var failure: String? { if case .failed(let failure) = self { failure.message } else { nil } }
}

extension RetryPolicy {
    /// Nine attempts, with delays of 1, 2, 4 and more seconds, without chance.
    static let exact: RetryPolicy = {
        var policy = RetryPolicy(maximumAttempts: 9)
        policy.firstDelay = .seconds(1)
        policy.jitter = 0
        return policy
    }()
}

extension UploadQueue {
    /// Whether the body of an upload is still on disk.
    func bodyExists(_ id: QueuedUpload.ID) async throws(UploadQueueError) -> Bool {
        try await work { store throws(UploadQueueError) in
            try store.database.read { try $0.row(id) }.map(store.hasBody) ?? false
        }
    }
}
