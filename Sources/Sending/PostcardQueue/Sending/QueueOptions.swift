import HTTPTypes
public import PostcardClient

/// The settings with which ``UploadQueue/run(_:options:)`` sends uploads in this process.
public struct QueueOptions: Sendable {
    /// The maximum number of uploads at a time. Defaults to 3.
    public var maximumConcurrentUploads: Int

    /// Whether, when and how often a failed upload is sent again. It replaces the client's policy, because the delays
    /// must outlive the process. Its deadline counts from the first attempt, even while no process is running. Defaults
    /// to `RetryPolicy.persistent`: 1,000 attempts, at most 30 minutes apart.
    public var retryPolicy: RetryPolicy

    /// Whether and how an interrupted upload resumes, in this process or a later one. It replaces the client's policy;
    /// `nil` means that uploads start over. By default, uploads resume with servers that support it, and
    /// ``retryPolicy`` decides after three attempts in a row without progress. If an upload is cancelled while it is
    /// being sent, the server is always asked to delete its bytes, whatever the value of `deletesCancelledUploads` is.
    public var resumption: ResumptionPolicy?

    /// Whether the run ends when no upload is left that can be sent. Such a run does not wait for uploads with a later
    /// ``UploadConditions/notBefore``. ``awaitsRetries`` determines whether it waits for the next attempts of failed
    /// uploads. Defaults to `false`.
    public var endsWhenEmpty: Bool

    /// Whether a run that ends when the queue is empty waits for the next attempts of failed uploads. Defaults to
    /// `true`.
    public var awaitsRetries = true

    /// How often the queue checks for changes by other processes. Defaults to 1 second; `nil` disables the checks.
    public var pollInterval: Duration?

    /// Returns the network in use, or `nil` if it is not known yet. The closure is called before each upload. Defaults
    /// to the system's network, which has no restrictions on platforms that do not distinguish networks.
    public var networkPath: @Sendable () -> NetworkPath?

    /// Makes a new presigned form for an upload whose form has expired, or was refused as expired. The closure is
    /// called before each such attempt; the form is not stored. If the closure throws, the upload is sent later.
    /// Defaults to `nil`: an upload whose form has expired fails with the code `form-expired`.
    public var presignedForm: (@Sendable (QueuedUpload) async throws -> PresignedForm)?

    /// Checks a response whose status means success (see ``BackgroundSession/accepts``), without a time limit. Defaults
    /// to `nil`: the client's accepted statuses decide.
    public var accepts: (@Sendable (QueuedUpload, QueuedUpload.Response) async throws -> Void)?

    /// Makes header fields for a single attempt, such as a token (see ``BackgroundSession/headerFields``). The closure
    /// is called before each attempt; the fields are not stored. Defaults to `nil`.
    public var headerFields: (@Sendable (QueuedUpload) async throws -> HTTPFields)?

    /// Makes options from the values of the properties with the same names.
    public init(
        maximumConcurrentUploads: Int = 3,
        retryPolicy: RetryPolicy = .persistent,
        resumption: ResumptionPolicy? = ResumptionPolicy(retryPolicy: RetryPolicy(maximumAttempts: 3)),
        endsWhenEmpty: Bool = false, pollInterval: Duration? = .seconds(1),
        networkPath: (@Sendable () -> NetworkPath?)? = nil
    ) {
        self.maximumConcurrentUploads = max(maximumConcurrentUploads, 1)
        self.retryPolicy = retryPolicy
        self.resumption = resumption
        self.endsWhenEmpty = endsWhenEmpty
        self.pollInterval = pollInterval
        self.networkPath = networkPath ?? { NetworkMonitor.shared.path }
    }
}
