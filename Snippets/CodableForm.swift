// Makes the form of a value, and reads the response as another.
import Foundation
import PostcardClient

struct Pet: Encodable {
    var name: String
    var born: Date
    var pictures: [FormFile]
}

struct Record: Decodable {
    let id: String
}

let photos = CommandLine.arguments.dropFirst().map { URL(filePath: $0) }
guard let url = URL(string: "http://127.0.0.1:8080/uploads") else { exit(64) }

let pet = Pet(name: "초코", born: .now, pictures: photos.map { FormFile(at: $0) })
let form = try MultipartForm(encoding: pet)
let record = try await UploadClient().upload(form, to: url).decode(Record.self)
print(record.id)
