// Sends several photos under one name, and text fields with them.
import Foundation
import PostcardClient

let photos = CommandLine.arguments.dropFirst().map { URL(filePath: $0) }
guard let url = URL(string: "http://127.0.0.1:8080/uploads") else { exit(64) }

var form = MultipartForm()
form.append("초코", named: "name")
form.append("세 살", named: "age")
form.append(filesAt: photos, named: "petImage")

let response = try await UploadClient().upload(form, to: url) { progress in
    for part in progress.parts where part.filename != nil {
        print(part.filename ?? "", part.fraction ?? 0)
    }
}
print(response.text)
