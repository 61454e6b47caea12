// Sends the photos that the user picks, as the library has them.

import Foundation
import PostcardClient
import PostcardForm
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
            Task { await send() }
        }
    }

    private func send() async {
        // The photos are copied here, because the library lends them only for a moment.
        let folder = FormPart.temporaryFolder.appending(component: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        do {
            var form = MultipartForm()
            for item in picked { form.append(try await item.formPart(named: "petImage", in: folder)) }
            status = try await UploadClient().upload(form, to: url).text
        } catch {
            status = error.localizedDescription
        }
    }
}
// snippet.hide

/// Has the photo fit what the server accepts.
private func append(_ item: PhotosPickerItem, to form: inout MultipartForm) async throws {
    var part = try await item.formPart(named: "petImage")
    part.preparation = PictureFitting.serverLimit
    form.append(part)
}
#else
print("There is no photo picker here.")
#endif
