import ArgumentParser
import Foundation
import PostcardClient
import PostcardQueue

/// Manages a queue of uploads that outlive the program. Adding, running and listing are in their own files.
struct Queue: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Keeps uploads on disk and sends them, even if the program, the network or the power fails.",
        subcommands: [
            QueueAdd.self, QueueRunCommand.self, QueueList.self, Retry.self, Cancel.self, Pause.self, Resume.self,
            Clear.self,
        ])
}

/// The option for the queue's directory.
struct QueueLocation: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The queue's directory.", discussion: "Defaults to \(Self.platformDirectoryName).", valueName: "directory"))
    var queue: String?

    /// Opens the queue, which lists finished uploads until they are cleared. Reports the locations of queues of older
    /// versions.
    func open() async throws -> UploadQueue {
        let queue = UploadQueue(directory: queue.map { URL(filePath: $0) } ?? Self.platformDirectory, retention: .all)
        for folder in try await queue.setAside {
            Terminal.say(
                """
                An older version's queue is in \(folder.path). Its uploads are not sent. Remove the folder if you do \
                not need them.
                """)
        }
        return queue
    }

    /// The platform's directory as the help shows it.
    private static var platformDirectoryName: String {
        #if canImport(Darwin)
        "~/Library/Application Support/postcard/queue"
        #else
        "postcard/queue in the folder of XDG_STATE_HOME, or else in ~/.local/state"
        #endif
    }

    /// The platform's directory for a program's state, by the XDG Base Directory Specification or Apple's conventions.
    private static var platformDirectory: URL {
        #if canImport(Darwin)
        URL.applicationSupportDirectory.appending(path: "postcard/queue")
        #else
        // The specification requires ignoring relative paths.
        let state = ProcessInfo.processInfo.environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        return (state.map { URL(filePath: $0) } ?? URL.homeDirectory.appending(path: ".local/state"))
            .appending(path: "postcard/queue")
        #endif
    }
}

// MARK: - Changing uploads

extension Queue {
    /// The arguments that name an upload in a queue.
    struct Target: ParsableArguments {
        @Argument(help: "The upload's identifier, as printed by add.")
        var id: QueuedUpload.ID

        @OptionGroup
        var location: QueueLocation
    }

    /// The arguments that name an upload in a queue, or the whole queue.
    struct OptionalTarget: ParsableArguments {
        @Argument(help: "The upload's identifier, as printed by add. Defaults to the whole queue.")
        var id: QueuedUpload.ID?

        @OptionGroup
        var location: QueueLocation
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Sends an upload again that failed or was cancelled with --keep, or sends it now if it waits for its "
                + "next attempt.")

        @OptionGroup
        var target: Target

        func run() async throws {
            try await CommandFailure.reporting { try await target.location.open().retry(target.id) }
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cancels an upload, even while it is being sent.",
            usage: "postcard queue cancel [<options>] <id>",
            discussion: """
                Its form is removed from disk at once, and the server is asked to delete what it has of a resumable \
                upload.
                """)

        @OptionGroup
        var target: Target

        @Flag(help: "Keep the form on disk, so that the upload can be retried.")
        var keep = false

        @OptionGroup(title: "Connection")
        var connection: TransportOptions

        func run() async throws {
            try await CommandFailure.reporting {
                let queue = try await target.location.open()
                if keep {
                    try await queue.cancel(target.id)
                    return try await acknowledge(in: queue)
                }
                let client = UploadClient(transport: try connection.make(for: nil))
                let isDeleted = try await queue.discard(target.id, with: client)
                try await acknowledge(in: queue)
                guard isDeleted else {
                    return Terminal.say(
                        "The server has not deleted what it has of upload \(target.id), and keeps it until it expires.")
                }
            }
        }

        /// Acknowledges the end of the upload, because the user has ended it.
        private func acknowledge(in queue: UploadQueue) async throws {
            let upload = try? await queue.upload(target.id)
            if let upload { try await queue.acknowledge(upload) }
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Pauses an upload, or the whole queue, until it is resumed.",
            discussion: "Uploads that are being sent go back into the queue. A paused queue still accepts uploads.")

        @OptionGroup
        var target: OptionalTarget

        func run() async throws {
            try await CommandFailure.reporting {
                let queue = try await target.location.open()
                if let id = target.id { try await queue.pause(id) } else { try await queue.pause() }
            }
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Resumes a paused upload, or the whole queue.",
            discussion: "Uploads that were paused one by one stay paused when the whole queue is resumed.")

        @OptionGroup
        var target: OptionalTarget

        func run() async throws {
            try await CommandFailure.reporting {
                let queue = try await target.location.open()
                if let id = target.id { try await queue.resume(id) } else { try await queue.resume() }
            }
        }
    }

    struct Clear: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Removes the uploads that are done, failed or cancelled.",
            usage: "postcard queue clear [<options>]",
            discussion: """
                Their forms are removed from disk, and servers are asked to delete what they have of resumable uploads.
                """)

        @OptionGroup
        var location: QueueLocation

        @OptionGroup(title: "Connection")
        var connection: TransportOptions

        func run() async throws {
            try await CommandFailure.reporting {
                let client = UploadClient(transport: try connection.make(for: nil))
                try await location.open().clear(.ended, with: client)
            }
        }
    }
}
