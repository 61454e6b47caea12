import PostcardFoundation

/// How long a receiver keeps uploads, and how many bytes of them. What exceeds it is removed, oldest first.
///
/// ```swift
/// var retention = RetentionPolicy()
/// retention.maximumAge = .seconds(30 * 24 * 60 * 60)
/// receiver.retention = retention
/// ```
///
/// An upload that a client is downloading is removed too: a response that has begun is sent to its end. Unfinished
/// uploads are not counted; see `UnfinishedUploadOptions.lifetime`.
public struct RetentionPolicy: Sendable, Hashable {
    /// How old uploads may become. Defaults to `nil`: no limit.
    ///
    /// In a directory, the age is the time for which a receiver with this limit has had the upload, measured while it
    /// runs, by a clock that cannot be set. So an upload that was received while the machine's clock was wrong is kept as
    /// long as others. Of the time between two runs at most a tenth of the maximum age counts, because only the
    /// machine's clock says how long that was. What is in the directory when it first has this limit counts from then
    /// on.
    ///
    /// In a bucket, which refuses requests of a wrong clock, the age is measured from the time in the upload's identifier
    /// by the clock of this machine. If that is set forward by more than a minute, nothing is removed by the new time for
    /// an hour. In the hour after the start the time is at most that of the newest upload and what has passed since.
    public var maximumAge: Duration?

    /// How many bytes all uploads may have together, records and files. Defaults to `nil`: no limit.
    ///
    /// In a directory, each file, record and folder counts in blocks of 4 KiB, as on the disk: the smallest form counts
    /// 8 KiB. A client that may post can push out the uploads of others, even before a webhook has announced them.
    ///
    /// The newest upload stays, even if it is larger. Older uploads are removed while others arrive. If they arrive
    /// faster, so that the uploads exceed the limit by a tenth, forms are refused with 503 and the code
    /// `store-over-limit` until it is kept again, except those of addresses that have sent little since. So the limit is
    /// never exceeded by more than a fifth and one form.
    ///
    /// Each of several receivers that share a bucket compares the limit with all that is in the bucket once an hour,
    /// every ten minutes if it seems to be exceeded, and every half minute if by a twentieth. It knows the uploads of the
    /// others only from then.
    public var maximumBytes: Int64?

    /// Makes a policy by which everything is kept.
    public init() {}

    /// Why an upload is removed.
    enum Reason: String, Sendable {
        case age
        case quota
    }
}

/// The time by which ages are measured. It follows the clock of the machine, except for an hour after a jump.
struct RetentionClock: Sendable {
    /// When the time was last certain.
    private var certain: (wall: Date, uptime: Duration)
    /// When the clock was first seen to differ from the time that has passed.
    private var jumped: Duration?

    /// How far the clock may differ from the time that has passed, as it does when it is corrected.
    private static let tolerance: TimeInterval = 60
    /// How long a clock is not believed after a jump.
    static let patience = Duration.seconds(3600)

    /// - Parameters:
    ///   - known: A time that has certainly come, such as that of the newest upload. If the clock differs, it counts as
    ///     if it had jumped.
    ///   - uptime: The time since any fixed moment.
    init(since known: Date, uptime: Duration) {
        certain = (known, uptime)
    }

    /// The time, which is never later than the clock's.
    mutating func time(wall: Date, uptime: Duration) -> Date {
        let expected = certain.wall.addingTimeInterval((uptime - certain.uptime) / .seconds(1))
        guard abs(wall.timeIntervalSince(expected)) > Self.tolerance else { return accept(wall, uptime) }
        let since = jumped ?? uptime
        guard uptime - since < Self.patience else { return accept(wall, uptime) }
        jumped = since
        return min(wall, expected)
    }

    private mutating func accept(_ wall: Date, _ uptime: Duration) -> Date {
        certain = (wall, uptime)
        jumped = nil
        return wall
    }
}
