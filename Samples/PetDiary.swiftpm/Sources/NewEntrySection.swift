import Foundation
import PhotosUI
import PostcardClient
import PostcardForm
import PostcardPictures
import PostcardQueue
import SwiftUI

/// Photos, a name and a memo, and a button that puts them into the queue.
struct NewEntrySection: View {
    let queue: UploadQueue
    @AppStorage(ServerAddress.key) private var address = ServerAddress.example
    @State private var photos: [PhotosPickerItem] = []
    @State private var name = ""
    @State private var memo = ""
    @State private var isSaving = false
    @State private var problem: String?

    var body: some View {
        Section("New entry") {
            // As the library has them, without converting HEIC to JPEG.
            PhotosPicker(
                photos.isEmpty ? "Choose photos" : "Photos: \(photos.count)", selection: $photos, matching: .images,
                preferredItemEncoding: .current)
            TextField("Name", text: $name)
            TextField("Memo", text: $memo)
            Button(isSaving ? "Saving…" : "Send") {
                Task { await send() }
            }
            .disabled(photos.isEmpty)
            if let problem { Text(problem).foregroundStyle(.red) }
        }
        .disabled(isSaving)
    }

    /// Puts the entry into the queue. When the fields are empty again, the entry is on disk and the app may be closed.
    private func send() async {
        isSaving = true
        // The library lends its files only for a moment, so they are copied. The queue then has a copy of its own.
        let copies = FormPart.temporaryFolder.appending(component: UUID().uuidString)
        defer {
            try? FileManager.default.removeItem(at: copies)
            isSaving = false
        }
        do {
            var form = MultipartForm()
            form.append(name, named: "name")
            form.append(memo, named: "memo")
            for photo in photos { form.append(try await photo.formPart(named: "petImage", in: copies)) }
            try await queue.enqueue(form, to: try ServerAddress.url(address))
            photos = []
            (name, memo, problem) = ("", "", nil)
        } catch {
            problem = error.localizedDescription
        }
    }
}
