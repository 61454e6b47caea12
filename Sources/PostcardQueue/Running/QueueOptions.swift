public import PostcardClient

/// How a queue sends in this process.
public struct QueueOptions: Sendable {
    /// The most uploads at a time. Defaults to 3.
    public var concurrency: Int

    /// Whether, when and how often a failed upload is sent again. It replaces the client's own policy, because its waits
    /// must outlive the process. Defaults to 1,000 attempts, at most half an hour apart.
    public var retryPolicy: RetryPolicy

    /// Whether and how an interrupted upload resumes, in this process or a later one; `nil` for uploads that start over. It
    /// replaces the client's own. By default uploads resume with servers that support it, and after three attempts in a row
    /// that brought them no further the retry policy decides.
    public var resumption: ResumptionPolicy?

    /// Whether running ends when nothing is left that can be done. Defaults to `false`.
    public var endsWhenEmpty: Bool

    /// How often the queue looks for what other processes have enqueued or cancelled. Defaults to 1 second; `nil` if there
    /// are no other processes.
    public var pollInterval: Duration?

    /// The network in use, or `nil` if it is not known yet; called before each upload. By default the system is asked, and a
    /// platform that does not distinguish networks counts as one without limits.
    public var networkPath: @Sendable () -> NetworkPath?

    /// Makes options.
    public init(
        concurrency: Int = 3,
        retryPolicy: RetryPolicy = RetryPolicy(maximumAttempts: 1000, maximumDelay: .seconds(1800)),
        resumption: ResumptionPolicy? = ResumptionPolicy(retry: RetryPolicy(maximumAttempts: 3)),
        endsWhenEmpty: Bool = false, pollInterval: Duration? = .seconds(1),
        networkPath: (@Sendable () -> NetworkPath?)? = nil
    ) {
        self.concurrency = max(concurrency, 1)
        self.retryPolicy = retryPolicy
        self.resumption = resumption
        self.endsWhenEmpty = endsWhenEmpty
        self.pollInterval = pollInterval
        self.networkPath = networkPath ?? { NetworkMonitor.shared.path }
    }
}
