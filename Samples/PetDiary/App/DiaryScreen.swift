import DiaryKit
import Foundation
import PostcardQueue
import SwiftUI

/// A form for a new entry, and the entries that were sent.
struct DiaryScreen: View {
    let list: UploadQueueList
    @State private var isChangingSettings = false
    @State private var problem: String?
    @State private var older: String?

    var body: some View {
        NavigationStack {
            List {
                NewEntrySection(queue: list.queue)
                Section(DiaryText.entries.localized()) {
                    if let older { Text(older) }
                    if let problem { Text(problem).foregroundStyle(.red) }
                    if let error = list.error { Text(error.localizedDescription).foregroundStyle(.red) }
                    ForEach(list.uploads.reversed()) { EntryRow(upload: $0, list: list) }
                }
            }
            .navigationTitle(DiaryText.title.localized())
            .toolbar {
                ToolbarItem(placement: .topBarLeading) {
                    Button(DiaryText.settings.localized(), systemImage: "gear") { isChangingSettings = true }
                }
                ToolbarItem(placement: .topBarTrailing) { QueueMenu(list: list) }
            }
            .sheet(isPresented: $isChangingSettings) { SettingsScreen() }
        }
        .task { await list.follow() }
        .task { await run() }
        .task { await LockScreen.follow(list.queue) }
    }

    /// Hands new entries to the system while the diary is on the screen, and tries again after an error.
    private func run() async {
        if let folder = try? await list.queue.setAside.last {
            older = DiaryText.olderDiary.localized(folder.lastPathComponent)
        }
        while !Task.isCancelled {
            do {
                problem = nil
                try await list.queue.run()
            } catch is CancellationError {
                return
            } catch {
                problem = error.localizedDescription
                try? await Task.sleep(for: .seconds(10))
            }
        }
    }
}
