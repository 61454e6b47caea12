package import PostcardFoundation
import PostcardForm

/// A bucket of an object store with the protocol of Amazon S3, and how to reach it.
///
/// ```swift
/// var bucket = try S3Bucket("s3://uploads/forms")
/// bucket.endpoint = "http://127.0.0.1:7480"
/// ```
public struct S3Bucket: Sendable {
    /// The name of the bucket.
    public let name: String
    /// The prefix of all keys: empty, or a path that ends with a slash.
    public let prefix: String
    /// The URL of the store, such as `https://ACCOUNT.r2.cloudflarestorage.com`; the bucket is then the first segment
    /// of each path. Defaults to `nil`: the URL in `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, or else Amazon S3 in
    /// ``region``.
    public var endpoint: String?
    /// The region. Defaults to `nil`: the region in the environment or the profile, or else `us-east-1`.
    public var region: String?
    /// The source of the credentials. Defaults to the places that the AWS command line documents.
    public var credentials = S3CredentialSource.automatic()
    /// How long a single request may take. Defaults to 60 seconds.
    public var requestTimeout: Duration = .seconds(60)
    /// How long a failed request is retried, with growing pauses. A last try may take longer. Defaults to 15 seconds.
    public var retryTimeout: Duration = .seconds(15)

    /// Returns the current time, for signatures and identifiers.
    package var clock: @Sendable () -> Date = { Date() }
    package var surroundings = Surroundings.real

    /// Parses an address such as `s3://bucket/a/path`.
    ///
    /// - Throws: ``S3Error`` if the text is not such an address. The path may have letters, digits and `!-_.*'()`.
    public init(_ address: String) throws {
        let scheme = "s3://"
        guard address.hasPrefix(scheme) else { throw S3Error.unusableAddress(address, "It does not begin with s3://.") }
        let parts = address.dropFirst(scheme.count).split(separator: "/", omittingEmptySubsequences: true)
        guard let name = parts.first, name.count >= 3 else {
            throw S3Error.unusableAddress(address, "It has no bucket.")
        }
        let isAllowed = parts.joined().utf8.allSatisfy { $0.isLetterOrDigit || "!-_.*'()".utf8.contains($0) }
        guard isAllowed, !parts.contains(where: { $0 == "." || $0 == ".." }) else {
            throw S3Error.unusableAddress(address, "Use letters, digits and !-_.*'() only.")
        }
        self.name = String(name)
        prefix = parts.dropFirst().map { $0 + "/" }.joined()
    }

    /// The folder of objects with secret names: anyone who knows an unfinished upload's identifier can append to it.
    static let secretFolder = "unfinished/"

    /// The address of an object for messages. The name of a folder in ``secretFolder`` is left out.
    func address(of key: String) -> String {
        let folder = prefix + Self.secretFolder
        guard key.hasPrefix(folder) else { return "s3://\(name)/\(key)" }
        let rest = key.dropFirst(folder.count).drop { $0 != "/" }
        return "s3://\(name)/\(folder)…\(rest)"
    }
}

/// The network, clock, randomness and threads of a store. The simulator replaces them, and an ``S3Bucket``'s clock.
package final class Surroundings: Sendable {
    /// Sends a request signed at a given time, and fails after `limit`. `nil` sends requests over the network.
    let exchange: (@Sendable (S3Request, _ signed: Date, _ limit: Duration) async throws -> S3Response)?
    /// Returns the time of a clock that also advances while the process is stopped.
    let now: @Sendable () -> ContinuousClock.Instant
    let sleep: @Sendable (Duration) async throws -> Void
    /// Returns random bits, for names and pauses.
    let random: @Sendable () -> UInt64
    /// Runs the tasks that outlive their callers; `nil` for the global executor.
    let executor: (any TaskExecutor)?
    /// The size of parts and chunks, in bytes.
    let partBytes: Int
    /// The number of bytes that an upload gathers before it needs a block of memory. Most forms have fewer bytes.
    let freeBytes: Int

    package init(
        exchange: (@Sendable (S3Request, _ signed: Date, _ limit: Duration) async throws -> S3Response)? = nil,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        random: @escaping @Sendable () -> UInt64 = {
            var generator = SystemRandomNumberGenerator()
            return generator.next()
        },
        executor: (any TaskExecutor)? = nil, partBytes: Int = 8 << 20, freeBytes: Int = 64 << 10
    ) {
        self.exchange = exchange
        self.now = now
        self.sleep = sleep
        self.random = random
        self.executor = executor
        self.partBytes = partBytes
        self.freeBytes = freeBytes
    }

    /// The real network, clock, randomness and threads.
    package static let real = Surroundings()

    /// Runs a closure even if the caller's task is cancelled. Requests of the cancelled task would fail.
    func evenIfCancelled(_ work: @escaping @Sendable () async -> Void) async {
        await Task(executorPreference: executor, operation: work).value
    }

    var generator: some RandomNumberGenerator { Generator(random: random) }

    private struct Generator: RandomNumberGenerator {
        let random: @Sendable () -> UInt64
        mutating func next() -> UInt64 { random() }
    }
}
