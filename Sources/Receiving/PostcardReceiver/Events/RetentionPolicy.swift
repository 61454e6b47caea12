import Logging
import PostcardFoundation
import PostcardServer

/// How long a receiver keeps uploads, and how many bytes of them. Beyond a limit, the oldest uploads are removed.
///
/// ```swift
/// var retention = RetentionPolicy()
/// retention.maximumAge = .seconds(30 * 24 * 60 * 60)
/// receiver.retention = retention
/// ```
///
/// Downloads of a removed upload still complete. `UnfinishedUploadOptions.lifetime` limits unfinished uploads.
public struct RetentionPolicy: Sendable, Hashable {
    /// The maximum age of uploads. Defaults to `nil`: no limit.
    ///
    /// In a directory, the age of an upload is the time for which receivers with this limit have run since its arrival.
    /// While a receiver runs, a clock that cannot be set measures this time, so a wrong machine clock does no harm. The
    /// time between two runs is read from the machine's clock, and counts at most a tenth of the maximum age per pause.
    /// Uploads already in the directory have the age 0 when the limit is first used.
    ///
    /// In a bucket, the age is the difference between the machine's clock and the time in the upload's identifier.
    /// Buckets refuse requests with a wrong clock. If the clock is set forward by more than a minute, the new time
    /// removes nothing for an hour. In the first hour after the start, time is counted from the newest upload, because
    /// the clock may be wrong.
    public var maximumAge: Duration?

    /// The maximum number of bytes of all uploads together, records and files. Defaults to `nil`: no limit.
    ///
    /// In a directory, each file, record and folder counts in blocks of 4 KiB, as on the disk: the smallest form counts
    /// 8 KiB. A client that may post can cause the removal of others' uploads, even before a webhook announces them.
    ///
    /// The newest upload is kept, even if it is larger than the limit. Older uploads are removed while new uploads
    /// arrive. If the uploads exceed the limit by a tenth, forms are refused with 503 and the code `store-over-limit`
    /// until the uploads are within the limit again. Addresses that have recently sent little may still send forms, up
    /// to another tenth. The uploads therefore never exceed the limit by more than a fifth and one form.
    ///
    /// If several receivers share a bucket, each lists all uploads in the bucket at intervals: once an hour, every ten
    /// minutes if the limit seems to be exceeded, and every half minute if it seems to be exceeded by a twentieth.
    /// Between two listings, a receiver counts only its own new uploads.
    public var maximumBytes: Int64?

    /// Makes a policy without limits.
    public init() {}

    /// The reason why an upload is removed.
    enum Reason: String, Sendable {
        case age
        case quota
    }
}

/// The clock that measures ages. It follows the machine's clock, except in the hour after that clock has jumped.
struct RetentionClock: Sendable {
    /// The machine's clock and the uptime when the clock was last trusted.
    private var certain: (wall: Date, uptime: Duration)
    /// The uptime at which the jump of the machine's clock was detected.
    private var jumped: Duration?

    /// How many seconds the machine's clock may jump and still be trusted. Ordinary corrections are smaller.
    private static let tolerance: TimeInterval = 60
    /// How long the machine's clock is distrusted after a jump.
    static let patience = Duration.seconds(3600)

    /// `known` is a time that is certainly in the past, such as the time of the newest upload. If the machine's clock
    /// differs from `known` by more than ``tolerance``, it counts as having jumped. `uptime` is the time since any
    /// fixed moment.
    init(since known: Date, uptime: Duration) {
        certain = (known, uptime)
    }

    /// Returns the current time, which is never later than the machine's clock.
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
    /// The ages of uploads in a directory, which are measured while receivers run.
    case measured(MeasuredAges)
    /// The ages of uploads in other stores, which follow from the clock and the uploads' identifiers.
    case dated(RetentionClock)
}

/// How long uploads have been in a directory. Only time that has certainly passed counts.
///
/// The times in identifiers are not used: the clock may have been wrong when an identifier was made, or be wrong now.
/// While receivers run, a clock that cannot be set measures the time. Between two runs, only the machine's clock shows
/// how much time has passed, so each pause counts at most a tenth of the maximum age.
struct MeasuredAges: Sendable, Codable {
    /// A moment and the uploads that existed at that moment.
    private struct Mark: Codable {
        /// An identifier that is greater than those of the existing uploads, and smaller than those of later uploads.
        let end: UploadID
        let time: Double
    }

    private enum CodingKeys: CodingKey {
        case marks, time, wall
    }

    /// The recorded moments, oldest first.
    private var marks: [Mark] = []
    /// The measured time, in seconds.
    private var time: Double = 0
    /// The machine's clock at the latest call of `look`.
    private var wall: Date
    /// The uptime at the latest call of `look`; `nil` before the first call of this run.
    private var uptime: Duration?
    /// The measured time at which a `Mark` was last due; `nil` if none was due yet.
    private var dueTime: Double?

    /// The precision of the ages, as a fraction of the maximum age.
    private static let precision = 0.001

    /// Makes ages for a directory without known uploads.
    init(wall: Date) {
        self.wall = wall
    }

    /// Records the uploads that exist now. The first call of a run must precede the first upload of the run. `newest`
    /// is the newest upload. `wall` is the time of the machine's clock. `uptime` is the time since any fixed moment of
    /// this run. `maximumAge` is in seconds. Returns whether the ages must be saved for the next run.
    mutating func look(at newest: UploadID?, wall: Date, uptime: Duration, maximumAge: Double) -> Bool {
        let end = newest.map { UploadID(earliestAfter: $0) }
        if let last = self.uptime {
            time += max((uptime - last) / .seconds(1), 0)
        } else {
            time += min(max(wall.timeIntervalSince(self.wall), 0), maximumAge / 10)
            // A new upload's identifier may be smaller than a removed upload's. Each mark is therefore lowered to the
            // end of the existing uploads, so that the new upload is not counted as one of them.
            marks = end.map { end in marks.map { Mark(end: min($0.end, end), time: $0.time) } } ?? []
        }
        self.wall = wall
        self.uptime = uptime
        if let dueTime, time - dueTime < maximumAge * Self.precision { return false }
        dueTime = time
        if let end, marks.last?.end != end { marks.append(Mark(end: end, time: time)) }
        // Among the marks that exceed the maximum age, only the latest is needed.
        if let index = marks.lastIndex(where: { time - $0.time >= maximumAge }) { marks.removeFirst(index) }
        return true
    }

    /// The identifier before which all uploads exceed the maximum age; `nil` if no upload exceeds it.
    func end(ofOlderThan maximumAge: Double) -> UploadID? { marks.last { time - $0.time >= maximumAge }?.end }
}

extension RetentionKeeper {
    /// The identifier before which all uploads exceed the maximum age; `nil` if it is unknown.
    func end(ofOlderThan maximum: Double, _ ages: inout UploadAges?) async -> UploadID? {
        let (wall, uptime) = now()
        let local = store as? LocalUploadStore
        do {
            // An identifier with an impossible time is ignored, because later uploads have smaller identifiers.
            let newest = try await store.identifiers(limit: 1, after: .end).first
            var known: UploadAges
            if let ages {
                known = ages
            } else if let local {
                let kept = try await local.keptValue(MeasuredAges.self, named: Self.agesName)
                known = .measured(kept ?? MeasuredAges(wall: wall))
            } else {
                // The clock may have been wrong since the machine started. This is harmless while there are no uploads.
                known = .dated(RetentionClock(since: newest?.time ?? wall, uptime: uptime))
            }
            defer { ages = known }
            switch known {
            case .dated(var clock):
                let limit = clock.time(wall: wall, uptime: uptime).addingTimeInterval(-maximum)
                known = .dated(clock)
                // Identifiers cannot contain a time before 1970.
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

    /// The name of the file with the ages, next to the records.
    private static let agesName = ".ages"

    private func keep(_ ages: MeasuredAges, in store: LocalUploadStore?) async {
        do {
            try await store?.keep(ages, named: Self.agesName)
        } catch {
            report(error, "Could not write down how old the uploads are", of: nil, .sweep)
        }
    }
}
