import NIOCore
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
