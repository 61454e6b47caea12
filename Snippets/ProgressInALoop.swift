// Follows an upload step by step. Leaving the loop cancels it.
import Foundation
import PostcardClient

guard let url = URL(string: "http://127.0.0.1:8080/uploads") else { exit(64) }
var form = MultipartForm()
form.append(filesAt: CommandLine.arguments.dropFirst().map { URL(filePath: $0) }, named: "petImage")

for try await event in UploadClient().events(of: form, to: url) {
    switch event {
    case .preparing: print("looking at the files")
    case .waitingForNetwork: print("there is no network yet")
    case .sending(let progress):
        let percent = Int((progress.fraction ?? 0) * 100)
        print("\(percent) %, \(progress.bytesPerSecond ?? 0) bytes a second, \(progress.timeRemaining ?? .zero) left")
    case .awaitingResponse: print("all is sent")
    case .retrying(let retry): print("\(retry.error.message); once more at \(retry.date)")
    case .done(let response): print(response.text)
    }
}
