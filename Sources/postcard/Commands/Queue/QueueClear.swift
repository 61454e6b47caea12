import ArgumentParser
import PostcardQueue

struct QueueClear: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Takes the uploads that are done, failed or cancelled out of the queue.")

    @OptionGroup
    var location: QueueLocation

    func run() async throws {
        try await CommandFailure.reporting { try location.open().clear() }
    }
}
