#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A step of an upload, as ``UploadClient/events(of:to:method:headerFields:)`` tells it.
///
/// An upload that succeeds is told as `preparing`, any number of the others, and `done`. One that fails ends with
/// the error that is thrown.
public enum UploadEvent: Sendable {
    /// The form's files are looked at, and nothing is sent yet. Told once, first.
    case preparing
    /// There is no network; the upload goes on by itself when there is one.
    case waitingForNetwork
    /// The form is being sent. Told no more often than ``UploadClient/progressInterval`` says, but always at an
    /// attempt's first step, at the end of each part, and when all has been sent.
    case sending(UploadProgress)
    /// The whole form has been sent and the server has not answered yet.
    case awaitingAnswer(UploadProgress)
    /// An attempt failed; the next one is made after a while.
    case retrying(UploadRetry)
    /// The server has accepted the form. Told last.
    case done(UploadResponse)

    /// How far the upload is, for the two events that say so.
    public var progress: UploadProgress? {
        switch self {
        case .sending(let progress), .awaitingAnswer(let progress): progress
        case .preparing, .waitingForNetwork, .retrying, .done: nil
        }
    }
}

/// Why an upload is tried again, and when.
public struct UploadRetry: Sendable {
    /// What ended the attempt before.
    public let error: UploadError

    /// Which attempt comes next, from 2.
    public let nextAttempt: Int

    /// How long the upload waits before it.
    public let delay: Duration

    /// When that is, by this machine's clock.
    public let date: Date

    init(after error: UploadError, nextAttempt: Int, delay: Duration) {
        self.error = error
        self.nextAttempt = nextAttempt
        self.delay = delay
        date = Date().addingTimeInterval(delay / .seconds(1))
    }
}
