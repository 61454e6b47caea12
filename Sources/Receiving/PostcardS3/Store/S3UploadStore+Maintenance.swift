import Logging
import NIOCore
import PostcardFoundation
public import PostcardStore

extension S3UploadStore {
    public var dependency: String { "The object store" }

    public var sweepInterval: Duration { .seconds(3600) }

    /// Two seconds. Each look at the newest records costs one request.
    public var followingInterval: Duration? { .seconds(2) }

    /// Checks that an upload could begin, by writing a small object within five seconds.
    ///
    /// - Throws: `UploadStoreError` if the object could not be written.
    public func checkReadiness() async throws {
        try await readiness.check { [objects] in
            try await storing {
                try await objects.put(ObjectName.probes + "ready", ByteBuffer(string: "ready"), within: .seconds(5))
            }
        }
    }

    /// The stored records among the last thousand records that were stored or deleted, from a single request.
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
            // Records are listed before files, because all files of a record are stored before the record.
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

/// Checks whether the store works. A result is reused for a second, because any client may ask.
actor Readiness {
    private var last: (asked: ContinuousClock.Instant, answer: Task<Void, any Error>)?

    func check(_ ask: @escaping @Sendable () async throws -> Void) async throws {
        if let last, last.asked.duration(to: .now) < .seconds(1) { return try await last.answer.value }
        let answer = Task { try await ask() }
        last = (.now, answer)
        try await answer.value
    }
}

/// The waiting times of the sweep, in seconds of the object store's clock.
struct SweepTimes: Sendable {
    /// The age at which a file without a record is removed. It exceeds the maximum time of an upload.
    var orphan: TimeInterval = 24 * 3600
    /// How long the files of a deleted record stay readable for clients that have opened them.
    var openFiles: TimeInterval = 3600
    /// How long the empty object that marks a deleted record stays: longer than the signature of a request is valid.
    var mark: TimeInterval = 24 * 3600
    /// How long a receiver has to list a record after its commit. After this time, the sweep lists the record.
    var listing: TimeInterval = 600
    /// How long a file from a client may wait for its notification: longer than stores deliver events.
    var arriving: TimeInterval = 7 * 24 * 3600
    /// How long the objects of an unfinished upload stay after a receiver's clock shows that the upload has expired.
    var expired: TimeInterval = 3600
    /// The maximum age of the commits in which the sweep looks for records that are not listed.
    var commits: TimeInterval = 48 * 3600
}

extension S3UploadStore {
    /// Removes data of interrupted uploads and deletions, and lists records that were committed but not listed. Call
    /// this function regularly, such as once an hour. Several receivers may call it at the same time.
    ///
    /// - Throws: `UploadStoreError` if the object store fails. The next sweep continues the work.
    public func sweep() async throws { try await sweep(SweepTimes()) }

    func sweep(_ times: SweepTimes) async throws {
        try await storing {
            // Only files that were old before the records were listed are removed. If such a file has a record, the
            // listing contains it, because an upload of that age can no longer be committed.
            let start = try await objects.list(ObjectName.records, limit: 1).time
            let named = try await sweepRecords(times)
            try await sweepFiles(writtenBefore: start - times.orphan, but: named)
            try await sweepParts(ObjectName.files, times)
            try await sweepUnfinished(times)
            try await sweepParts(ObjectName.unfinished, times)
            // These files from clients never became records.
            try await sweep(ObjectName.arriving, olderThan: times.arriving)
            try await listCommitted(times)
            try await sweep(ObjectName.probes, olderThan: times.openFiles)
        }
    }

    /// The uploads that have records, as hashes to save memory. Without harm, an upload with an equal hash is kept too.
    private struct NamedUploads {
        private var hashes: Set<Int> = []

        mutating func insert(_ random: Substring) { hashes.insert(random.hashValue) }
        func contains(_ random: Substring) -> Bool { hashes.contains(random.hashValue) }
    }

    /// Removes the files of uploads without a record, if all files of an upload are old. For uploads with a record,
    /// removes objects that were only needed while the files arrived. The files of an upload are adjacent in a listing.
    private func sweepFiles(writtenBefore limit: Date, but named: NamedUploads) async throws {
        var files: [ListedObject] = []
        func removeOld() async throws {
            guard let random = files.first.flatMap({ ObjectName.randomText(ofFile: $0.key) }) else { return }
            if named.contains(random) {
                // Bytes that were set aside while the file arrived are in the file now. Removing their objects may have
                // failed, or a repeated request may have stored them again.
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

    /// Finishes interrupted deletions. Returns the uploads of all records.
    private func sweepRecords(_ times: SweepTimes) async throws -> NamedUploads {
        var named = NamedUploads()
        try await objects.listAll(ObjectName.records) { page in
            for object in page.objects {
                guard let id = ObjectName.id(ofRecord: object.key) else { continue }
                named.insert(id.randomText)
                guard object.size == 0 else { continue }
                let age = page.time.timeIntervalSince(object.modified)
                // The key is freed first, because its object also contains the text of the record.
                try await keys.freeKey(objects.head(object.key)?.metadata ?? [:])
                guard age > times.openFiles else { continue }
                try await removeFiles(of: id)
                // The empty object is removed last, because nothing else shows that there was a record.
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

    /// Removes the files of an upload whose record is not listed. Keeps the files if the upload was committed.
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

    private struct UnfinishedSummary {
        private(set) var parts: Set<Substring> = []
        private(set) var newest = Date.distantPast

        mutating func add(_ part: Substring, _ modified: Date) {
            parts.insert(part)
            newest = max(newest, modified)
        }
    }

    /// Removes expired uploads, and the remaining objects of finished or discarded uploads.
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
                // The upload was discarded, or a very late request stored this object. Older requests are now refused.
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

    /// Adds committed records to the listing, if their receiver was killed before it added them.
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

    private func sweep(_ prefix: String, olderThan age: TimeInterval) async throws {
        try await objects.listAll(prefix) { page in
            for object in page.objects where page.time.timeIntervalSince(object.modified) > age {
                try await objects.delete(object.key)
            }
        }
    }
}
