// Wake-ups in an app with a delegate, and uploads from a share extension that the app is woken for.

import Foundation
import PostcardQueue

// snippet.show
func queueOfTheExtension(in container: URL) -> UploadQueue {
    let session = BackgroundSession(extension: "com.example.pets.share", appGroup: "group.com.example.pets")
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
        // The sessions of other libraries are theirs.
        guard identifier == "com.example.pets" else { return }
        UploadQueue.handleEvents(forSession: identifier, completionHandler: completionHandler)
    }
}
// snippet.hide
#if canImport(SwiftUI)
import SwiftUI

// snippet.show
struct PetScene: Scene {
    let queue: UploadQueue

    var body: some Scene {
        WindowGroup { Text("Pets") }
            // For the app's own session, and for that of each run of the extension.
            .backgroundTask(
                .urlSession(matching: { $0 == "com.example.pets" || $0.hasPrefix("com.example.pets.share.") })
            ) { identifier in
                await queue.handleEvents(forSession: identifier)
            }
    }
}
// snippet.hide
#endif
#else
print("There is no application delegate here.")
#endif
