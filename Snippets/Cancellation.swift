// Cancels an upload: its connection is closed, and nothing is left running.
import Foundation
import PostcardClient

guard let url = URL(string: "http://127.0.0.1:8080/uploads") else { exit(64) }
var form = MultipartForm()
form.append(filesAt: CommandLine.arguments.dropFirst().map { URL(filePath: $0) }, named: "petImage")

let upload = Task { [form] in try await UploadClient().upload(form, to: url) }
// As when the screen that shows it goes away.
upload.cancel()
do {
    print(try await upload.value.text)
} catch is CancellationError {
    print("cancelled")
}
