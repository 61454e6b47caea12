// Keeps an API as types: where a form goes, what it holds, and what comes back.
import Foundation
import PostcardClient

struct AddPet: UploadEndpoint {
    struct Response: Decodable, Sendable {
        let id: String
    }

    struct Query: Encodable {
        var notify: Bool
    }

    let baseURL: URL
    let path = "uploads"
    let name: String
    let photos: [URL]
    var query: (any Encodable & Sendable)? { Query(notify: true) }

    func form() throws -> MultipartForm {
        var form = MultipartForm()
        form.append(name, named: "name")
        form.append(filesAt: photos, named: "petImage")
        return form
    }
}

let photos = CommandLine.arguments.dropFirst().map { URL(filePath: $0) }
guard let url = URL(string: "http://127.0.0.1:8080") else { exit(64) }
let pet = try await UploadClient().upload(AddPet(baseURL: url, name: "초코", photos: photos))
print(pet.id)
