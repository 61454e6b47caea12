import DiaryKit
import Foundation
import PostcardQueue
import SwiftUI

/// A form for a new entry, and the entries that were sent.
struct DiaryScreen: View {
    let list: UploadQueueList
    @State private var isChangingSettings = false
    @State private var older: String?

    var body: some View {
        NavigationStack {
            List {
                NewEntrySection(queue: list.queue)
                Section(DiaryText.entries.localized()) {
                    if let older { Text(older) }
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
        .task { await list.run() }
        .task { await lookForOlder() }
        .task { await LockScreen.follow(list.queue) }
    }

    /// Shows where the entries of an older version are.
    private func lookForOlder() async {
        if let folder = try? await list.queue.setAside.last {
            older = DiaryText.olderDiary.localized(folder.lastPathComponent)
        }
    }
}
