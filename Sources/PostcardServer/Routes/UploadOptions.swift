public import HTTPTypes
public import PostcardForm

/// What a receiver takes, where, and what else it offers.
public struct UploadOptions: Sendable {
    /// Where forms are posted: `/uploads` unless set, for an app whose address is fixed such as `/api/v1/images`.
    ///
    /// It always begins with one slash, because a browser takes two for the beginning of a host; slashes that are
    /// missing or too many are mended.
    public var path = UploadRecord.readingPath {
        didSet { path = Self.withSingleSlashes(path) }
    }

    /// How much of everything is taken.
    public var limits = FormLimits()

    /// Which fields and files may come; whatever is well formed unless set. A form is refused at the first byte that
    /// breaks a rule.
    public var rules: FormRules?

    /// The bytes of all text values, names and filenames together, which are held in memory until the record is
    /// written: 8 MiB unless set.
    public var maximumRecordBytes = 8 << 20

    /// The same of all forms together that are coming in: 128 MiB unless set. Whoever sends more text then is asked to
    /// come again.
    public var maximumHeldBytes = 128 << 20

    /// How many bytes of answers may be in memory at once, of all clients together: files, records and lists that are
    /// read from the store but not yet sent. A client waits for its next piece while others hold them all, or while
    /// answers to its own address hold the part of them that ``clientShare`` says. The answer to a form that was
    /// received does not wait. Defaults to 16 MiB.
    public var maximumAnswerBytes = 16 << 20

    /// Looks at every file that was received whole, before the form becomes a record: a virus scanner, a moderation
    /// service. A form is refused with 422 where one of its files is, and with 503 where the screening throws. Files
    /// are screened one after the other, in their order; none is unless this is set.
    public var screen: (@Sendable (FinishedFile) async throws -> ScreeningVerdict)?

    /// How many forms may come in at once: 2,000 unless set, so that a thousand slow senders leave
    /// room. Clients are asked to try again later when all are taken.
    ///
    /// A form counts from the first byte of its body until it is answered.
    public var maximumConcurrentUploads = 2000

    /// The part of ``maximumConcurrentUploads``, ``maximumAnswerBytes`` and ``ResumptionOptions/maximumUnfinished`` that
    /// the clients of one address can have, at least one upload. An IPv6 network of 64 bits counts as one address.
    /// Defaults to 0.25. ``Receiver`` limits the connections of an address in the same way.
    ///
    /// Set it to 1, which is no limit, where all clients have one address: behind a reverse proxy.
    public var clientShare = 0.25

    /// Whose an `Idempotency-Key` is, told from the header fields of its request: the same key of two senders is two
    /// keys. All senders are one unless set, because a key is as good as random and its record is answered only to
    /// the same form. What changes between two attempts, such as a token that is refreshed, must not be part of it.
    public var keyScope: @Sendable (HTTPFields) -> String = { _ in "" }

    /// How unfinished uploads are kept, so that clients can resume them. `nil` switches resumption off: every form must
    /// arrive in one request. It needs a store that is a ``ResumableUploadStore``, as ``LocalUploadStore`` is.
    public var resumption: ResumptionOptions? = ResumptionOptions()

    /// What is offered beside receiving; everything unless set. It needs no password: give strangers ``Access/none``.
    public var access = Access.all

    /// What can be done with the uploads that are there.
    public struct Access: OptionSet, Sendable, Hashable {
        public let rawValue: Int

        /// Takes the sum of what is offered as a number.
        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// Listing records and fetching files.
        public static let reading = Access(rawValue: 1)
        /// Deleting uploads.
        public static let deleting = Access(rawValue: 2)
        /// Forms are only received.
        public static let none: Access = []
        /// Everything.
        public static let all: Access = [.reading, .deleting]
    }

    /// The defaults.
    public init() {}

    private static func withSingleSlashes(_ path: String) -> String {
        let segments = path.split(separator: "/").joined(separator: "/")
        return "/" + segments + (path.hasSuffix("/") && !segments.isEmpty ? "/" : "")
    }
}

/// How uploads are kept that did not arrive in one piece, so that their senders can go on with them
/// (draft-ietf-httpbis-resumable-upload).
public struct ResumptionOptions: Sendable, Hashable {
    /// How long an upload may be resumed, and its answer be asked for again, counted from its beginning: a day unless
    /// set. Whatever came of it by then is removed.
    public var lifetime: Duration = .seconds(24 * 60 * 60)

    /// How many uploads may be unfinished at once: 1,000 unless set. A form that comes then is received without the
    /// offer to resume it, and where it needs the offer its sender is asked to come again. One client address can have
    /// the part of them that ``UploadOptions/clientShare`` says.
    ///
    /// An upload that has bytes is kept until its ``lifetime`` is over. One that has none, and that no request is at,
    /// is removed earlier where its place is needed, the least recently used first: one of the same address where that
    /// has its share, or else of any.
    public var maximumUnfinished = 1000

    /// How many bytes all unfinished uploads may have together: 16 GiB unless set, which is four of the largest forms.
    public var maximumUnfinishedBytes: Int64 = 16 << 30

    /// How many answers are kept for senders who missed them: 10,000 unless set. The oldest are forgotten first.
    public var maximumKeptAnswers = 10_000

    /// The defaults.
    public init() {}
}
