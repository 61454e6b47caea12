import ArgumentParser
import Foundation
import PostcardQueue

/// Uploads that outlive the program: one command for each thing that is done with them.
struct Queue: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Keeps uploads on disk and sends them, whatever ends in between.",
        subcommands: [
            QueueAdd.self, QueueRunner.self, QueueList.self, QueueRetry.self, QueueCancel.self, QueuePause.self,
            QueueResume.self, QueueClear.self,
        ])
}

/// Where a queue lives.
struct QueueLocation: ParsableArguments {
    @Option(help: ArgumentHelp("Where the queue lives.", valueName: "directory"))
    var queue: String?

    func open() throws -> UploadQueue {
        try UploadQueue(directory: queue.map { URL(filePath: $0) } ?? Self.platformFolder)
    }

    /// The folder for what programs keep from one run to the next: by the XDG Base Directory Specification, or Apple's.
    private static var platformFolder: URL {
        #if canImport(Darwin)
        URL.applicationSupportDirectory.appending(path: "postcard/queue")
        #else
        // A path there that is not absolute is to be passed over.
        let state = ProcessInfo.processInfo.environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        return (state.map { URL(filePath: $0) } ?? URL.homeDirectory.appending(path: ".local/state"))
            .appending(path: "postcard/queue")
        #endif
    }
}

/// The upload that a command is about.
struct QueuedUploadArgument: ParsableArguments {
    @Argument(help: "The upload's identifier, as add prints it.")
    var id: QueuedUpload.ID
}
