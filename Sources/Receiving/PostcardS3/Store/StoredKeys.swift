import NIOCore
import PostcardFoundation
import PostcardStore

/// The record of an idempotency key, as stored in the metadata fields of the key's object.
struct KeyEntry: Sendable {
    let key: String
    let generation: Int
    let id: UploadID
    /// The SHA-256 digest of the record's JSON.
    let digest: String
    let received: Date
    /// The ETag, without quotes, of the object that the file was copied from; `nil` if a client sent the file.
    let sourceTag: String?

    var object: String { ObjectName.key(key, generation: generation) }

    var metadata: [String: String] {
        var fields = ["id": id.text, "record-sha256": digest, "received": received.formatted(.iso8601)]
        fields["source-etag"] = sourceTag
        return fields
    }

    init(key: String, generation: Int, record: UploadRecord, sourceTag: String? = nil) {
        self.key = key
        self.sourceTag = sourceTag
        self.generation = generation
        id = record.id
        digest = record.digest
        received = record.received
    }

    init(key: String, generation: Int, _ head: ObjectHead) throws {
        self.key = key
        self.generation = generation
        guard let id = head.metadata["id"].flatMap({ UploadID($0) }), let digest = head.metadata["record-sha256"],
            let received = head.metadata["received"].flatMap({ StoreTime.date(of: $0) })
        else {
            throw UploadStoreError(
                .damaged, "The object \(ObjectName.key(key, generation: generation)) lost what was stored with it.")
        }
        self.id = id
        self.digest = digest
        self.received = received
        sourceTag = head.metadata["source-etag"]
    }
}

/// Stores records and idempotency keys as objects. <doc:HowUploadsAreStored> explains the order of the requests.
struct StoredKeys: Sendable {
    let objects: ObjectStore

    enum Current: Sendable {
        /// The idempotency key has no record. The next record must be stored in this generation.
        case free(generation: Int)
        case taken(KeyEntry)
    }

    /// The state of a record, according to its object.
    enum RecordState: Sendable {
        case missing
        case live
        case deleted
    }

    func state(of id: UploadID) async throws -> RecordState {
        guard let head = try await objects.head(ObjectName.record(id)) else { return .missing }
        return head.size > 0 ? .live : .deleted
    }

    /// Looks up the record of an idempotency key. If the record was committed but not listed, lists it.
    func current(_ key: String) async throws -> Current {
        let seen = objects.bucket.clock()
        // Most keys have at most one generation.
        guard let head = try await objects.head(ObjectName.key(key, generation: 0)) else { return .free(generation: 0) }
        if let entry = try await live(key, 0, head, seen) { return .taken(entry) }
        let generation = try await lastGeneration(of: key)
        guard generation > 0, let head = try await objects.head(ObjectName.key(key, generation: generation)),
            let entry = try await live(key, generation, head, seen)
        else { return .free(generation: generation + 1) }
        return .taken(entry)
    }

    private func lastGeneration(of key: String) async throws -> Int {
        var last = 0
        try await objects.listAll(ObjectName.folder(of: key)) { page in
            last = page.objects.last.flatMap { ObjectName.generation(ofKey: $0.key) } ?? last
        }
        return last
    }

    /// Returns the record of a key's generation; `nil` if the record was deleted. Lists the record if it is not listed.
    private func live(_ key: String, _ generation: Int, _ head: ObjectHead, _ seen: Date) async throws -> KeyEntry? {
        guard head.size > 0 else { return nil }
        let entry = try KeyEntry(key: key, generation: generation, head)
        switch try await state(of: entry.id) {
        case .live: return entry
        case .deleted: return nil
        case .missing:
            guard let (_, json) = try await objects.get(entry.object), json.readableBytes > 0 else { return nil }
            try await list(entry, json, seen: seen)
            return try await state(of: entry.id) == .deleted ? nil : entry
        }
    }

    /// Creates the object that lists a committed record and contains its JSON. `seen` is a time before the key's object
    /// was read, and becomes the time of the signature. A delayed request cannot bring back a record that was deleted
    /// meanwhile: an empty object blocks the name until the signature has expired.
    func list(_ entry: KeyEntry, _ json: ByteBuffer, seen: Date) async throws {
        _ = try await objects.create(
            ObjectName.record(entry.id), json,
            metadata: ["key": entry.key, "generation": String(entry.generation)], signed: seen)
    }

    /// Replaces a record with an empty object, and frees its idempotency key. Returns whether the record existed.
    func delete(_ id: UploadID) async throws -> Bool {
        let name = ObjectName.record(id)
        guard let head = try await objects.head(name), head.size > 0 else { return false }
        let metadata = head.metadata.filter { ["key", "generation"].contains($0.key) }
        // A store may drop one of two simultaneous writes, and respond that both succeeded.
        for _ in 0..<5 {
            try await objects.put(name, ByteBuffer(), metadata: metadata)
            if try await objects.head(name)?.size == 0 { break }
        }
        try await freeKey(metadata)
        return true
    }

    /// Replaces the object of a deleted record's key with an empty one. It stays, so that its name is never used again:
    /// a process that resumes after a long stop must not commit under it as if the key were new.
    func freeKey(_ metadata: [String: String]) async throws {
        guard let key = metadata["key"], let generation = metadata["generation"].flatMap({ Int($0) }) else { return }
        let name = ObjectName.key(key, generation: generation)
        guard try await objects.head(name)?.size != 0 else { return }
        try await objects.put(name, ByteBuffer())
    }
}
