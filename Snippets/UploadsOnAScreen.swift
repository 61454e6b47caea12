// A screen that shows uploads: a name, a bar, what went wrong, and two buttons.

import Foundation
import PostcardClient

#if canImport(SwiftUI)
import SwiftUI

// snippet.show
struct UploadsScreen: View {
    @State private var uploads = UploadList(maximumConcurrentUploads: 2)
    let photos: [URL]
    let url: URL

    var body: some View {
        List(uploads.items) { UploadRow(item: $0) }
            .task {
                // A screen appears again when one that was pushed over it is left.
                guard uploads.items.isEmpty else { return }
                for photo in photos {
                    var form = MultipartForm()
                    form.append(fileAt: photo, named: "petImage")
                    uploads.add(form, to: url)
                }
            }
    }
}

struct UploadRow: View {
    let item: UploadItem

    var body: some View {
        HStack {
            VStack(alignment: .leading) {
                ProgressView(item.name, value: item.fraction)
                if let error = item.error { Text(error.localizedDescription).font(.caption) }
            }
            switch item.state {
            case .failed, .cancelled: Button("Send again") { item.retry() }
            case .done: Text("Sent")
            default: Button("Cancel") { item.cancel() }
            }
        }
    }
}
// snippet.hide
#else
// Without SwiftUI the same model tells a terminal.
guard let url = CommandLine.arguments.dropFirst().first.flatMap({ URL(string: $0) }) else {
    print("Usage: UploadsOnAScreen URL PHOTO...")
    exit(64)
}
let uploads = UploadList(maximumConcurrentUploads: 2)
for photo in CommandLine.arguments.dropFirst(2) {
    var form = MultipartForm()
    form.append(fileAt: URL(filePath: photo), named: "petImage")
    uploads.add(form, to: url)
}
await uploads.finish()
for item in uploads.items { print(item.name, item.state) }
#endif
