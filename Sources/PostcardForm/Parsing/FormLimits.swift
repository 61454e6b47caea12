/// How much of everything a receiver takes. Each limit has a problem code of its own.
///
/// The parser holds at most one part's header and one delimiter in memory, whatever the limits for content are;
/// those protect whoever keeps what it hands on.
public struct FormLimits: Sendable, Hashable {
    /// The bytes of the whole body: 4 GiB unless set, beyond which a form in one request seldom arrives.
    public var maximumBodyBytes: Int64 = 4 << 30

    /// The parts of one form: 1,000 unless set, as many as common receivers take.
    public var maximumParts = 1000

    /// The bytes of one file; as many as the body may have unless set.
    public var maximumFileBytes: Int64 = 4 << 30

    /// The bytes of one text field: 1 MiB unless set, because fields are mostly held in memory.
    public var maximumFieldBytes: Int64 = 1 << 20

    /// The bytes of one part's header, its delimiter's padding included: 16 KiB unless set.
    public var maximumHeaderBytes = 16 << 10

    /// The fields of one part's header: 64 unless set; browsers send two.
    public var maximumHeaderFields = 64

    /// The bytes before the first delimiter: 8 KiB unless set; no client in the field sends any.
    public var maximumPreambleBytes: Int64 = 8 << 10

    /// The bytes behind the close delimiter, its line break left out: 8 KiB unless set; clients in the field send none.
    public var maximumEpilogueBytes: Int64 = 8 << 10

    /// The defaults.
    public init() {}

    /// For forms that are held in memory whole: 16 MiB for the body, and for each file.
    public static let inMemory: FormLimits = {
        var limits = FormLimits()
        limits.maximumBodyBytes = 16 << 20
        limits.maximumFileBytes = 16 << 20
        return limits
    }()
}
