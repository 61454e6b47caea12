import ArgumentParser
import PostcardClient
import PostcardForm
import PostcardQueue

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
        case .refused, .earlyResponse, .altered, .decoding: refused
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
