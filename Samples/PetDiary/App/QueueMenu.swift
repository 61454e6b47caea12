import DiaryKit
import PostcardQueue
import SwiftUI

/// What can be done to all entries.
struct QueueMenu: View {
    let list: UploadQueueList

    var body: some View {
        Menu(DiaryText.allEntries.localized(), systemImage: "ellipsis.circle") {
            if list.isPaused {
                Button(DiaryText.resumeAll.localized()) { list.resume() }
            } else {
                Button(DiaryText.pauseAll.localized()) { list.pause() }
            }
            Button(DiaryText.sendFailedAgain.localized()) { list.retryAll() }
            Button(DiaryText.cancelAll.localized()) { list.cancelAll() }
            Button(DiaryText.removeEnded.localized()) { list.clear(.ended) }
        }
    }
}
