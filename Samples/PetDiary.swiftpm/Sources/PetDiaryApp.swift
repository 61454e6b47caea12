import SwiftUI

/// A diary whose entries arrive although the network is gone or the app is closed.
@main
struct PetDiaryApp: App {
    var body: some Scene {
        WindowGroup { DiaryScreen(list: Outbox.list) }
            .backgroundTask(.urlSession(Outbox.sessionIdentifier)) { await Outbox.list.queue.handleEvents() }
    }
}
