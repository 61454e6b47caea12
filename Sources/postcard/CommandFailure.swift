import ArgumentParser
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardReceiver
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
        case let error as UploadError:
            self.init(description: error.formError?.description ?? error.message, status: ExitStatus.status(of: error))
        case let error as FormError: self.init(description: error.description, status: ExitStatus.status(of: error))
        case let error as UploadQueueError:
            self.init(description: error.message, status: ExitStatus.status(of: error))
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

/// What the program's end says to scripts; the numbers are those of `sysexits.h` where it has one.
enum ExitStatus {
    /// The server refused the form, answered before it had it or has not received what was sent, or the form is not valid.
    static let refused = ExitCode(1)
    /// The command line cannot be understood.
    static let usage = ExitCode(64)
    /// A file is missing or cannot be read.
    static let unreadableInput = ExitCode(66)
    /// No connection came about, or it broke.
    static let unavailable = ExitCode(69)
    /// The program itself could not go on.
    static let failed = ExitCode(70)
    /// A file cannot be written.
    static let unwritableOutput = ExitCode(73)
    /// Something took too long: no byte moved, no connection came about, or the time was over. Also where another
    /// process is at it.
    static let timedOut = ExitCode(75)

    /// The status for an upload that failed.
    static func status(of error: UploadError) -> ExitCode {
        switch error.code {
        case .invalidURL: usage
        case .form: error.formError.map(status) ?? unreadableInput
        case .timedOut, .connectTimedOut, .deadlinePassed: timedOut
        case .refused, .answeredEarly, .altered, .decoding: refused
        case .connectionFailed, .connectionLost, .tls, .responseTooLarge: unavailable
        default: failed
        }
    }

    /// The status for a form that cannot be sent.
    static func status(of error: FormError) -> ExitCode {
        switch error.code {
        case .invalidBoundary, .invalidMediaType, .invalidName, .reservedHeaderField, .boundaryInContent: usage
        default: unreadableInput
        }
    }

    /// The status for a queue that cannot be used, or an upload that it does not accept.
    static func status(of error: UploadQueueError) -> ExitCode {
        switch error.code {
        case .inUse: timedOut
        case .unknown, .state: usage
        case .damaged, .newer, .locked: unreadableInput
        case .unusableDirectory, .full: unwritableOutput
        default: failed
        }
    }
}
