import Logging
import PostcardFoundation
import PostcardServer

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
