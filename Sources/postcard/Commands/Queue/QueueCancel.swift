import ArgumentParser
import PostcardQueue

struct QueueCancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Gives an upload up; one that is on its way is ended.")

    @OptionGroup
    var upload: QueuedUploadArgument

    @OptionGroup
    var location: QueueLocation

    func run() async throws {
        try await CommandFailure.reporting { try location.open().cancel(upload.id) }
    }
}
