package import Foundation
package import PostcardQueue

/// What `PostcardBackgroundApp` does; it reads this from a file at each launch.
package struct BackgroundAppPlan: Codable, Sendable {
    /// The queue's directory.
    package var directory: String
    /// Where the daemon listens.
    package var socket: String
    /// The identifier of the background session.
    package var session: String
    /// How many forms there are in all. The app enqueues those that the queue does not have yet.
    package var forms: Int
    /// The bytes of each form's file.
    package var fileBytes: Int
    /// Where forms go, in turn: form 0 to the first, form 1 to the second and so on, and then again from the first.
    package var addresses: [URL]

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

    /// Where a form goes.
    package func address(of form: Int) -> URL { addresses[form % addresses.count] }

    /// The text by which a form is recognized.
    package static func name(of form: Int) -> String { "form \(form)" }

    package init(readFrom path: String) throws {
        self = try JSONDecoder().decode(Self.self, from: try Data(contentsOf: URL(filePath: path)))
    }

    /// Writes the plan, so that a launch at the same time reads this one or the one before.
    package func write(to path: String) throws {
        try JSONEncoder().encode(self).write(to: URL(filePath: path), options: .atomic)
    }
}

extension UploadQueue {
    /// Runs the queue, as an app does that is open, while something is done.
    package func run(while work: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup { group in
            group.addTask { try await self.run() }
            group.addTask { try await work() }
            try await group.next()
            group.cancelAll()
        }
    }
}
