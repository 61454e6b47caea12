import SwiftUI

/// A diary whose entries arrive although the network is gone or the app is closed.
@main
struct PetDiaryApp: App {
    private let outbox = Outbox()

    var body: some Scene {
        WindowGroup {
            if let list = outbox.list {
                DiaryScreen(list: list)
            } else {
                ProblemScreen(outbox: outbox)
            }
        }
        .backgroundTask(.urlSession(Outbox.sessionIdentifier)) { [outbox] in
            await outbox.handleEvents()
        }
    }
}
