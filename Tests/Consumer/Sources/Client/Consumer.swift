import Foundation
import PostcardClient

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

@main struct AddPet {
    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        guard let url = arguments.first.flatMap({ URL(string: $0) }) else { return print("Usage: AddPet URL PHOTO...") }
        do {
            let pet = try await addPet("초코", photos: arguments.dropFirst().map { URL(filePath: $0) }, to: url)
            print("The server has it as \(pet.id).")
        } catch let error as UploadError {
            let isSafe = error.delivery == .neverArrived
            print(error.message, error.advice ?? "", "Safe to send again: \(isSafe)", separator: "\n")
        } catch {
            print(error)
        }
    }
}
