#if Server || CommandLine
public import PostcardForm
import PostcardFoundation
public import PostcardStore

/// The rules for files that clients send directly to the bucket, and the path where clients get forms.
public struct PresignedFormOptions: Sendable {
    /// The path where clients get forms, and report stored files at `/finished` below it. Defaults to `/uploads/forms`.
    public var path = "/uploads/forms"

    /// How a file is sent: as a POST form, or as a PUT for stores without POST forms, such as R2 and B2. The size of a
    /// PUT is only checked after it is stored. Defaults to a POST form.
    public var method = Method.post

    /// A folder for new files: `pets` leads to keys `…arriving/pets/…`. Letters, digits, `!-_.*'()/`. Defaults to none.
    public var keyPrefix = ""

    /// The maximum size of a file, in bytes; at most 5 GiB, the maximum of stores for one request. Defaults to 100 MiB.
    public var maximumBytes: Int64 = 100 << 20

    /// The accepted media types of files. Defaults to all types.
    public var contentTypes = [MediaRange.any]

    /// How long a form can be used: at most seven days or the lifetime of the credentials. Defaults to ten minutes.
    public var lifetime: Duration = .seconds(600)

    /// The URL of the store for clients, such as `https://files.example`. Defaults to `nil`: the bucket's own URL.
    public var endpoint: String?

    /// Checks each file before it becomes a record, for example with a virus scanner. A refused file is removed, and
    /// its report gets 422. If the check throws an error, the report gets 503. Defaults to `nil`: no file is checked.
    public var screen: (@Sendable (FinishedFile) async throws -> ScreeningVerdict)?

    /// The maximum number of files that are checked at once. Further files wait. Defaults to the number of processors.
    public var maximumConcurrentScreenings = ProcessInfo.processInfo.activeProcessorCount

    /// The maximum time until the check of a file ends, including the wait before it begins. After this time, the task
    /// of the check is cancelled, and the report is refused with 503. Defaults to 60 seconds.
    public var screeningTimeout: Duration = .seconds(60)

    /// How a file is sent.
    public enum Method: Sendable, Hashable {
        /// A POST form. The store checks the size, type and key of the file against a signed policy.
        case post
        /// The body of a PUT with a signed URL, for stores that accept no POST forms.
        case put
    }

    /// Makes options with the default values.
    public init() {}

    /// The maximum size of an object in one request, in bytes.
    static let maximumObjectBytes: Int64 = 5 << 30

    /// The maximum lifetime of a signature, in seconds.
    static let maximumLifetime: Int64 = 7 * 24 * 3600
}
#endif
