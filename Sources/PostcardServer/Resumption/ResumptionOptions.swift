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
