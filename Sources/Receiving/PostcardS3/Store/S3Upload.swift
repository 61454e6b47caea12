import Crypto
public import NIOCore
import PostcardForm
import PostcardFoundation
public import PostcardStore

/// An upload that an ``S3UploadStore`` is storing.
///
/// Up to 8 MiB are gathered, and sent while the next bytes are gathered. Smaller files are stored in one request.
public final class S3Upload: PendingUpload {
    private let store: S3UploadStore
    private let key: UploadKey?
    /// Whether the upload is stored. If its key already has a record, the upload is only compared with that record.
    let isKept: Bool
    public var isRepetition: Bool { !isKept }
    /// The generation of the upload's key: the number of deleted earlier records under the key.
    private let generation: Int
    /// An identifier with the time at which the upload began.
    private let draft: UploadID
    private let begun: ContinuousClock.Instant
    private var files: [UploadRecord.FileHeader] = []
    private var contents: [(size: Int64, sha256: String)] = []
    private var writer: ObjectWriter?
    /// The ETag of the object from which the file was copied.
    private var sourceTag: String?
    /// The fields and files in the order of the form, known at the commit.
    private var parts: [UploadRecord.Part] = []
    private var commitState = CommitState.open

    private enum CommitState {
        case open
        /// The record was made, or certainly does not exist.
        case settled
        /// A record with the files may exist.
        case unknown
    }

    init(_ store: S3UploadStore, key: UploadKey?, generation: Int?) {
        self.store = store
        self.key = key
        self.generation = generation ?? 0
        isKept = generation != nil
        begun = store.objects.surroundings.now()
        var random = store.objects.surroundings.generator
        draft = UploadID(milliseconds: 0, using: &random)
    }

    public func beginFile(_ file: UploadRecord.FileHeader) async throws {
        let index = files.count
        files.append(file)
        writer = ObjectWriter(
            isKept ? store.objects : nil, ObjectName.file(index, of: draft),
            metadata: key.map { ["key": $0.digest] } ?? [:], store.budget)
    }

    public func write(_ bytes: ByteBuffer) async throws {
        try await storing { try await writer?.write(bytes) }
    }

    public func endFile() async throws {
        guard let writer else { return }
        contents.append(try await storing { try await writer.finish() })
        self.writer = nil
    }

    /// Adds a file by copying an object within the store.
    ///
    /// The digest is that of the copy, because others may write to the original, and not every store compares its ETag.
    func copyFile(from source: String, _ head: ObjectHead, name: String, filename: String) async throws {
        let contentType = head.contentType ?? MediaType.octetStream.value
        var reading = ObjectReading()
        // An empty file has no object.
        if head.size > 0 {
            let copy = ObjectName.file(files.count, of: draft)
            do {
                try await storing {
                    try await store.objects.copy(
                        source, to: copy, ifMatching: head.etag, metadata: key.map { ["key": $0.digest] } ?? [:])
                    guard let copied = try await store.objects.head(copy), copied.size == head.size else {
                        throw S3Error.changed(store.objects.address(of: source))
                    }
                    try await reading.read(copy, copied, from: store.objects)
                }
            } catch {
                // The copy may be large, so it is removed without waiting a day for the sweep.
                await remove([copy])
                throw error
            }
        }
        let detected = MediaType.forFirstBytes(reading.firstBytes)
        let isContradicted = detected.flatMap { found in (try? MediaType(contentType))?.isContradicted(by: found) }
        files.append(
            UploadRecord.FileHeader(
                name: name, filename: filename, contentType: contentType,
                detectedType: isContradicted == true ? detected?.value : nil))
        contents.append((head.size, reading.sha256))
        sourceTag = head.etag?.unquoted
    }

    public func finishedFiles() async throws -> [FinishedFile] {
        guard isKept else { return [] }
        return zip(files, contents).enumerated().map { index, file in
            FinishedFile(
                name: file.0.name, filename: file.0.filename, contentType: file.0.contentType, sha256: file.1.sha256,
                content: store.file(index, of: draft, size: file.1.size), path: nil)
        }
    }

    public func commit(
        fields: [UploadRecord.Field], parts: [UploadRecord.Part]
    ) async throws -> CommittedUpload {
        self.parts = parts
        // After this time, the sweep may remove the files. A delayed request fails, because its signature has expired.
        guard begun.duration(to: store.objects.surroundings.now()) < S3UploadStore.maximumUploadTime else {
            throw UploadStoreError(.unavailable, "The upload took too long.", advice: "Send it again.")
        }
        let signed = store.objects.bucket.clock()
        let committed = try await storing {
            if let key { return try await commit(fields, under: key, signed) }
            let record = newRecord(fields)
            // Even a refusal does not prove that there is no record, because an earlier try may have made it.
            commitState = .unknown
            // If the object exists, an earlier try of this request made it: no other upload uses its name.
            _ = try await store.objects.create(
                ObjectName.record(record.id), record.jsonBuffer(), signed: signed)
            return CommittedUpload(record)
        }
        if committed.isRepetition {
            await discard()
        }
        commitState = .settled
        return committed
    }

    private func commit(
        _ fields: [UploadRecord.Field], under key: UploadKey, _ signed: Date
    ) async throws -> CommittedUpload {
        var known: StoredKeys.Current? = isKept ? .free(generation: generation) : nil
        while true {
            let current = if let known { known } else { try await store.keys.current(key.digest) }
            switch current {
            case .free(let generation):
                guard isKept else { throw UploadStoreError.deletedMeanwhile }
                let record = newRecord(fields)
                let json = record.jsonBuffer()
                let entry = KeyEntry(
                    key: key.digest, generation: generation, record: record, sourceTag: sourceTag)
                commitState = .unknown
                let creation = try await store.objects.create(
                    entry.object, json, metadata: entry.metadata, signed: signed)
                if case .created = creation {
                    try await store.keys.list(entry, json, seen: signed)
                    return CommittedUpload(record)
                }
                known = nil
                if let made = try await ownRecord(entry, fields, signed) { return CommittedUpload(made) }
                // The object belongs to another upload, so this one made no record, and its files may be removed.
                // That is only certain now: until `ownRecord` read the object, it could be from an earlier try.
                commitState = .open
            case .taken(let entry):
                if entry.id.randomText == draft.randomText { return CommittedUpload(record(entry, fields)) }
                guard record(entry, fields).digest == entry.digest else { throw UploadStoreError.keyReused }
                return CommittedUpload(record(entry, fields), isRepetition: true)
            }
        }
    }

    /// The record that an earlier try of this commit has made, whose response was lost; `nil` if another upload made
    /// the record. Throws `UploadStoreError` if the record was already deleted. The deletion may remove the files of
    /// this upload, so only a new upload can succeed.
    private func ownRecord(
        _ entry: KeyEntry, _ fields: [UploadRecord.Field], _ signed: Date
    ) async throws -> UploadRecord? {
        guard let (head, json) = try await store.objects.get(entry.object), head.size > 0 else {
            throw UploadStoreError.deletedMeanwhile
        }
        let stored = try KeyEntry(key: entry.key, generation: entry.generation, head)
        guard stored.id.randomText == draft.randomText else { return nil }
        try await store.keys.list(stored, json, seen: signed)
        return record(stored, fields)
    }

    private func newRecord(_ fields: [UploadRecord.Field]) -> UploadRecord {
        let now = store.objects.bucket.clock()
        let milliseconds = store.identifiers.nextMilliseconds(now: Int64(now.timeIntervalSince1970 * 1000))
        // The time is stored in seconds, so it is rounded to be comparable in a repetition.
        let received = Date(timeIntervalSince1970: now.timeIntervalSince1970.rounded(.down))
        return record(draft.moved(to: milliseconds), received, fields)
    }

    private func record(_ entry: KeyEntry, _ fields: [UploadRecord.Field]) -> UploadRecord {
        record(entry.id, entry.received, fields)
    }

    private func record(_ id: UploadID, _ received: Date, _ fields: [UploadRecord.Field]) -> UploadRecord {
        let described = zip(files, contents).enumerated().map { index, file in
            UploadRecord.File(file.0, size: file.1.size, sha256: file.1.sha256, at: index, of: id)
        }
        return UploadRecord(id: id, received: received, fields: fields, files: described, parts: parts)
    }

    public func discard() async {
        await writer?.cancel()
        writer = nil
        // If a record may exist, its files stay. Files without a record are removed by the sweep.
        guard isKept, case .open = commitState else { return }
        commitState = .settled
        await remove(contents.indices.filter { contents[$0].size > 0 }.map { ObjectName.file($0, of: draft) })
    }

    /// Removes objects, even if the client is disconnected. After an error, the sweep removes the remaining objects.
    private func remove(_ names: [String]) async {
        let objects = store.objects
        await objects.surroundings.evenIfCancelled { try? await objects.delete(names) }
    }
}
