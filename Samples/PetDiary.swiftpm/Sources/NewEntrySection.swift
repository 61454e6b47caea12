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
    @AppStorage(ServerAddress.key) private var address = ""
    @State private var photos: [PhotosPickerItem] = []
    @State private var name = ""
    @State private var memo = ""
    @State private var saving: Task<Void, Never>?
    @State private var saved = 0
    @State private var problem: String?

    var body: some View {
        Section("New entry") {
            // As the library has them, without converting HEIC to JPEG.
            PhotosPicker(
                photos.isEmpty ? "Choose photos" : "Photos: \(photos.count)", selection: $photos, matching: .images,
                preferredItemEncoding: .current)
            TextField("Name", text: $name)
            TextField("Memo", text: $memo)
            if let saving {
                ProgressView("Saving photos", value: Double(saved), total: Double(photos.count))
                Button("Stop") { saving.cancel() }
            } else {
                Button("Send") {
                    saving = Task { await send() }
                }
                .disabled(photos.isEmpty || address.isEmpty)
            }
            if address.isEmpty { Text("Enter the address of your server in the settings.") }
            if let problem { Text(problem).foregroundStyle(.red) }
        }
    }

    /// Puts the entry into the queue. When the fields are empty again, the entry is on disk and the app may be closed.
    private func send() async {
        // The library lends its files only for a moment, so they are copied. The queue then has a copy of its own.
        let copies = FormPart.temporaryFolder.appending(component: UUID().uuidString)
        defer {
            try? FileManager.default.removeItem(at: copies)
            (saving, saved) = (nil, 0)
        }
        do {
            var form = MultipartForm()
            form.append(name, named: "name")
            form.append(memo, named: "memo")
            for photo in photos {
                var part = try await photo.formPart(named: "petImage", in: copies)
                part.preparation = Self.fitting
                form.append(part)
                saved += 1
                try Task.checkCancellation()
            }
            try await queue.enqueue(form, to: try ServerAddress.url(address))
            photos = []
            (name, memo, problem) = ("", "", nil)
        } catch is CancellationError {
            problem = nil
        } catch {
            problem = error.localizedDescription
        }
    }

    /// Photos are made smaller before they are stored, other files are sent as they are.
    private static let fitting = PictureFitting.each(PictureLimit(maximumBytes: 4_000_000))
}
