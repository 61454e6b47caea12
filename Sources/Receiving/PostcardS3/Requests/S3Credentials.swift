public import PostcardFoundation

/// The keys with which requests to an object store are signed.
public struct S3Credentials: Sendable, Hashable, CustomStringConvertible {
    /// The public name of the key, such as `AKIAIOSFODNN7EXAMPLE`.
    public var accessKeyID: String
    /// The secret key, which is never sent or logged.
    public var secretAccessKey: String
    /// The token of temporary credentials. Defaults to `nil`.
    public var sessionToken: String?
    /// The time at which temporary credentials expire; `nil` if they do not expire, or the time is unknown.
    public var expires: Date?

    /// Makes credentials.
    public init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, expires: Date? = nil) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
        self.expires = expires
    }

    /// The name of the key, without its secret.
    public var description: String { accessKeyID }
}

/// The source of the credentials for an object store.
public struct S3CredentialSource: Sendable {
    enum Kind: Sendable {
        case fixed(S3Credentials)
        case automatic([String: String])
    }

    let kind: Kind

    /// Credentials that do not change.
    public static func fixed(_ credentials: S3Credentials) -> S3CredentialSource {
        S3CredentialSource(kind: .fixed(credentials))
    }

    /// Credentials from the places that the AWS command line documents, in this order:
    ///
    /// 1. the variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`
    /// 2. the profile `AWS_PROFILE`, by default `default`, in `~/.aws/credentials` and `~/.aws/config`, or the files
    ///    that `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` name
    /// 3. the service of a container, at the URL in `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` or
    ///    `AWS_CONTAINER_CREDENTIALS_FULL_URI`
    /// 4. the metadata service of an instance, in its second version, unless `AWS_EC2_METADATA_DISABLED` is `true`
    ///
    /// Temporary credentials are fetched again before they expire, and all credentials after the store has refused
    /// them. A profile that requires another program, a login or another role causes an error that names its setting.
    ///
    /// - Parameter environment: The environment variables. Defaults to those of this process.
    public static func automatic(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> S3CredentialSource {
        S3CredentialSource(kind: .automatic(environment))
    }
}

/// The current credentials, which are fetched again before they expire. Concurrent requests share one fetch.
actor CurrentCredentials {
    private let source: S3CredentialSource
    private let fetch: @Sendable (MetadataRequest) async throws -> [UInt8]
    private var current: S3Credentials?
    private var fetching: Task<S3Credentials, any Error>?

    /// How long before their expiry temporary credentials are fetched again, in seconds.
    private static let margin: TimeInterval = 300

    init(_ source: S3CredentialSource, fetch: @escaping @Sendable (MetadataRequest) async throws -> [UInt8]) {
        self.source = source
        self.fetch = fetch
    }

    func value(now: Date = Date()) async throws -> S3Credentials {
        if let current, current.expires.map({ $0.timeIntervalSince(now) > Self.margin }) ?? true { return current }
        do {
            return try await fetchOnce()
        } catch {
            // The current credentials are valid until they expire.
            if let current, let expires = current.expires, expires > now { return current }
            throw error
        }
    }

    /// Fetches credentials again after a refusal: credentials in a file have no expiry, but may have been replaced.
    /// Returns `nil` if there are no other credentials.
    func value(insteadOf refused: S3Credentials) async -> S3Credentials? {
        if current == refused, (try? await fetchOnce()) == nil { return nil }
        return current == refused ? nil : current
    }

    private func fetchOnce() async throws -> S3Credentials {
        if case .fixed(let credentials) = source.kind {
            current = credentials
            return credentials
        }
        let task =
            fetching
            ?? Task { [source, fetch] in
                switch source.kind {
                case .fixed(let credentials): credentials
                case .automatic(let environment):
                    try await CredentialChain(environment: environment, fetch: fetch).credentials()
                }
            }
        fetching = task
        defer { if fetching == task { fetching = nil } }
        let credentials = try await task.value
        current = credentials
        return credentials
    }
}
