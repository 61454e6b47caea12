import PostcardClient
import PostcardForm
import PostcardQueue

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
        QueueOptions(
            retryPolicy: RetryPolicy(maximumAttempts: 5, firstDelay: .milliseconds(1), maximumDelay: .milliseconds(5)),
            endsWhenEmpty: true)
    }
}

extension QueuedUpload.State {
    var isDone: Bool { if case .done = self { true } else { false } }

    var isRetrying: Bool { if case .retrying = self { true } else { false } }

    /// Why the upload failed.
    var failure: String? { if case .failed(let reason) = self { reason } else { nil } }
}
