import ArgumentParser
import PostcardQueue

struct QueueRetry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Lets an upload that failed or was cancelled go again.")

    @OptionGroup
    var upload: QueuedUploadArgument

    @OptionGroup
    var location: QueueLocation

    func run() async throws {
        try await CommandFailure.reporting { try location.open().retry(upload.id) }
    }
}
