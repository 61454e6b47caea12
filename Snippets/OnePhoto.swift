// Sends one photo, which is read from disk while it is sent.
import Foundation
import PostcardClient

let photo = URL(filePath: CommandLine.arguments[1])
guard let url = URL(string: "http://127.0.0.1:8080/uploads") else { exit(64) }

let form = MultipartForm(.file(at: photo, named: "petImage"))
let response = try await UploadClient().upload(form, to: url)
print(response.status, response.text)
