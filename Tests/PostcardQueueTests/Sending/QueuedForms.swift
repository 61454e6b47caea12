import Foundation
import PostcardClient
import PostcardForm
import PostcardQueue

/// The forms that the tests of runs enqueue.
enum QueuedForms {
    static func form(_ text: String, _ file: URL? = nil) -> MultipartForm {
        var form = MultipartForm()
        form.append(text, named: "name")
        if let file { form.append(fileAt: file, named: "image") }
        return form
    }
}

extension QueueOptions {
    /// Few retries, soon, and an end when nothing is left that can be done.
    static var draining: QueueOptions {
        QueueOptions(
            retryPolicy: RetryPolicy(maximumAttempts: 5, firstDelay: .milliseconds(1), maximumDelay: .milliseconds(5)),
            endsWhenEmpty: true)
    }
}
