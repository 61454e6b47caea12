import Foundation
import Hummingbird
import PostcardClient
import PostcardServer

// The README's Swift, compiled: its program too, of which ReadmeTests runs the function. It checks that it is the same,
// line by line.

struct Pet: Decodable {
    let id: String
}

func addPet(_ name: String, photos: [URL], to url: URL) async throws -> Pet {
    var form = MultipartForm()
    form.append(name, named: "name")
    // For PHP it is "petImage[]": without the brackets PHP keeps only the last of several files.
    form.append(filesAt: photos, named: "petImage")
    let client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 4))
    return try await client.upload(form, to: url) { progress in
        print(progress.fraction ?? 0)
    }.decode(Pet.self)
}

private func server() async throws {
    let router = Router()
    router.addUploads(to: try LocalUploadStore(directory: "received"))
    try await Application(router: router, server: .uploads()).runService()
}
