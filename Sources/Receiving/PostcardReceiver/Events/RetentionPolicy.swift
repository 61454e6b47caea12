import Logging
import PostcardFoundation
import PostcardServer

/// How long a receiver keeps uploads, and how many bytes of them. Uploads beyond these limits are removed, oldest
/// first.
///
/// ```swift
/// var retention = RetentionPolicy()
/// retention.maximumAge = .seconds(30 * 24 * 60 * 60)
/// receiver.retention = retention
/// ```
///
/// An upload may be removed while a client downloads it: the response that has begun is still sent to its end.
/// Unfinished uploads are not counted; see `UnfinishedUploadOptions.lifetime`.
public struct RetentionPolicy: Sendable, Hashable {
    /// The maximum age of uploads. Defaults to `nil`: no limit.
    ///
    /// In a directory, the age is the time for which receivers with this limit have run since the upload arrived, by a
    /// clock that cannot be set. An upload that was received while the machine's clock was wrong is therefore kept as
    /// long as others. The time between two runs is only known from the machine's clock, so at most a tenth of the
    /// maximum age counts for it. The ages of uploads that are already in the directory begin when the limit is first
    /// used.
    ///
    /// In a bucket, which refuses requests with a wrong clock, the age is the difference between the machine's clock
    /// and the time in the upload's identifier. If the clock is set forward by more than a minute, the new time removes
    /// nothing for an hour. In the hour after the start, the time is at most the time of the newest upload plus the
    /// time that has passed since the start.
    public var maximumAge: Duration?

    /// The maximum number of bytes of all uploads together, records and files. Defaults to `nil`: no limit.
    ///
    /// In a directory, each file, record and folder counts in blocks of 4 KiB, as on the disk: the smallest form counts
    /// 8 KiB. A client that may post can push out the uploads of others, even before a webhook has announced them.
    ///
    /// The newest upload is kept, even if it is larger than the limit. Older uploads are removed while others arrive.
    /// If uploads arrive faster than they are removed and exceed the limit by a tenth, forms are refused with 503 and
    /// the code `store-over-limit` until the uploads are within the limit again. Forms from addresses that have
    /// recently sent little are still accepted. The uploads therefore never exceed the limit by more than a fifth and
    /// one form.
    ///
    /// Several receivers may share a bucket. Each compares the limit with all uploads in the bucket once an hour, every
    /// ten minutes if the limit seems to be exceeded, and every half minute if it seems to be exceeded by a twentieth.
    /// Between these times, a receiver does not know about the uploads of the others.
    public var maximumBytes: Int64?

    /// Makes a policy that keeps everything.
    public init() {}

    /// Why an upload is removed.
    enum Reason: String, Sendable {
        case age
        case quota
    }
}

/// The clock by which ages are measured. It follows the clock of the machine, except for an hour after a jump.
struct RetentionClock: Sendable {
    /// The time of the clock and the uptime when the time was last certain.
    private var certain: (wall: Date, uptime: Duration)
    /// The uptime at which the clock was first seen to differ from the time that has passed.
    private var jumped: Duration?

    /// The maximum difference between the clock and the time that has passed. Corrections of a clock are smaller.
    private static let tolerance: TimeInterval = 60
    /// How long the clock is not trusted after a jump.
    static let patience = Duration.seconds(3600)

    /// - Parameters:
    ///   - known: A time that is certainly in the past, such as the time of the newest upload. A clock that differs
    ///     from it counts as a clock that has jumped.
    ///   - uptime: The time since any fixed moment.
    init(since known: Date, uptime: Duration) {
        certain = (known, uptime)
    }

    /// The current time, which is never later than the machine's clock.
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

/// The known ages of a store's uploads.
enum UploadAges: Sendable {
    /// The ages of uploads in a directory, which are measured.
    case measured(MeasuredAges)
    /// The ages of uploads in other stores, which follow from the clock and the identifiers.
    case dated(RetentionClock)
}

/// How long uploads have been in a directory. Only time that has certainly passed counts.
///
/// Identifiers do not show the age: the clock may have been wrong when they were made, or be wrong now. The time during
/// which receivers ran counts, by a clock that cannot be set. The time between two runs is only known from the
/// machine's clock, so at most a tenth of the maximum age counts for it.
struct MeasuredAges: Sendable, Codable {
    /// A mark for all uploads that existed at a time.
    private struct Mark: Codable {
        /// An identifier after those of all these uploads, and before those of all later uploads.
        let end: UploadID
        let time: Double
    }

    private enum CodingKeys: CodingKey {
        case marks, time, wall
    }

    /// The marks, oldest first.
    private var marks: [Mark] = []
    /// The number of seconds that have passed.
    private var time: Double = 0
    /// The time of the machine's clock at the last look.
    private var wall: Date
    /// The uptime at the last look; `nil` before the first look of this run.
    private var uptime: Duration?
    /// The time at which the last mark was due.
    private var dueTime: Double?

    /// The precision of the ages, as a fraction of the maximum age.
    private static let precision = 0.001

    /// Makes ages without any known uploads.
    init(wall: Date) {
        self.wall = wall
    }

    /// Notes the uploads that exist now. The first look of a run must come before its first upload.
    ///
    /// - Parameters:
    ///   - newest: The newest upload.
    ///   - wall: The time of the machine's clock.
    ///   - uptime: The time since any fixed moment of this run.
    ///   - maximumAge: The maximum age of uploads, in seconds.
    /// - Returns: Whether the ages have to be saved for the next run.
    mutating func look(at newest: UploadID?, wall: Date, uptime: Duration, maximumAge: Double) -> Bool {
        let end = newest.map { UploadID(earliestAfter: $0) }
        if let last = self.uptime {
            time += max((uptime - last) / .seconds(1), 0)
        } else {
            time += min(max(wall.timeIntervalSince(self.wall), 0), maximumAge / 10)
            // The identifiers of this run come after those of existing uploads, but perhaps not after those of removed
            // uploads.
            marks = end.map { end in marks.map { Mark(end: min($0.end, end), time: $0.time) } } ?? []
        }
        self.wall = wall
        self.uptime = uptime
        if let dueTime, time - dueTime < maximumAge * Self.precision { return false }
        dueTime = time
        if let end, marks.last?.end != end { marks.append(Mark(end: end, time: time)) }
        // Of the marks that are too old, the last is enough.
        if let index = marks.lastIndex(where: { time - $0.time >= maximumAge }) { marks.removeFirst(index) }
        return true
    }

    /// The identifier before which all uploads are too old; `nil` if no upload is too old.
    func end(ofOlderThan maximumAge: Double) -> UploadID? { marks.last { time - $0.time >= maximumAge }?.end }
}

extension RetentionKeeper {
    /// The identifier before which all uploads are too old; `nil` if that is unknown.
    func end(ofOlderThan maximum: Double, _ ages: inout UploadAges?) async -> UploadID? {
        let (wall, uptime) = now()
        let local = store as? LocalUploadStore
        do {
            // An identifier with an impossible time is not the newest: later uploads have smaller identifiers.
            let newest = try await store.identifiers(limit: 1, after: .end).first
            var known: UploadAges
            if let ages {
                known = ages
            } else if let local {
                let kept = try await local.keptValue(MeasuredAges.self, named: Self.agesName)
                known = .measured(kept ?? MeasuredAges(wall: wall))
            } else {
                // The clock may have been wrong since the machine started. Without uploads it can do no harm.
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
