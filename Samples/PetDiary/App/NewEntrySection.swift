import DiaryKit
import Foundation
import PhotosUI
import PostcardPictures
import PostcardQueue
import SwiftUI

/// Photos, a name and a memo, and a button that puts them into the queue.
struct NewEntrySection: View {
    let queue: UploadQueue
    @AppStorage(ServerAddress.key, store: DiaryQueue.settings) private var address = ""
    @State private var photos: [PhotosPickerItem] = []
    @State private var name = ""
    @State private var memo = ""
    @State private var importer = PhotoImporter()
    @State private var saving: Task<Void, Never>?
    @State private var problem: String?

    var body: some View {
        Section(DiaryText.newEntry.localized()) {
            // As the library has them, without converting HEIC to JPEG.
            PhotosPicker(
                photos.isEmpty
                    ? DiaryText.choosePhotos.localized() : DiaryText.photos.localized("\(photos.count)"),
                selection: $photos, matching: .images, preferredItemEncoding: .current)
            TextField(DiaryText.name.localized(), text: $name)
            TextField(DiaryText.memo.localized(), text: $memo)
            ForEach(importer.imports.photos) { photo in
                PhotoImportRow(photo: photo) { importer.cancel(photo.id) }
            }
            if let saving {
                Button(DiaryText.stop.localized()) { saving.cancel() }
            } else {
                Button(DiaryText.send.localized()) {
                    saving = Task { await send() }
                }
                .disabled(photos.isEmpty)
            }
            if let problem { Text(problem).foregroundStyle(.red) }
        }
    }

    /// Puts the entry into the queue. When the fields are empty again, the entry is on disk and the app may be closed.
    private func send() async {
        // The library lends its files only for a moment, so they are copied. The queue then has a copy of its own.
        let copies = FormPart.temporaryFolder.appending(component: UUID().uuidString)
        defer {
            try? FileManager.default.removeItem(at: copies)
            importer.clear()
            saving = nil
        }
        do {
            let url = try ServerAddress.url(address)
            let parts = await importer.load(photos.map(PhotoLoads.picked), into: copies)
            problem = importer.imports.problem
            try Task.checkCancellation()
            if problem != nil { return }
            try await queue.enqueue(form(parts), to: url)
            photos = []
            (name, memo) = ("", "")
        } catch is CancellationError {
            problem = nil
        } catch {
            problem = error.localizedDescription
        }
    }

    private func form(_ parts: [FormPart]) -> MultipartForm {
        var form = MultipartForm()
        form.append(name, named: "name")
        form.append(memo, named: "memo")
        for var part in parts {
            part.preparation = Self.fitting
            form.append(part)
        }
        return form
    }

    /// Photos are made smaller before they are stored, other files are sent as they are.
    private static let fitting = PictureFitting.each(PictureLimit(maximumBytes: 4_000_000))
}
