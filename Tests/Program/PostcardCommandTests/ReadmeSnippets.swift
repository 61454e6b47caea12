import Foundation
import Hummingbird
import PostcardClient
import PostcardServer

// The README's Swift, compiled, except for its listing of an error, which Tests/Consumer compiles. ReadmeTests runs the
// first function, and checks that it is the same, line by line.

struct Pet: Decodable { let id: String }

func addPet(_ name: String, photo: URL, to url: URL) async throws -> Pet {
    let form = MultipartForm(.text(name, named: "name"), .file(at: photo, named: "petImage"))
    let client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 4))
    return try await client.upload(form, to: url, as: Pet.self) { progress in
        print(progress.fraction ?? 0)
    }
}

private func server() async throws {
    let router = Router()
    router.addUploads(to: try LocalUploadStore(directory: "received"))
    try await Application(router: router, server: .uploads()).runService()
}
