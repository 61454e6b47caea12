package import Foundation

/// `postcard serve` as a process of its own, with a folder of its own.
package final class ReceivingServer: Sendable {
    /// Where forms are posted.
    package let uploads: URL

    private let folder: TemporaryFolder
    private let server: RunningServer

    /// Senders may be as slow as a busy machine makes them.
    ///
    /// - Parameter options: Further arguments of the command line.
    package init(_ options: String...) async throws {
        folder = try TemporaryFolder()
        let patience = ["--minimum-rate", "0", "--idle-timeout", "120", "--keep-alive-timeout", "120"]
        server = try await RunningServer(["serve", "--port", "0", "--directory", folder.path] + patience + options)
        guard let url = URL(string: server.address) else { throw ProgramFailure("\(server.address) is no URL.") }
        uploads = url.appending(path: "uploads")
    }

    /// Where it listens.
    package var url: URL { uploads.deletingLastPathComponent() }

    package var processIdentifier: Int32 { server.processIdentifier }

    /// What a server leaves behind.
    package struct Remains: Sendable, Equatable {
        package let exitStatus: Int32?
        /// The identifiers of its records.
        package let records: [String]
        /// What is left of forms that did not arrive whole.
        package let unfinished: [String]

        /// Whether nothing was stored.
        package var isEmpty: Bool { records.isEmpty && unfinished.isEmpty }
    }

    /// Lets the requests under way finish, ends the server, and says what it has kept.
    package func end() async throws -> Remains {
        let status = await server.terminate()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { !$0.hasPrefix(".") }
        let unfinished = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/.incoming")
        return Remains(exitStatus: status, records: names, unfinished: unfinished)
    }
}
