import DiaryKit
import PostcardQueue
import SwiftUI

/// A diary whose entries arrive although the network is gone or the app is closed.
@main
struct PetDiaryApp: App {
    /// The only list. The app makes it at every start, also when the system starts it in the background.
    @State private var list = UploadQueueList(DiaryQueue.make(.app))

    var body: some Scene {
        WindowGroup { DiaryScreen(list: list) }
            // For the app's own session, and for that of each run of the share extension.
            .backgroundTask(.urlSession(matching: { $0.hasPrefix(DiaryQueue.sessionPrefix) })) {
                [queue = list.queue] identifier in
                await queue.handleEvents(forSession: identifier)
            }
    }
}
