package import PostcardFoundation

/// A bucket of an object store that speaks the protocol of Amazon S3, and how to reach it.
///
/// ```swift
/// var bucket = try S3Bucket("s3://uploads/forms")
/// bucket.endpoint = "http://127.0.0.1:7480"
/// ```
public struct S3Bucket: Sendable {
    /// The name of the bucket.
    public let name: String
    /// The beginning of all keys: empty, or a path that ends with a slash.
    public let prefix: String
    /// The address of the store, such as `https://ACCOUNT.r2.cloudflarestorage.com`. The bucket is then the first part
    /// of each path. Defaults to `nil`: the address in `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, or else Amazon S3
    /// in ``region``.
    public var endpoint: String?
    /// The region. Defaults to `nil`: the region that the environment or the profile names, or else `us-east-1`.
    public var region: String?
    /// The source of the credentials. Defaults to the places that the AWS command line documents.
    public var credentials = S3CredentialSource.automatic()
    /// How long a single request may take. Defaults to 60 seconds.
    public var requestTimeout: Duration = .seconds(60)
    /// How long a failed request is retried, with growing pauses. A request in progress is not cut off when this
    /// time is over. Defaults to 15 seconds.
    public var retryTimeout: Duration = .seconds(15)

    /// Tells the time, for signatures and identifiers.
    package var clock: @Sendable () -> Date = { Date() }
    package var surroundings = Surroundings.real

    /// Reads an address such as `s3://bucket/a/path`.
    ///
    /// - Throws: ``S3Error`` if the text is not such an address. The path may have letters, digits and `!-_.*'()`.
    public init(_ address: String) throws {
        let scheme = "s3://"
        guard address.hasPrefix(scheme) else { throw S3Error.unusableAddress(address, "It does not begin with s3://.") }
        let parts = address.dropFirst(scheme.count).split(separator: "/", omittingEmptySubsequences: true)
        guard let name = parts.first, name.count >= 3 else {
            throw S3Error.unusableAddress(address, "It has no bucket.")
        }
        let isAllowed = parts.joined().utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "!-_.*'()".utf8.contains(byte)
        }
        guard isAllowed, !parts.contains(where: { $0 == "." || $0 == ".." }) else {
            throw S3Error.unusableAddress(address, "Use letters, digits and !-_.*'() only.")
        }
        self.name = String(name)
        prefix = parts.dropFirst().map { $0 + "/" }.joined()
    }

    /// The folder of the objects whose names are secrets: knowing the identifier of an unfinished upload is enough to
    /// append to the upload.
    static let secretFolder = "unfinished/"

    /// The address of an object, for messages, without the name of a folder in ``secretFolder``.
    func address(of key: String) -> String {
        let folder = prefix + Self.secretFolder
        guard key.hasPrefix(folder) else { return "s3://\(name)/\(key)" }
        let rest = key.dropFirst(folder.count).drop { $0 != "/" }
        return "s3://\(name)/\(folder)…\(rest)"
    }
}

/// What a store takes from its surroundings. The simulator replaces all of it, and the clock of ``S3Bucket``.
package final class Surroundings: Sendable {
    /// Makes a request that is signed at a time, within a limit; `nil` if it is made over the network.
    let exchange: (@Sendable (S3Request, _ signed: Date, _ limit: Duration) async throws -> S3Response)?
    /// Measures time, also while the process is stopped.
    let now: @Sendable () -> ContinuousClock.Instant
    let sleep: @Sendable (Duration) async throws -> Void
    /// Makes random bits for names and pauses.
    let random: @Sendable () -> UInt64
    /// Runs the tasks that are not part of a caller's; `nil` for the threads that all tasks share.
    let executor: (any TaskExecutor)?
    /// The size of parts and chunks.
    let partBytes: Int
    /// The bytes that an upload gathers before it takes a block of the budget. Most forms have no more.
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

    /// The network, the clock and the threads of this process.
    package static let real = Surroundings()

    /// Does something also if the caller's task is cancelled, whose own requests would fail.
    func evenIfCancelled(_ work: @escaping @Sendable () async -> Void) async {
        await Task(executorPreference: executor, operation: work).value
    }

    var generator: some RandomNumberGenerator { Generator(random: random) }

    private struct Generator: RandomNumberGenerator {
        let random: @Sendable () -> UInt64
        mutating func next() -> UInt64 { random() }
    }
}
