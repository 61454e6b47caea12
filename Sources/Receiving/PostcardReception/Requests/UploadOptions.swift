public import HTTPTypes
public import PostcardForm
import PostcardFoundation
public import PostcardStore

/// The options of the upload routes: accepted forms, paths, and further features.
public struct UploadOptions: Sendable {
    /// The path where forms are posted, such as `/api/v1/images`. Defaults to `/uploads`.
    ///
    /// A missing first slash is added, and repeated slashes are removed: browsers expect a host after two slashes.
    public var path = UploadRecord.readingPath {
        didSet { path = Self.withSingleSlashes(path) }
    }

    /// Whether a body that is not `multipart/form-data` is accepted too, such as a file upload on iOS. Such a body
    /// becomes a record with one file in the field `file`. The file's name is from `Content-Disposition` (RFC 6266), or
    /// else the last segment of the path: files can also be sent by POST and PUT below ``path``. The limits, rules and
    /// screening of forms apply. Defaults to `false`: such a body is refused with 415.
    public var acceptsAnyBody = false

    /// The limits of a form and its parts.
    public var limits = FormLimits()

    /// The fields and files that a form may have, checked as bytes arrive. Defaults to `nil`: all are allowed.
    public var rules: FormRules?

    /// The policy for files whose first bytes contradict their media type. Defaults to recording both types.
    public var contentTypePolicy = ContentTypePolicy.recordBoth

    /// The maximum total size of the text values, names and filenames of a form, in bytes. The texts are in memory
    /// until the record is written. Defaults to 8 MiB.
    public var maximumRecordBytes = 8 << 20

    /// The maximum total memory for the text values, names and filenames of all forms in progress, in bytes. Each field
    /// counts 128 bytes more, and each file 640. Defaults to 64 MiB.
    public var maximumHeldBytes = 64 << 20

    /// The maximum total size of all responses in memory, in bytes: files, records and lists that were read from the
    /// store and not sent yet. If the maximum or a client's share is reached, the client waits for its next piece. The
    /// response to a received form does not wait. Defaults to 8 MiB.
    public var maximumHeldResponseBytes = 8 << 20

    /// Checks every file before the form becomes a record, for example with a virus scanner. A form with a refused file
    /// gets 422. If the check throws an ``UploadProblem``, the form is refused with it. If it throws any other error,
    /// the form gets 503. The files of a form are checked one after the other, and can be read until the last check has
    /// ended. Defaults to `nil`: no file is checked.
    public var screen: (@Sendable (FinishedFile) async throws -> ScreeningVerdict)?

    /// The maximum number of files that are checked at once. Further files wait, and their addresses are served in
    /// turn. Defaults to the number of processors.
    public var maximumConcurrentScreenings = ProcessInfo.processInfo.activeProcessorCount

    /// The maximum time until the check of a file ends, including the wait before it begins. After this time, the task
    /// of the check is cancelled, and the form is refused with 503. Defaults to 60 seconds.
    public var screeningTimeout: Duration = .seconds(60)

    /// The maximum number of forms that are received at once. Defaults to 2,000, so that a thousand slow clients leave
    /// capacity for others.
    ///
    /// A form counts from its first byte until its response. Each form and each response from the store has a file
    /// open. The files that the process may open besides its connections (`RLIMIT_NOFILE`) are divided equally between
    /// forms and responses.
    public var maximumConcurrentUploads = 2000

    /// The maximum number of requests in progress, with or without a form. Defaults to 2,500. Each request has a task
    /// and buffers: 2,500 clients that do not read their responses use about 180 MiB. In an app of your own, only
    /// responses that are read from the store count.
    public var maximumConcurrentRequests = 2500

    /// The fraction of the free amount that the clients of one address can use. It applies to
    /// ``maximumConcurrentUploads``, ``maximumConcurrentRequests``, ``maximumHeldBytes``, ``maximumHeldResponseBytes``,
    /// `UnfinishedUploadOptions.maximumUnfinished` and `UnfinishedUploadOptions.maximumUnfinishedBytes`. Defaults to
    /// 0.25. An address with only one item can use half, because one upload may be large. An IPv6 network of 64 bits
    /// counts as one address.
    ///
    /// If several addresses use as much as they can, each gets less than the address before, and some amount always
    /// stays free. A tenth is reserved for addresses that use little. If even the reserve is used up, the oldest
    /// request of the address that uses most is ended for a new address. A client is refused with 429 if its address
    /// has used up its share, and with 503 if everything is used up.
    ///
    /// Behind a reverse proxy all clients have one address, unless the proxy is one of the
    /// `ConnectionOptions.trustedProxies`. The value 1 means no limit.
    public var clientShare = 0.25

    /// Returns the scope of a request's `Idempotency-Key`, such as the user, from the header fields: the same key in
    /// two scopes names two uploads. A scope must stay the same between attempts, unlike a token that is refreshed.
    /// Defaults to one scope for all clients. This is safe, because keys are random, and a key returns its record only
    /// for the same form.
    public var keyScope: @Sendable (HTTPFields) -> String = { _ in "" }

    /// The options of unfinished uploads, which clients can resume. `nil` disables resumption: every form must arrive
    /// in one request. Resumption needs a `ResumableUploadStore`, such as `LocalUploadStore`.
    public var resumption: UnfinishedUploadOptions? = UnfinishedUploadOptions()

    /// What clients may do with stored uploads. The routes require no password: all clients have this access. Defaults
    /// to ``Access/none``: clients can only send forms.
    public var access = Access.none

    /// The access of clients to stored uploads.
    public struct Access: OptionSet, Sendable, Hashable {
        public let rawValue: Int

        /// Makes a set from its raw value.
        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// Clients may list records and fetch files.
        public static let reading = Access(rawValue: 1)
        /// Clients may delete uploads.
        public static let deleting = Access(rawValue: 2)
        /// Clients can only send forms.
        public static let none: Access = []
        /// Clients may read and delete uploads.
        public static let all: Access = [.reading, .deleting]
    }

    /// Makes options with the default values.
    public init() {}

    package static func withSingleSlashes(_ path: String) -> String {
        let segments = path.split(separator: "/").joined(separator: "/")
        return "/" + segments + (path.hasSuffix("/") && !segments.isEmpty ? "/" : "")
    }
}

extension UploadOptions {
    /// The size limits of a form and its parts, which refusals list.
    var sizeLimits: [UploadProblem.Limit] {
        var sizes = [
            ("maximumBodyBytes", limits.maximumBodyBytes), ("maximumFileBytes", limits.maximumFileBytes),
            ("maximumFieldBytes", limits.maximumFieldBytes), ("maximumParts", Int64(limits.maximumParts)),
        ]
        if let maximum = rules?.maximumBytesOfAllFiles { sizes.append(("maximumBytesOfAllFiles", maximum)) }
        for (name, file) in (rules?.files ?? [:]).sorted(by: { $0.key < $1.key }) {
            if let maximum = file.maximumBytes { sizes.append(("files.\(name).maximumBytes", maximum)) }
        }
        return sizes.map { UploadProblem.Limit(name: $0.0, value: $0.1) }
    }
}

/// The policy for a file whose first bytes contradict its declared media type, such as a HEIC picture as `image/jpeg`.
public enum ContentTypePolicy: String, Sendable, Hashable, CaseIterable {
    /// The record contains both types: `UploadRecord.File.contentType` and `UploadRecord.File.detectedType`.
    case recordBoth = "record"
    /// The record contains the type that the bytes indicate.
    case correct
    /// The form is refused with 415 and the code `content-contradicts-type`.
    case refuse
}

extension ShareLimits {
    /// Makes the limits of upload routes with these options. `connections` is the maximum number of connections. It
    /// defaults to the most that the process may have open.
    package init(_ options: UploadOptions, connections: Int = OpenFiles.maximumConnections) {
        self.init(clientShare: options.clientShare)
        // Each upload and each response has one file open.
        let files = max(OpenFiles.forRequests(connections: connections) / 2, 1)
        self[.connections] = connections
        self[.proxiedConnections] = connections
        self[.requests] = options.maximumConcurrentRequests
        self[.uploads] = min(options.maximumConcurrentUploads, files)
        self[.textBytes] = options.maximumHeldBytes
        self[.responses] = min(options.maximumConcurrentRequests, files)
        self[.responseBytes] = options.maximumHeldResponseBytes
        self[.screenings] = options.maximumConcurrentScreenings
        // Making a thumbnail needs as much memory as the whole receiver.
        self[.thumbnails] = 1
        if let resumption = options.resumption {
            self[.unfinishedUploads] = resumption.maximumUnfinished
            self[.unfinishedBytes] = Int(clamping: resumption.maximumUnfinishedBytes)
        }
    }
}
