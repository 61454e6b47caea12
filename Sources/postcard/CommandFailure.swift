import ArgumentParser
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardServer
import SystemPackage

/// Something that ends a command: what to say of it, and with which exit status.
struct CommandFailure: Error, CustomStringConvertible {
    let description: String
    let status: ExitCode

    /// An input that cannot be read.
    static func input(_ name: String, _ reason: String) -> CommandFailure {
        CommandFailure(description: "\(name) \(reason)", status: ExitStatus.unreadableInput)
    }

    /// Standard output that cannot be written to.
    static func output(_ errno: any Error) -> CommandFailure {
        CommandFailure(
            description: "Standard output cannot be written to: \(errno)", status: ExitStatus.unwritableOutput)
    }

    /// Whatever a module threw.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as UploadError: self.init(description: error.message, status: ExitStatus.status(of: error))
        case let error as FormError: self.init(description: error.message, status: ExitStatus.status(of: error))
        case let error as UploadQueueError:
            self.init(
                description: [error.message, error.advice].compactMap(\.self).joined(separator: " "),
                status: ExitStatus.status(of: error))
        case let error as UploadStoreError: self.init(description: "\(error)", status: ExitStatus.unwritableOutput)
        case let error as ServerCertificateError:
            self.init(description: error.message, status: ExitStatus.unreadableInput)
        default: self.init(description: "\(error)", status: ExitStatus.failed)
        }
    }

    init(description: String, status: ExitCode) {
        self.description = description
        self.status = status
    }

    /// Runs a command; what ends it is said on standard error, and becomes the exit status.
    static func reporting(_ command: () async throws -> Void) async throws {
        do {
            try await command()
        } catch let error as ExitCode {
            throw error
        } catch {
            let failure = CommandFailure(error)
            Terminal.say("postcard: \(failure)")
            throw failure.status
        }
    }
}
