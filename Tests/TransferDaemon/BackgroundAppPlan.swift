package import Foundation
import HTTPTypes
import PostcardClient
package import PostcardForm
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
    /// The folder of the photos that the user picks: a file for each third form, with its number as the name. `nil`
    /// means that nothing is picked.
    package var library: String?
    /// The URLs that forms are sent to, in turn: those of the app, and after them those that its extension sends.
    package var addresses: [URL]
    /// The number of the first form that the extension sends.
    package var firstShared = Int.max
    /// The file to which the app adds the number of each upload that has ended; `nil` for none.
    package var outcomes: String?
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

    /// The background session of the app, or of a run of its extension.
    package func settings(of session: BackgroundSession) -> BackgroundSession {
        var session = session
        // Kills and force-quits also use up attempts.
        session.retryPolicy = RetryPolicy(maximumAttempts: 1000)
        // With such short delays, a busy server is asked many times while it stores a form.
        session.retryPolicy.maximumConflicts = 1000
        session.retryPolicy.firstDelay = .milliseconds(1)
        session.retryPolicy.maximumDelay = .milliseconds(50)
        session.maximumOpenUploads = maximumOpenUploads
        // Half of what the model allows.
        session.maximumWakeUp = FastTime.lasting(.seconds(30))
        return session
    }

    /// The extension's identifier, with which those of its sessions begin.
    package var sharing: String { "\(session).share" }

    /// Enqueues a form. Its tag is its number.
    package func enqueue(_ number: Int, in queue: UploadQueue, item: (any PickedItem)? = nil) async throws {
        var form = MultipartForm()
        form.append(Self.name(of: number), named: "name")
        if let item {
            form.append(FormPart(picked: item, named: "file"))
        } else {
            form.append(bytes(of: number), named: "file", filename: "\(number).bin")
        }
        // What asks for JSON can tell a portal's page from the server's response.
        try await queue.enqueue(form, to: address(of: number), headerFields: [.accept: "application/json"], tag: number)
    }

    /// Notes that the app knows how an upload has ended.
    package func noteOutcome(of upload: QueuedUpload) throws {
        guard let outcomes else { return }
        let file = try FileHandle(forWritingTo: URL(filePath: outcomes))
        defer { try? file.close() }
        try file.seekToEnd()
        try file.write(contentsOf: Data("\(upload.id)\n".utf8))
    }

    /// The URL that a form is sent to.
    package func address(of form: Int) -> URL { addresses[form % addresses.count] }

    /// Whether the file of a form is picked from the library.
    package func isPicked(_ form: Int) -> Bool { library != nil && form.isMultiple(of: 3) }

    /// The bytes of a form's file.
    package func bytes(of form: Int) -> Data {
        Data((0..<fileBytes).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ form) })
    }

    /// Makes the library.
    package func makeLibrary(of forms: Int) throws {
        guard let library else { return }
        try FileManager.default.createDirectory(atPath: library, withIntermediateDirectories: true)
        for form in 0..<forms where isPicked(form) {
            try bytes(of: form).write(to: URL(filePath: library).appending(component: "\(form)"))
        }
    }

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
