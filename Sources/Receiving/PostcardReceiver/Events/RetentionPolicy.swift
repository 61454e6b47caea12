import Logging
import PostcardFoundation
import PostcardServer

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

/// What is known of the ages of a store's uploads.
enum UploadAges: Sendable {
    /// Those in a directory.
    case measured(MeasuredAges)
    /// Those elsewhere: the clock says them, as their identifiers do.
    case dated(RetentionClock)
}

/// How long uploads have been in a directory, by time that has certainly passed.
///
/// Their identifiers do not say it: the clock may have been wrong when they were made, or be wrong now. What counts is the
/// time in which receivers ran, by a clock that cannot be set. The time between two runs is known by the machine's clock
/// alone, so at most a tenth of the maximum age counts of it.
struct MeasuredAges: Sendable, Codable {
    /// Uploads that were there at a time.
    private struct Mark: Codable {
        /// An identifier after all of theirs, and before those of all later uploads.
        let end: UploadID
        let time: Double
    }

    private enum CodingKeys: CodingKey {
        case marks, time, wall
    }

    /// Oldest first.
    private var marks: [Mark] = []
    /// How many seconds have passed.
    private var time: Double = 0
    /// What the machine's clock showed then.
    private var wall: Date
    /// The uptime then; `nil` before the first look of this run.
    private var uptime: Duration?
    /// When the last mark was due.
    private var dueTime: Double?

    /// Ages are known to this part of the maximum age.
    private static let precision = 0.001

    /// Makes ages that are not known yet.
    init(wall: Date) {
        self.wall = wall
    }

    /// Takes note of the uploads that are there now. The first look of a run comes before its first upload.
    ///
    /// - Parameters:
    ///   - newest: The newest upload.
    ///   - wall: What the machine's clock shows.
    ///   - uptime: The time since any fixed moment of this run.
    ///   - maximumAge: How old uploads may become, in seconds.
    /// - Returns: Whether the ages are to be kept for the next run.
    mutating func look(at newest: UploadID?, wall: Date, uptime: Duration, maximumAge: Double) -> Bool {
        let end = newest.map { UploadID(earliestAfter: $0) }
        if let last = self.uptime {
            time += max((uptime - last) / .seconds(1), 0)
        } else {
            time += min(max(wall.timeIntervalSince(self.wall), 0), maximumAge / 10)
            // The identifiers of this run are after those that are there, but perhaps not after those of removed uploads.
            marks = end.map { end in marks.map { Mark(end: min($0.end, end), time: $0.time) } } ?? []
        }
        self.wall = wall
        self.uptime = uptime
        if let dueTime, time - dueTime < maximumAge * Self.precision { return false }
        dueTime = time
        if let end, marks.last?.end != end { marks.append(Mark(end: end, time: time)) }
        // Of those that are too old, the last is enough.
        if let index = marks.lastIndex(where: { time - $0.time >= maximumAge }) { marks.removeFirst(index) }
        return true
    }

    /// The identifier before which all uploads are too old; `nil` if none is.
    func end(ofOlderThan maximumAge: Double) -> UploadID? { marks.last { time - $0.time >= maximumAge }?.end }
}

extension RetentionKeeper {
    /// The identifier before which all uploads are too old; `nil` if that is not known.
    func end(ofOlderThan maximum: Double, _ ages: inout UploadAges?) async -> UploadID? {
        let (wall, uptime) = now()
        let local = store as? LocalUploadStore
        do {
            // One of an impossible time is not the newest: later uploads have smaller ones.
            let newest = try await store.identifiers(limit: 1, after: .end).first
            var known: UploadAges
            if let ages {
                known = ages
            } else if let local {
                let kept = try await local.keptValue(MeasuredAges.self, named: Self.agesName)
                known = .measured(kept ?? MeasuredAges(wall: wall))
            } else {
                // The clock may be wrong since the machine was started. Without uploads it can do no harm.
                known = .dated(RetentionClock(since: newest?.time ?? wall, uptime: uptime))
            }
            defer { ages = known }
            switch known {
            case .dated(var clock):
                let limit = clock.time(wall: wall, uptime: uptime).addingTimeInterval(-maximum)
                known = .dated(clock)
                // No upload has an earlier time.
                return limit.timeIntervalSince1970 > 0
                    ? UploadID(earliestAt: Int64(limit.timeIntervalSince1970 * 1000)) : nil
            case .measured(var measured):
                let isDue = measured.look(at: newest, wall: wall, uptime: uptime, maximumAge: maximum)
                known = .measured(measured)
                if isDue { await keep(measured, in: local) }
                return measured.end(ofOlderThan: maximum)
            }
        } catch {
            report(error, "Could not list the uploads to remove old ones", of: nil, .read)
            return nil
        }
    }

    /// The name of the file with the ages, beside the records.
    private static let agesName = ".ages"

    private func keep(_ ages: MeasuredAges, in store: LocalUploadStore?) async {
        do {
            try await store?.keep(ages, named: Self.agesName)
        } catch {
            report(error, "Could not write down how old the uploads are", of: nil, .sweep)
        }
    }
}
