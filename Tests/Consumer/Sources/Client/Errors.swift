import Foundation
import PostcardClient

func send(_ photo: URL, to url: URL) async throws {
    do {
        let pet = try await addPet("초코", photo: photo, to: url)
        print("The server has it as \(pet.id).")
    } catch let error as UploadError {
        let isSafe = error.delivery == .neverArrived || error.delivery == .refused
        print(error.message, error.advice ?? "", "Safe to send again: \(isSafe)", separator: "\n")
    }
}
