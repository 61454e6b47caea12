import Foundation
import PostcardClient

struct Pet: Decodable { let id: String }

func addPet(_ name: String, photo: URL, to url: URL) async throws -> Pet {
    let form = MultipartForm(.text(name, named: "name"), .file(at: photo, named: "petImage"))
    let client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 4))
    return try await client.upload(form, to: url, as: Pet.self) { progress in
        print(progress.fraction ?? 0)
    }
}
