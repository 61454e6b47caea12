import PostcardQueue

/// The app's only upload queue. The app makes it at every start, also when the system starts it in the background.
@MainActor
enum Outbox {
    static let sessionIdentifier = "com.example.PetDiary.uploads"

    static let list = UploadQueueList(
        UploadQueue(
            directory: .applicationSupportDirectory.appending(path: "Uploads"),
            session: BackgroundSession(identifier: sessionIdentifier)))
}
