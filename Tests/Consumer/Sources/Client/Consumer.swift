import Foundation

/// Sends a photo with the functions that the README shows.
@main struct SendPet {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let url = URL(string: arguments[1]) else { return print("SendPet URL PHOTO") }
        try await send(URL(filePath: arguments[2]), to: url)
    }
}
