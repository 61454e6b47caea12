// Sends files that the user chooses outside the app, such as in iCloud Drive.

import Foundation
import PostcardClient
import PostcardPictures

#if canImport(SwiftUI) && !os(tvOS) && !os(watchOS)
import SwiftUI
import UniformTypeIdentifiers

// snippet.show
struct AttachmentsScreen: View {
    @State private var isChoosing = false
    @State private var status = ""
    let url: URL

    var body: some View {
        VStack {
            Button("Choose files") { isChoosing = true }
            Text(status)
        }
        .fileImporter(
            isPresented: $isChoosing, allowedContentTypes: [.image, .pdf], allowsMultipleSelection: true
        ) { chosen in
            Task { await send(chosen) }
        }
    }

    private func send(_ chosen: Result<[URL], any Error>) async {
        do {
            var form = MultipartForm()
            for file in try chosen.get() { form.append(FormPart(picked: file, named: "attachment")) }
            status = try await UploadClient().upload(form, to: url).text
        } catch {
            status = error.localizedDescription
        }
    }
}
// snippet.hide
#else
print("There is no file importer here.")
#endif
