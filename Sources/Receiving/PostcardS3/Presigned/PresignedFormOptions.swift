#if Server || CommandLine
public import PostcardForm
import PostcardFoundation
import PostcardServer
public import PostcardStore

/// What clients may post straight to the bucket, and where they get the forms for it.
public struct PresignedFormOptions: Sendable {
    /// The path where clients get forms. Below it, at `/finished`, they report that a file is stored. Defaults to
    /// `/uploads/forms`.
    public var path = "/uploads/forms"

    /// How a file is sent: as a POST form, or as a PUT for stores without POST forms, such as R2 and B2. The size of a
    /// PUT is only checked once it is stored. Defaults to a form.
    public var method = Method.post

    /// The beginning of the keys of these files, below the bucket's prefix and `arriving/`: letters, digits and
    /// `!-_.*'()/`. Defaults to an empty text.
    public var keyPrefix = ""

    /// The maximum size of a file, in bytes; at most 5 GiB, which is what stores accept in one request. Defaults to
    /// 100 MiB.
    public var maximumBytes: Int64 = 100 << 20

    /// The types of file that are accepted. Defaults to all.
    public var contentTypes = [MediaRange.any]

    /// How long a form can be used, at most seven days. It ends earlier if the credentials that sign it do. Defaults to
    /// ten minutes.
    public var lifetime: Duration = .seconds(600)

    /// The address at which clients reach the store, such as `https://files.example`. Defaults to `nil`: the bucket's
    /// own.
    public var endpoint: String?

    /// Checks each file before it becomes a record, for example with a virus scanner. A file that is refused is removed,
    /// and its report is refused with 422; if the check throws, the report is refused with 503. Defaults to `nil`: no
    /// file is checked.
    public var screen: (@Sendable (FinishedFile) async throws -> ScreeningVerdict)?

    /// How many files may be checked at once. Others wait. Defaults to the number of processors.
    public var maximumConcurrentScreenings = ProcessInfo.processInfo.activeProcessorCount

    /// How long the check of a file may take, with the time in which it waits for its turn. Defaults to 60 seconds. Then
    /// the task of the check is cancelled, and the report is refused with 503.
    public var screeningTimeout: Duration = .seconds(60)

    /// How a file is sent.
    public enum Method: Sendable, Hashable {
        /// As a form that the store checks against a signed policy: size, type and address.
        case post
        /// As the body of a request whose address is signed, for stores that accept no forms.
        case put
    }

    /// Makes the defaults.
    public init() {}

    /// The largest object that one request can store.
    static let maximumObjectBytes: Int64 = 5 << 30

    /// The longest lifetime of a signature, in seconds.
    static let maximumLifetime: Int64 = 7 * 24 * 3600
}
#endif
