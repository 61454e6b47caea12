#if Queue
public import PostcardClient

/// How a queue is run.
public struct QueueOptions: Sendable {
    /// The most uploads on their way at a time, or in the hands of the system where it carries them on:
    /// there also those for which it waits until there is a network that is not metered.
    public var concurrency: Int

    /// Whether, when and how often a failed upload is tried again. It takes the place of the client's own policy,
    /// because its waits must outlive the process.
    public var retryPolicy: RetryPolicy

    /// Whether and how an upload that was cut goes on where it stopped, in this process or a later one; `nil` for
    /// uploads that begin anew. It takes the place of the client's own; uploads in the background always begin anew.
    public var resumption: ResumptionPolicy?

    /// Whether running ends when nothing is left that can be done.
    public var endsWhenEmpty: Bool

    /// How often the queue looks for what other processes have put in or cancelled; `nil` where there are none.
    public var pollInterval: Duration?

    /// Whether the network in use is one that is not metered; asked before each upload.
    public var isNetworkUnmetered: @Sendable () -> Bool

    /// Makes options.
    ///
    /// - Parameters:
    ///   - concurrency: The most uploads on their way at a time.
    ///   - retryPolicy: Up to 1,000 attempts unless given, half an hour apart in the end.
    ///   - resumption: Whether and how an upload that was cut goes on; unless given it does, with servers that know
    ///     how, and after three attempts in a row that brought it no further the retry policy decides.
    ///   - endsWhenEmpty: Whether running ends when nothing is left that can be done.
    ///   - pollInterval: How often the queue looks for what other processes have done.
    ///   - isNetworkUnmetered: Whether the network in use is one that is not metered; where the platform tells, what
    ///     it says unless given.
    public init(
        concurrency: Int = 3,
        retryPolicy: RetryPolicy = RetryPolicy(maximumAttempts: 1000, maximumDelay: .seconds(1800)),
        resumption: ResumptionPolicy? = ResumptionPolicy(retryPolicy: RetryPolicy(maximumAttempts: 3)),
        endsWhenEmpty: Bool = false, pollInterval: Duration? = .seconds(1),
        isNetworkUnmetered: (@Sendable () -> Bool)? = nil
    ) {
        self.concurrency = max(concurrency, 1)
        self.retryPolicy = retryPolicy
        self.resumption = resumption
        self.endsWhenEmpty = endsWhenEmpty
        self.pollInterval = pollInterval
        self.isNetworkUnmetered = isNetworkUnmetered ?? NetworkMonitor.shared.isUnmetered
    }
}
#endif
