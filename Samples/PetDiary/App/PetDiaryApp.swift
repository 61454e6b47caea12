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
            .backgroundTask(.urlSession(DiaryQueue.Sender.app.sessionIdentifier)) { [queue = list.queue] in
                await queue.handleEvents()
            }
            // What the share extension has sent, which has ended long ago.
            .backgroundTask(.urlSession(DiaryQueue.Sender.shareExtension.sessionIdentifier)) {
                await DiaryQueue.make(.shareExtension).handleEvents()
            }
    }
}
