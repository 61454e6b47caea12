import Foundation
import Observation
import PostcardQueue

/// The app's only upload queue, or the reason why it cannot be opened.
@MainActor @Observable
final class Outbox {
    static let sessionIdentifier = "com.example.PetDiary.uploads"

    private(set) var list: UploadQueueList?
    private(set) var problem: UploadQueueError?

    /// Opens the queue. The app makes its outbox at every start, also when the system starts it in the background.
    init() {
        open()
    }

    /// Opens the queue if it is not open: a phone that was locked may be unlocked by now, and a full disk may have room.
    func open() {
        guard list == nil else { return }
        do throws(UploadQueueError) {
            let queue = try UploadQueue(
                directory: .applicationSupportDirectory.appending(path: "Uploads"),
                session: BackgroundSession(identifier: Self.sessionIdentifier))
            list = UploadQueueList(queue)
            problem = nil
        } catch {
            problem = error
        }
    }

    /// Handles the events that the system has woken the app for.
    func handleEvents() async {
        open()
        await list?.queue.handleEvents()
    }
}
