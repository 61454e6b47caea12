import Logging
import NIOCore
import PostcardFoundation
public import PostcardStore

extension S3UploadStore {
    public var dependency: String { "The object store" }

    public var sweepInterval: Duration { .seconds(3600) }

    /// Two seconds, each with one request to the object store.
    public var followingInterval: Duration? { .seconds(2) }

    /// Checks that an upload could begin, by writing a small object within five seconds.
    ///
    /// - Throws: `UploadStoreError` if it could not.
    public func checkReadiness() async throws {
        try await readiness.check { [objects] in
            try await storing {
                try await objects.put(ObjectName.probes + "ready", ByteBuffer(string: "ready"), within: .seconds(5))
            }
        }
    }

    /// The records among the last thousand that were stored or deleted, from a single request.
    public func newestRecords() async throws -> NewestRecords {
        let page = try await storing { try await objects.list(ObjectName.records, within: .seconds(10)) }
        let oldest = page.isTruncated ? page.objects.last.flatMap { ObjectName.id(ofRecord: $0.key) } : nil
        return NewestRecords(identifiers: Self.live(page), oldest: oldest)
    }
}

extension S3UploadStore {
    /// The sizes of all uploads, from listings of a thousand objects at a time.
    public func sizes() async throws -> [UploadID: Int64]? {
        try await storing {
            var sizes: [UploadID: Int64] = [:]
            var uploads: [Substring: UploadID] = [:]
            // Records first: all files of a record are there before it is.
            try await objects.listAll(ObjectName.records) { page in
                for object in page.objects where object.size > 0 {
                    guard let id = ObjectName.id(ofRecord: object.key) else { continue }
                    sizes[id] = object.size
                    uploads[id.randomText] = id
                }
            }
            try await objects.listAll(ObjectName.files) { page in
                for object in page.objects {
                    guard let id = ObjectName.randomText(ofFile: object.key).flatMap({ uploads[$0] }) else { continue }
                    sizes[id, default: 0] += object.size
                }
            }
            return sizes
        }
    }
}

/// Whether the store works. An answer is good for a second, because anyone may ask.
actor Readiness {
    private var last: (asked: ContinuousClock.Instant, answer: Task<Void, any Error>)?

    func check(_ ask: @escaping @Sendable () async throws -> Void) async throws {
        if let last, last.asked.duration(to: .now) < .seconds(1) { return try await last.answer.value }
        let answer = Task { try await ask() }
        last = (.now, answer)
        try await answer.value
    }
}

/// What the sweep waits for, in seconds by the clock of the object store alone.
struct SweepTimes: Sendable {
    /// How old a file is that no record names before it is removed. Longer than an upload may take.
    var orphan: TimeInterval = 24 * 3600
    /// How long the files of a deleted record can still be read by those that have opened them.
    var openFiles: TimeInterval = 3600
    /// How long the mark of a deleted record stays. Longer than the store accepts an old signature.
    var mark: TimeInterval = 24 * 3600
    /// How long a receiver may take between the commit of a record and its listing before another one lists it.
    var listing: TimeInterval = 600
    /// How long a file that a client has posted may wait for the notification of it. Longer than stores deliver events.
    var arriving: TimeInterval = 7 * 24 * 3600
    /// How long the objects of an unfinished upload stay after it has expired by the clock of a receiver.
    var expired: TimeInterval = 3600
    /// How far back commits are looked at that are not listed.
    var commits: TimeInterval = 48 * 3600
}

extension S3UploadStore {
    /// Removes what interrupted uploads and deletions left behind, and lists records that were committed but are not
    /// listed. Call it from time to time, such as once an hour; several receivers may do so at once.
    ///
    /// - Throws: `UploadStoreError` if the object store fails. The next sweep does what is left.
    public func sweep() async throws { try await sweep(SweepTimes()) }

    func sweep(_ times: SweepTimes) async throws {
        try await storing {
            // Files that were old before the records were listed: each of them that has a record is found there, because
            // an upload that is so old is committed no more.
            let start = try await objects.list(ObjectName.records, limit: 1).time
            let named = try await sweepRecords(times)
            try await sweepFiles(writtenBefore: start - times.orphan, but: named)
            try await sweepParts(ObjectName.files, times)
            try await sweepUnfinished(times)
            try await sweepParts(ObjectName.unfinished, times)
            try await sweepArriving(times)
            try await listCommitted(times)
            try await sweepProbes(times)
        }
    }

    /// The uploads that records name. Hashes, because there may be millions of records: of two uploads with the same hash
    /// both are kept.
    private struct NamedUploads {
        private var hashes: Set<Int> = []

        mutating func insert(_ random: Substring) { hashes.insert(random.hashValue) }
        func contains(_ random: Substring) -> Bool { hashes.contains(random.hashValue) }
    }

    /// Removes the files of uploads that no record names, if all of them are old, and what is left of the arrival of those
    /// that records name. The files of an upload follow each other in a listing.
    private func sweepFiles(writtenBefore limit: Date, but named: NamedUploads) async throws {
        var files: [ListedObject] = []
        func removeOld() async throws {
            guard let random = files.first.flatMap({ ObjectName.randomText(ofFile: $0.key) }) else { return }
            if named.contains(random) {
                // Their bytes are in the file. The request that removes them may have failed, or have been overtaken by a
                // repetition of the one that stored them.
                for file in files where ObjectName.isAside(file.key) && file.modified < limit {
                    try await objects.delete(file.key)
                }
            } else if files.allSatisfy({ $0.modified < limit }) {
                try await removeOrphans(files.map(\.key), of: random)
            }
        }
        try await objects.listAll(ObjectName.files) { page in
            for object in page.objects {
                let random = ObjectName.randomText(ofFile: object.key)
                if let last = files.last, ObjectName.randomText(ofFile: last.key) != random {
                    try await removeOld()
                    files = []
                }
                files.append(object)
            }
        }
        try await removeOld()
    }

    /// Finishes deletions.
    ///
    /// - Returns: The uploads of all records.
    private func sweepRecords(_ times: SweepTimes) async throws -> NamedUploads {
        var named = NamedUploads()
        try await objects.listAll(ObjectName.records) { page in
            for object in page.objects {
                guard let id = ObjectName.id(ofRecord: object.key) else { continue }
                named.insert(id.randomText)
                guard object.size == 0 else { continue }
                let age = page.time.timeIntervalSince(object.modified)
                // First the key, because the record's text is in its object too.
                try await keys.freeKey(objects.head(object.key)?.metadata ?? [:])
                guard age > times.openFiles else { continue }
                try await removeFiles(of: id)
                // Last, because from then on nothing shows that there was a record.
                if age > times.mark { try await objects.delete(object.key) }
            }
        }
        return named
    }

    private func removeFiles(of id: UploadID) async throws {
        try await objects.listAll(ObjectName.folder(of: id)) { page in
            for object in page.objects { try await objects.delete(object.key) }
        }
    }

    /// Removes files that no listed record names, unless a committed one does that is not listed.
    private func removeOrphans(_ files: [String], of random: Substring) async throws {
        if let file = files.first, let key = try await objects.head(file)?.metadata["key"],
            case .taken(let entry) = try await keys.current(key), entry.id.randomText == random
        {
            return
        }
        for file in files { try await objects.delete(file) }
        logger.debug("Removed the files of an upload without a record", metadata: ["files": "\(files.count)"])
    }

    private func sweepParts(_ prefix: String, _ times: SweepTimes) async throws {
        let (parts, now) = try await objects.openParts(prefix)
        for part in parts where now.timeIntervalSince(part.begun) > times.orphan {
            try await objects.abortParts(of: part.key, part.upload)
        }
    }

    /// What a listing shows of an unfinished upload.
    private struct UnfinishedSummary {
        private(set) var parts: Set<Substring> = []
        private(set) var newest = Date.distantPast

        mutating func add(_ part: Substring, _ modified: Date) {
            parts.insert(part)
            newest = max(newest, modified)
        }
    }

    /// Removes expired uploads, and what is left of those that are finished or discarded.
    private func sweepUnfinished(_ times: SweepTimes) async throws {
        var uploads: [Substring: UnfinishedSummary] = [:]
        let now = try await objects.listAll(ObjectName.unfinished) { page in
            for object in page.objects {
                guard let (id, part) = ObjectName.unfinished(object.key) else { continue }
                uploads[id, default: UnfinishedSummary()].add(part, object.modified)
            }
        }
        for (id, summary) in uploads {
            let upload = UnfinishedObjects(objects: objects, id: String(id))
            guard summary.parts.contains("form") else {
                // Discarded, and no request that began before is still accepted; or from one that came much later.
                if now.timeIntervalSince(summary.newest) > times.orphan { try await objects.deleteAll(upload.folder) }
                continue
            }
            do {
                guard let facts = try await upload.facts() else { continue }
                if now.timeIntervalSince(facts.expires) > times.expired {
                    try await upload.discard()
                } else if summary.parts.contains("end"), !summary.parts.isDisjoint(with: ["chunks", "held"]) {
                    try await upload.removeBytes()
                }
            } catch let error as UploadStoreError where error.code == .damaged {
                logger.error("Could not read an unfinished upload", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Lists records whose receiver was killed between commit and listing.
    private func listCommitted(_ times: SweepTimes) async throws {
        try await objects.listAll(ObjectName.keys) { page in
            for object in page.objects where object.size > 0 {
                let age = page.time.timeIntervalSince(object.modified)
                guard age >= times.listing, age <= times.commits,
                    let key = object.key.split(separator: "/").dropFirst().first
                else { continue }
                _ = try await keys.current(String(key))
            }
        }
    }

    /// Removes files that clients have posted and that never became records.
    private func sweepArriving(_ times: SweepTimes) async throws {
        try await objects.listAll(ObjectName.arriving) { page in
            for object in page.objects where page.time.timeIntervalSince(object.modified) > times.arriving {
                try await objects.delete(object.key)
            }
        }
    }

    private func sweepProbes(_ times: SweepTimes) async throws {
        try await objects.listAll(ObjectName.probes) { page in
            for object in page.objects where page.time.timeIntervalSince(object.modified) > times.openFiles {
                try await objects.delete(object.key)
            }
        }
    }
}
