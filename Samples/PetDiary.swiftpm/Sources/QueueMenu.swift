import PostcardQueue
import SwiftUI

/// What can be done to all entries.
struct QueueMenu: View {
    let list: UploadQueueList

    var body: some View {
        Menu("All entries", systemImage: "ellipsis.circle") {
            if list.isPaused {
                Button("Resume all") { list.resume() }
            } else {
                Button("Pause all") { list.pause() }
            }
            Button("Send failed entries again") { list.retryAll() }
            Button("Cancel all") { list.cancelAll() }
            Button("Remove what has ended") { list.clear() }
        }
    }
}
