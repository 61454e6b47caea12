public import HTTPTypes
public import PostcardClient

#if canImport(Darwin)
public import Foundation
#else
import PostcardFoundation
#endif

/// The settings with which the system sends a queue's uploads while the app is suspended or closed.
///
/// ```swift
/// let queue = UploadQueue(directory: folder, session: BackgroundSession(identifier: "com.example.pets"))
/// ```
///
/// The system sends the uploads in its own process, waits for a network, retries broken connections, and follows
/// redirects without asking the app. On Linux, the queue sends its uploads in this process.
public struct BackgroundSession: Sendable {
    /// The session's identifier, such as `com.example.pets`, which must be the same at every start of the app. An
    /// extension needs another identifier in each run (see ``init(extension:appGroup:)``).
    public var identifier: String

    /// The app group that the app shares with its extensions, such as `group.com.example.pets`. Required in extensions.
    /// Defaults to `nil`.
    ///
    /// iOS terminates an app that is suspended while it holds a lock in the group's container.
    /// ``UploadQueue/run(_:options:)`` always holds a lock. So use ``UploadQueue/run(endsWhenEmpty:)``, which holds
    /// locks only for short writes.
    public var appGroup: String?

    /// Whether the system may wait for good conditions, such as Wi-Fi and power. Defaults to `false`.
    ///
    /// Uploads that the app hands to the system in the background always wait for good conditions: retries, uploads
    /// from an intent, and uploads beyond ``maximumOpenUploads``. The system waits longer after each wake-up until the
    /// app is opened.
    public var isDiscretionary = false

    /// The maximum number of uploads to a host that the system sends at a time. Defaults to 3.
    public var maximumConnectionsPerHost = 3

    /// The maximum number of uploads that the system has at a time. Defaults to 100. Further uploads are handed to the
    /// system when the app runs, or when the system wakes the app because earlier uploads have ended. The system
    /// becomes slower with each task, and stalls at about a thousand.
    ///
    /// At most half of these uploads are due later. With 1, no upload is handed to the system before it is due, so an
    /// upload that fails while the app does not run is retried when the app runs.
    public var maximumOpenUploads = 100

    /// How long the queue may work after the system has woken the app, before it lets the system suspend the app again.
    /// Defaults to 20 seconds. The system allows about 30, and ends apps that work longer. Remaining events are handled
    /// when the app runs again.
    public var maximumWakeUp = BackgroundSession.usualWakeUp

    /// How long an attempt may be idle before the system retries it. It is also how long the server may take to respond
    /// to the whole form. Defaults to 5 minutes. The value of the process's first queue with the session is used, as
    /// for ``maximumConnectionsPerHost``.
    public var idleTimeout = Duration.seconds(300)

    /// How long the system tries to send an upload in one attempt. Defaults to 7 days.
    public var totalTimeout = Duration.seconds(604_800)

    /// Whether and when an upload is sent again after the server refused it or the system stopped trying. The policy's
    /// deadline counts from the first attempt. Defaults to `RetryPolicy.persistent`: 1,000 attempts, at most 30 minutes
    /// apart.
    public var retryPolicy = RetryPolicy.persistent

    /// Makes header fields when an upload is handed to the system, such as a new `Authorization`. Defaults to `nil`.
    ///
    /// The closure is called for one upload after the other. If it throws, or is cancelled because it takes longer than
    /// ``maximumWakeUp``, the upload is handed to the system later. If the server responds with a 401, the upload is
    /// handed to the system once more with new header fields. An upload that was handed over before it was due gets new
    /// header fields when it begins. The closure is not called for presigned forms, because object stores must not get
    /// credentials of the app. The queue does not store the header fields, but the system's resume data of a paused
    /// upload may contain them. The system sends no cookies by itself: if users are signed in by a cookie, add a
    /// `Cookie` field here.
    public var headerFields: (@Sendable (QueuedUpload) async throws -> HTTPFields)?

    /// Makes a new presigned form for an upload whose form has expired, or was refused as expired. The closure is
    /// called when the upload is handed to the system, and so only while the app runs. The new form replaces the old
    /// one in the queue. If the closure throws, or is cancelled because it takes longer than ``maximumWakeUp``, the
    /// upload is handed to the system later. Defaults to `nil`: an upload whose form has expired fails with the code
    /// `form-expired`.
    public var presignedForm: (@Sendable (QueuedUpload) async throws -> PresignedForm)?

    /// The statuses of success. Defaults to 200 to 299. After any other status, ``retryPolicy`` decides. For an
    /// endpoint with its own accepted statuses, these are used instead.
    public var acceptedStatuses = Set(200..<300)

    /// Checks a response whose status means success, for servers that also report failures with 200. If the closure
    /// returns, the upload is done and its form is removed. If the closure throws, the upload has failed and its form
    /// is kept. After a ``ResponseRejection`` that may pass, the form is sent again later. Defaults to `nil`: the
    /// status decides.
    ///
    /// The closure is called for one response after the other. If it takes longer than ``maximumWakeUp``, it is
    /// cancelled and the form is sent again later. It must not call ``UploadQueue/handOver()``, which waits for the
    /// closure. The response has at most the first 64 KiB of the body. Its body is empty if the device was locked and
    /// the system could not store it.
    ///
    /// An HTML page is never a success if the form's `Accept` asks for JSON, because it may be the sign-in page of the
    /// network. The upload waits and is sent again, with the code `intercepted`.
    public var accepts: (@Sendable (QueuedUpload, QueuedUpload.Response) async throws -> Void)?

    #if canImport(Darwin)
    /// Answers the server's authentication challenges, for example to pin its certificate. Defaults to `nil`: the
    /// system answers them.
    public var answerChallenge:
        (@Sendable (URLAuthenticationChallenge) async -> (URLSession.AuthChallengeDisposition, URLCredential?))?
    #endif

    static let usualWakeUp = Duration.seconds(20)

    /// Makes a session with default settings.
    public init(identifier: String) {
        self.identifier = identifier
    }

    /// Makes a session for one run of an extension, with a unique identifier. The system allows only one process at a
    /// time to use a session, and the app uses the sessions of earlier runs until their uploads have ended.
    ///
    /// When the uploads have ended, the system wakes the app with the session's identifier, which begins with
    /// `identifier` and a period. Pass this identifier to ``UploadQueue/handleEvents(forSession:)``.
    ///
    /// - Parameters:
    ///   - identifier: The beginning of the session's identifier, such as `com.example.pets.share`.
    ///   - appGroup: The app group that the app shares with the extension.
    public init(extension identifier: String, appGroup: String) {
        self.init(identifier: "\(identifier).\(UUID().uuidString)")
        self.appGroup = appGroup
    }

    /// Whether an identifier was made for one run of an extension.
    static func isOfOneRun(_ identifier: String) -> Bool {
        identifier.split(separator: ".").last.flatMap { UUID(uuidString: String($0)) } != nil
    }
}
