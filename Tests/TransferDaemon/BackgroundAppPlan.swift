package import Foundation
package import PostcardQueue

/// The plan of `PostcardBackgroundApp`, which reads it from a file at each launch.
package struct BackgroundAppPlan: Codable, Sendable {
    /// The queue's directory.
    package var directory: String
    /// The path of the daemon's socket.
    package var socket: String
    /// The identifier of the background session.
    package var session: String
    /// The total number of forms. The app enqueues the ones that the queue does not have yet.
    package var forms: Int
    /// The size of each form's file, in bytes.
    package var fileBytes: Int
    /// The URLs that forms are sent to, in turn.
    package var addresses: [URL]
    /// The maximum number of uploads that the system has at a time.
    package var maximumOpenUploads = 100
    /// Whether the user retries uploads that failed because the system ended them again and again. `nil` means no.
    package var retriesInterrupted: Bool?

    package init(
        directory: String, socket: String, session: String, forms: Int, fileBytes: Int, addresses: [URL]
    ) {
        self.directory = directory
        self.socket = socket
        self.session = session
        self.forms = forms
        self.fileBytes = fileBytes
        self.addresses = addresses
    }

    /// The URL that a form is sent to.
    package func address(of form: Int) -> URL { addresses[form % addresses.count] }

    /// The text that identifies a form.
    package static func name(of form: Int) -> String { "form \(form)" }

    package init(readFrom path: String) throws {
        self = try JSONDecoder().decode(Self.self, from: try Data(contentsOf: URL(filePath: path)))
    }

    /// Writes the plan atomically: a launch at the same time reads this plan or the previous one.
    package func write(to path: String) throws {
        try JSONEncoder().encode(self).write(to: URL(filePath: path), options: .atomic)
    }
}

extension UploadQueue {
    /// Runs the queue, as an open app does, until the work is done.
    package func run(while work: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup { group in
            group.addTask { try await self.run() }
            group.addTask { try await work() }
            try await group.next()
            group.cancelAll()
        }
    }
}
