import ArgumentParser
import PostcardQueue

struct QueuePause: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Stops an upload, or the whole queue, until it is resumed.",
        discussion: "Uploads that are being sent go back into the queue. A paused queue still accepts uploads.")

    @Argument(help: "The upload's identifier, as add prints it. Without one the whole queue is paused.")
    var id: QueuedUpload.ID?

    @OptionGroup
    var location: QueueLocation

    func run() async throws {
        try await CommandFailure.reporting {
            let queue = try location.open()
            if let id { try queue.pause(id) } else { try queue.pause() }
        }
    }
}

struct QueueResume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Lets a paused upload, or the whole queue, be sent again.",
        discussion: "Uploads that were paused one by one stay paused when the whole queue is resumed.")

    @Argument(help: "The upload's identifier, as add prints it. Without one the whole queue is resumed.")
    var id: QueuedUpload.ID?

    @OptionGroup
    var location: QueueLocation

    func run() async throws {
        try await CommandFailure.reporting {
            let queue = try location.open()
            if let id { try queue.resume(id) } else { try queue.resume() }
        }
    }
}
