// A new app sends a photo with a header field, shows how far it is, and says what to try if that fails.
import PostcardClient

#if canImport(SwiftUI)
import SwiftUI

// snippet.show
@MainActor @Observable final class PhotoUpload {
    private(set) var fraction = 0.0
    private(set) var problem: String?
    private let client = UploadClient()

    func send(_ photo: URL, to url: URL, token: String) async {
        var form = MultipartForm()
        form.append(fileAt: photo, named: "petImage")
        do {
            try await client.upload(form, to: url, headerFields: [.authorization: "Bearer \(token)"]) { progress in
                self.fraction = progress.fraction ?? 0
            }
        } catch let error as UploadError {
            problem = "\(error.localizedDescription) \(error.recoverySuggestion ?? "")"
        } catch {
            problem = error.localizedDescription
        }
    }
}

struct PhotoScreen: View {
    let photo: URL
    let url: URL
    let token: String
    @State private var upload = PhotoUpload()

    var body: some View {
        VStack {
            ProgressView(photo.lastPathComponent, value: upload.fraction)
            if let problem = upload.problem { Text(problem) }
        }
        .task { await upload.send(photo, to: url, token: token) }
    }
}
// snippet.hide
#else
import Foundation

// Without SwiftUI the same upload tells a terminal.
let arguments = CommandLine.arguments
guard arguments.count == 4, let url = URL(string: arguments[1]) else {
    print("Usage: OnePhotoOnAScreen URL TOKEN PHOTO")
    exit(64)
}
var form = MultipartForm()
form.append(fileAt: URL(filePath: arguments[3]), named: "petImage")
do {
    try await UploadClient().upload(form, to: url, headerFields: [.authorization: "Bearer \(arguments[2])"]) {
        print($0.fraction ?? 0)
    }
} catch let error as UploadError {
    print(error.message, error.advice ?? "")
}
#endif
