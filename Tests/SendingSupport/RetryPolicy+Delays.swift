package import PostcardClient

extension RetryPolicy {
    /// A policy whose attempts follow each other at once.
    package static func withoutDelays(maximumAttempts: Int) -> RetryPolicy {
        var policy = RetryPolicy(maximumAttempts: maximumAttempts)
        policy.firstDelay = .zero
        return policy
    }
}
