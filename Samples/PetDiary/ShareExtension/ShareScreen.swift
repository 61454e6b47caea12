import DiaryKit
import Foundation
import PostcardPictures
import PostcardQueue
import SwiftUI

/// The shared photos and a memo, and a button that sends them without opening the app.
struct ShareScreen: View {
    let photos: [PhotoLoad]
    let done: () -> Void
    let cancel: () -> Void
    @AppStorage(ServerAddress.key, store: DiaryQueue.settings) private var address = ""
    @State private var memo = ""
    @State private var importer = PhotoImporter()
    @State private var saving: Task<Void, Never>?
    @State private var problem: String?
    /// Whether the entry is in the queue, although it was not handed to the system.
    @State private var isSaved = false

    var body: some View {
        Form {
            Section(DiaryText.newEntry.localized()) {
                Text(DiaryText.photos.localized("\(photos.count)"))
                TextField(DiaryText.memo.localized(), text: $memo)
                ForEach(importer.imports.photos) { photo in
                    PhotoImportRow(photo: photo) { importer.cancel(photo.id) }
                }
                if let problem { Text(problem).foregroundStyle(.red) }
                if isSaved {
                    Text(DiaryText.saved.localized())
                    Button(DiaryText.close.localized()) { done() }
                } else {
                    Button(DiaryText.send.localized()) {
                        saving = Task { await send() }
                    }
                    .disabled(photos.isEmpty || saving != nil)
                    Button(DiaryText.cancel.localized()) {
                        saving?.cancel()
                        cancel()
                    }
                }
            }
        }
    }

    /// Puts the entry into the queue and hands it to the system, which sends it after the extension has ended.
    private func send() async {
        let copies = FormPart.temporaryFolder.appending(component: UUID().uuidString)
        defer {
            try? FileManager.default.removeItem(at: copies)
            saving = nil
        }
        do {
            let url = try ServerAddress.url(address)
            let parts = await importer.load(photos, into: copies)
            problem = importer.imports.problem
            try Task.checkCancellation()
            if problem != nil { return }
            var form = MultipartForm()
            form.append(memo, named: "memo")
            // Not made to fit: an extension has too little memory for large pictures.
            for part in parts { form.append(part) }
            let queue = DiaryQueue.make(.shareExtension)
            try await queue.enqueue(form, to: url)
            await handOver(queue)
        } catch is CancellationError {
            problem = nil
        } catch {
            problem = error.localizedDescription
        }
    }

    /// Hands the entry to the system before the extension ends. If that fails, the entry waits for the next hand-over: by
    /// the app, or by the next run of the extension.
    private func handOver(_ queue: UploadQueue) async {
        do {
            try await queue.handOver()
            done()
        } catch {
            problem = error.localizedDescription
            isSaved = true
        }
    }
}
