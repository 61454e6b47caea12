public import HTTPTypes
public import PostcardClient

#if canImport(Darwin)
public import Foundation
#elseif canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How the system carries a queue's uploads while the app is suspended or gone.
///
/// ```swift
/// let queue = try UploadQueue(directory: folder, session: BackgroundSession(identifier: "com.example.pets"))
/// ```
///
/// The system uploads in a process of its own, waits for a network, retries broken connections, and follows redirects
/// without asking the app. There are no such sessions on Linux, where the queue sends in this process instead.
public struct BackgroundSession: Sendable {
    /// The session's identifier, such as `com.example.pets`. Use the same one at every start of the app, and another one in
    /// each extension.
    public var identifier: String

    /// The app group whose container the app shares with its extensions, such as `group.com.example.pets`. Extensions need
    /// it. Defaults to `nil`.
    ///
    /// iOS ends an app that is suspended while it holds a lock in the group's container. Between its short writes the queue
    /// holds none there, but ``UploadQueue/run(_:options:)`` does: use ``UploadQueue/run(endsWhenEmpty:)``.
    public var appGroup: String?

    /// Whether the system may wait for a good moment, such as Wi-Fi and power. Defaults to `false`.
    public var isDiscretionary = false

    /// The number of uploads to one host at a time. Defaults to 3. All uploads that are due are handed to the system at once;
    /// this limits how many of them it sends.
    public var maximumConnectionsPerHost = 3

    /// How long an attempt may be idle before the system retries it. Defaults to 60 seconds.
    public var idleTimeout = Duration.seconds(60)

    /// How long the system tries to send an upload before it gives up. Defaults to a week.
    public var totalTimeout = Duration.seconds(604_800)

    /// Whether and when an upload is sent again that the server refused or the system gave up. Defaults to 1,000 attempts, at
    /// most half an hour apart.
    public var retryPolicy = RetryPolicy(maximumAttempts: 1000, maximumDelay: .seconds(1800))

    /// How long an upload waits before it is sent again that the system no longer has and whose end it has not reported,
    /// because the report may come late.
    package var lossDelay = Duration.seconds(5)

    /// Header fields that are added when an upload is handed to the system, and not kept in the queue, such as a fresh
    /// `Authorization`. If it throws, the upload is retried later.
    public var headerFields: (@Sendable (QueuedUpload) async throws -> HTTPFields)?

    #if canImport(Darwin)
    /// Answers the server's authentication challenges, for instance to pin its certificate. By default the system decides.
    public var answerChallenge:
        (@Sendable (URLAuthenticationChallenge) async -> (URLSession.AuthChallengeDisposition, URLCredential?))?
    #endif

    /// Makes a session with the default settings.
    public init(identifier: String) {
        self.identifier = identifier
    }
}
