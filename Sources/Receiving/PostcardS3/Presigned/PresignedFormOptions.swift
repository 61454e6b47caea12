#if Server || CommandLine
public import PostcardForm
import PostcardFoundation
import PostcardServer
public import PostcardStore

/// The files that clients may post straight to the bucket, and the path where they get the forms for it.
public struct PresignedFormOptions: Sendable {
    /// The path where clients get forms. They report stored files below it, at `/finished`. Defaults to
    /// `/uploads/forms`.
    public var path = "/uploads/forms"

    /// How a file is sent: as a POST form, or as a PUT for stores without POST forms, such as R2 and B2. The size of a
    /// PUT is only checked after it is stored. Defaults to a form.
    public var method = Method.post

    /// The prefix of the keys of these files, below the bucket's prefix and `arriving/`: letters, digits and
    /// `!-_.*'()/`. Defaults to an empty text.
    public var keyPrefix = ""

    /// The maximum size of a file, in bytes. At most 5 GiB, the maximum that stores accept in one request. Defaults to
    /// 100 MiB.
    public var maximumBytes: Int64 = 100 << 20

    /// The accepted media types of files. Defaults to all.
    public var contentTypes = [MediaRange.any]

    /// How long a form can be used, at most seven days. A form expires earlier if the credentials that sign it do.
    /// Defaults to ten minutes.
    public var lifetime: Duration = .seconds(600)

    /// The address at which clients reach the store, such as `https://files.example`. Defaults to `nil`: the address of
    /// the bucket.
    public var endpoint: String?

    /// Checks each file before it becomes a record, for example with a virus scanner. A refused file is removed, and
    /// its report is refused with 422. If the check throws, the report is refused with 503. Defaults to `nil`: no file
    /// is checked.
    public var screen: (@Sendable (FinishedFile) async throws -> ScreeningVerdict)?

    /// The maximum number of files that are checked at once. Other files wait. Defaults to the number of processors.
    public var maximumConcurrentScreenings = ProcessInfo.processInfo.activeProcessorCount

    /// The maximum time for the check of a file, including the time in which it waits for its turn. Defaults to 60
    /// seconds. After that, the task of the check is cancelled, and the report is refused with 503.
    public var screeningTimeout: Duration = .seconds(60)

    /// The way in which a file is sent.
    public enum Method: Sendable, Hashable {
        /// As a POST form. The store checks its size, type and key against a signed policy.
        case post
        /// As the body of a PUT whose URL is signed, for stores that accept no forms.
        case put
    }

    /// Makes options with the default values.
    public init() {}

    /// The maximum size of an object that one request can store.
    static let maximumObjectBytes: Int64 = 5 << 30

    /// The maximum lifetime of a signature, in seconds.
    static let maximumLifetime: Int64 = 7 * 24 * 3600
}
#endif
