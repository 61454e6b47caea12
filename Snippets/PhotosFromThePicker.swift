// Sends the photos that the user picks, as the library has them.

import Foundation
import PostcardClient
import PostcardPictures

#if canImport(PhotosUI) && canImport(SwiftUI) && !os(tvOS) && !os(watchOS)
import PhotosUI
import SwiftUI

// snippet.show
struct PhotosScreen: View {
    @State private var picked: [PhotosPickerItem] = []
    @State private var status = ""
    let url: URL

    var body: some View {
        VStack {
            PhotosPicker(
                "Choose photos", selection: $picked, matching: .images, preferredItemEncoding: .current)
            Text(status)
        }
        .onChange(of: picked) {
            let chosen = picked
            // Otherwise the next selection would begin with these photos, and send them again.
            picked = []
            if !chosen.isEmpty { Task { await send(chosen) } }
        }
    }

    private func send(_ photos: [PhotosPickerItem]) async {
        do {
            var form = MultipartForm()
            for photo in photos { form.append(FormPart(picked: photo, named: "petImage")) }
            status = try await UploadClient().upload(form, to: url).text
        } catch {
            status = error.localizedDescription
        }
    }
}
// snippet.hide

/// Has the photo fit what the server accepts.
private func append(_ item: PhotosPickerItem, to form: inout MultipartForm) {
    form.append(FormPart(picked: item, named: "petImage", preparation: PictureFitting.serverLimit))
}
#else
print("There is no photo picker here.")
#endif
