// Wake-ups in an app with a delegate, and uploads from a share extension.

import Foundation
import PostcardClient
import PostcardForm
import PostcardQueue

// snippet.show
func queueOfTheGroup(in container: URL, session identifier: String) -> UploadQueue {
    var session = BackgroundSession(identifier: identifier)
    session.appGroup = "group.com.example.pets"
    return UploadQueue(directory: container.appending(path: "uploads"), session: session)
}

func enqueueUnmetered(_ form: MultipartForm, to url: URL, in queue: UploadQueue) async throws {
    try await queue.enqueue(form, to: url, conditions: UploadConditions(networks: .unmetered))
}
// snippet.hide

#if canImport(UIKit) && !os(watchOS)
import UIKit

// snippet.show
final class AppDelegate: NSObject, UIApplicationDelegate {
    func application(
        _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
        completionHandler: @escaping () -> Void
    ) {
        UploadQueue.handleEvents(forSession: identifier, completionHandler: completionHandler)
    }
}
// snippet.hide
#else
print("There is no application delegate here.")
#endif
