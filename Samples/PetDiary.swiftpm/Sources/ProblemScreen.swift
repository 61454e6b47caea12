import SwiftUI

/// Shown instead of the diary while the queue cannot be opened.
struct ProblemScreen: View {
    @Environment(\.scenePhase) private var scenePhase
    let outbox: Outbox

    var body: some View {
        VStack(spacing: 16) {
            Text("The uploads cannot be opened.")
            if let problem = outbox.problem { Text(problem.localizedDescription).font(.caption) }
            Button("Try again") { outbox.open() }
        }
        .onChange(of: scenePhase) {
            if scenePhase == .active { outbox.open() }
        }
    }
}
