import ArgumentParser
import Foundation
import PostcardCLibrary
import PostcardClient
import PostcardForm
import PostcardPictures
import PostcardQueue
import PostcardReceiver
import PostcardS3
import Synchronization
import UnixSignals

/// An error that ends a command, with its message and exit status.
struct CommandFailure: Error, CustomStringConvertible {
    let description: String
    let status: ExitCode
    /// The kind of the failure for scripts; `nil` if the exit status is specific enough.
    let code: String?

    /// The failure for an input that cannot be read.
    static func input(_ name: String, _ reason: String) -> CommandFailure {
        CommandFailure(description: "\(name) \(reason)", status: ExitStatus.unreadableInput)
    }

    static func output(_ errno: any Error) -> CommandFailure {
        CommandFailure(
            description: "Standard output cannot be written to: \(errno)", status: ExitStatus.unwritableOutput)
    }

    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as UploadError:
            self.init(description: error.formError?.description ?? error.message, status: ExitStatus.status(of: error))
        case let error as PictureFitError:
            self.init(description: error.description, status: ExitStatus.status(of: error))
        case let error as FormError: self.init(description: error.description, status: ExitStatus.status(of: error))
        case let error as UploadQueueError:
            self.init(description: error.description, status: ExitStatus.status(of: error))
        case let error as ValidationError: self.init(description: error.message, status: ExitStatus.usage)
        case let error as UploadStoreError: self.init(description: "\(error)", status: ExitStatus.unwritableOutput)
        case let error as S3Error:
            let isUsage = error.code == .unusableAddress
            self.init(description: error.description, status: isUsage ? ExitStatus.usage : ExitStatus.unavailable)
        case let error as ServerCertificateError:
            self.init(description: error.message, status: ExitStatus.unreadableInput)
        default: self.init(description: "\(error)", status: ExitStatus.failed)
        }
    }

    /// Converts an error. Leaves out the text of its response, which was already shown.
    init(besidesResponse error: UploadError) {
        self.init(description: error.messageBesidesResponse, status: ExitStatus.status(of: error))
    }

    init(description: String, status: ExitCode, code: String? = nil) {
        self.description = description
        self.status = status
        self.code = code
    }

    /// Runs a command. Prints an error to standard error, and exits with its status.
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

/// The program's exit statuses, for scripts, with the numbers of `sysexits.h` where it has one.
enum ExitStatus {
    /// The form is not valid, or the server did not store it as sent: the server refused the form, responded before the
    /// form was completely sent, or received other bytes.
    static let refused = ExitCode(1)
    /// The command line is invalid.
    static let usage = ExitCode(64)
    /// A file is missing or cannot be read.
    static let unreadableInput = ExitCode(66)
    /// The connection could not be opened, or it broke.
    static let unavailable = ExitCode(69)
    /// The program itself failed.
    static let failed = ExitCode(70)
    /// A file cannot be written.
    static let unwritableOutput = ExitCode(73)
    /// A timeout: no bytes moved, no connection was opened, or the total time was exceeded. Also used if another
    /// process sends from the queue.
    static let timedOut = ExitCode(75)

    static func status(of error: UploadError) -> ExitCode {
        switch error.code {
        case .invalidURL: usage
        case .form: error.formError.map(status) ?? unreadableInput
        case .timedOut, .connectTimedOut, .deadlinePassed: timedOut
        case .refused, .earlyResponse, .altered, .decoding: refused
        case .connectionFailed, .connectionLost, .tls, .responseTooLarge: unavailable
        default: failed
        }
    }

    static func status(of error: FormError) -> ExitCode {
        switch error.code {
        case .invalidBoundary, .invalidMediaType, .invalidName, .reservedHeaderField, .boundaryInContent: usage
        case .preparationFailed: unwritableOutput
        default: unreadableInput
        }
    }

    static func status(of error: PictureFitError) -> ExitCode {
        switch error.code {
        case .notWritable: unwritableOutput
        case .builtWithoutPictures: failed
        default: unreadableInput
        }
    }

    /// The exit status for a queue that cannot be used, or an upload that a queue does not accept.
    static func status(of error: UploadQueueError) -> ExitCode {
        switch error.code {
        case .inUse: timedOut
        case .unknownUpload, .wrongState: usage
        case .damaged, .newer, .locked: unreadableInput
        case .unusableDirectory, .full: unwritableOutput
        default: failed
        }
    }
}

/// Cancels work on a signal, so that the work can remove its temporary files.
enum Interruption {
    /// Runs work. SIGINT or SIGTERM cancels the work, and the same signal ends the program after the work. A second
    /// signal ends the program at once. Signals that the program ignores, as in a background job, stay ignored.
    /// `isNeeded` says whether the work has temporary files. If it has none, signals end the program as usual.
    static func ending<Result: Sendable>(
        ifNeeded isNeeded: Bool, _ work: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        guard isNeeded else { return try await work() }
        let caught = Mutex<CInt?>(nil)
        let trapped: [UnixSignal] = [.sigint, .sigterm].filter { !isIgnored($0.rawValue) }
        let signals = await UnixSignalsSequence(trapping: trapped)
        let task = Task { try await work() }
        let watch = Task {
            for await signal in signals {
                let isFirst = caught.withLock { caught in
                    defer { caught = signal.rawValue }
                    return caught == nil
                }
                if !isFirst { endProgram(by: signal.rawValue) }
                task.cancel()
            }
        }
        let result = await task.result
        watch.cancel()
        if let number = caught.withLock({ $0 }) { endProgram(by: number) }
        for signal in trapped { restore(signal.rawValue) }
        return try result.get()
    }

    private static func isIgnored(_ number: CInt) -> Bool {
        let handler = signal(number, SIG_IGN)
        signal(number, handler)
        return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Restores the default handling of a signal: the signal ends the program.
    private static func restore(_ number: CInt) {
        signal(number, SIG_DFL)
        var unblocked = sigset_t()
        sigemptyset(&unblocked)
        sigaddset(&unblocked, number)
        pthread_sigmask(SIG_UNBLOCK, &unblocked, nil)
    }

    /// Ends the program by a signal, which the shell then reports.
    private static func endProgram(by number: CInt) -> Never {
        restore(number)
        raise(number)
        _exit(128 + number)
    }
}
