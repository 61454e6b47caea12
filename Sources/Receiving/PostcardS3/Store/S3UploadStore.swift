#if !S3 && !CommandLine
#error("PostcardS3 needs the trait S3 of this package: .package(url: …, traits: [\"S3\"])")
#endif

public import Logging
import NIOCore
import PostcardFoundation
public import PostcardStore

/// Keeps uploads in a bucket of an object store, which any number of receivers can share.
///
/// ```swift
/// let store = try await S3UploadStore.open(S3Bucket("s3://uploads/forms"))
/// router.addUploads(to: store)
/// ```
///
/// Every receiver can handle every request, even for an upload that another receiver has begun, because receivers have
/// no state of their own and no locks. Uploads continue while at least one receiver is running.
/// <doc:HowUploadsAreStored> describes the objects, and the order in which they are written.
///
/// One task of each receiver should call ``sweep()`` from time to time, as `postcard serve` does.
public final class S3UploadStore: ResponseKeepingUploadStore, MaintainedUploadStore {
    let objects: ObjectStore
    let keys: StoredKeys
    let budget: MemoryBudget
    /// Limits how many files are copied within the store at once. Waiting files use no memory.
    let copies: MemoryBudget
    /// Limits how many large records are read at once. Decoding one uses 4 MB for 1 MiB of text, and 150 MB for 8 MiB.
    private let records: (medium: MemoryBudget, large: MemoryBudget)
    let identifiers: UploadIDSource
    let unfinished = UnfinishedTable()
    let readiness = Readiness()
    let logger: Logger

    /// The maximum time between an upload's beginning and its commit: 20 hours. The sweep removes files without a
    /// record after 24 hours. The four hours between exceed any clock difference at which the store accepts requests.
    static let maximumUploadTime = Duration.seconds(20 * 3600)

    /// The maximum number of files in the bucket that become records at once. Each file is read in pieces of 4 MiB.
    static let maximumConcurrentCopies = 4

    private init(_ objects: ObjectStore, newest: UploadID?, memoryBytes: Int, logger: Logger) {
        self.objects = objects
        self.logger = logger
        keys = StoredKeys(objects: objects)
        budget = MemoryBudget(
            blocks: max(memoryBytes / objects.surroundings.partBytes, 1), surroundings: objects.surroundings)
        copies = MemoryBudget(blocks: Self.maximumConcurrentCopies, surroundings: objects.surroundings)
        records = (
            MemoryBudget(blocks: 8, surroundings: objects.surroundings),
            MemoryBudget(blocks: 1, surroundings: objects.surroundings)
        )
        identifiers = UploadIDSource(after: newest.map { [$0] } ?? [])
    }

    /// Opens a bucket, and checks that the object store supports what uploads need, such as PUT with `If-None-Match`.
    ///
    /// - Parameters:
    ///   - bucket: The bucket and its endpoint.
    ///   - memoryBytes: The memory for all bytes that wait to be sent to the store. Defaults to 80 MiB: ten parts.
    ///   - logger: Logs objects that could not be read or removed, new credentials, and at the level `debug` each
    ///     retry. Messages may contain the keys of objects, but not the identifiers of unfinished uploads.
    /// - Throws: ``S3Error`` if the bucket cannot be used, or the store lacks a feature that the message names.
    public static func open(
        _ bucket: S3Bucket, memoryBytes: Int = 80 << 20, logger: Logger = Logger(label: "postcard.store")
    ) async throws -> S3UploadStore {
        let objects = try ObjectStore(bucket, logger: logger)
        try await StoreProbe(objects: objects, logger: logger).run()
        let newest = try await objects.list(ObjectName.records, limit: 1).objects.first
        return S3UploadStore(
            objects, newest: newest.flatMap { ObjectName.id(ofRecord: $0.key) }, memoryBytes: memoryBytes,
            logger: logger)
    }

    public func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending S3Upload {
        guard let key else { return S3Upload(self, key: nil, generation: 0) }
        switch try await storing({ try await keys.current(key.digest) }) {
        case .free(let generation): return S3Upload(self, key: key, generation: generation)
        case .taken: return S3Upload(self, key: key, generation: nil)
        }
    }

    public func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID] {
        var found: [UploadID] = []
        var last = id.map(ObjectName.record)
        var pageSize = min(max(limit, 1), 1000)
        while found.count < limit {
            let page = try await storing {
                try await objects.list(ObjectName.records, after: last, limit: pageSize)
            }
            found += Self.live(page)
            guard page.isTruncated, let next = page.objects.last?.key else { break }
            last = next
            // The empty objects of many deleted records may follow each other.
            pageSize = 1000
        }
        return Array(found.prefix(limit))
    }

    /// The records in a listing, without deleted ones. An empty object marks a deleted record.
    static func live(_ page: ObjectPage) -> [UploadID] {
        page.objects.filter { $0.size > 0 }.compactMap { ObjectName.id(ofRecord: $0.key) }
    }

    public func record(_ id: UploadID) async throws -> UploadRecord? {
        guard let (size, beginning) = try await beginning(ofRecord: id) else { return nil }
        if size == Int64(beginning.readableBytes) { return try decoded(beginning, id) }
        let turns = size > Self.largeRecordBytes ? records.large : records.medium
        return try await turns.withBlock {
            guard let (head, json) = try await storing({ try await objects.get(ObjectName.record(id)) }), head.size > 0
            else { return nil }
            return try decoded(json, id)
        }
    }

    private func decoded(_ json: ByteBuffer, _ id: UploadID) throws -> UploadRecord {
        do {
            let record = try UploadRecord(json: Data(json.readableBytesView))
            guard record.id == id else { throw UploadStoreError(.damaged, "It is another upload's.") }
            return record
        } catch {
            let address = objects.address(of: ObjectName.record(id))
            throw UploadStoreError(
                .damaged, "\(address) is not as it was written: \(error)", underlyingError: error)
        }
    }

    /// The size of a record and its first bytes, which usually are the whole record; `nil` if there is no record.
    private func beginning(ofRecord id: UploadID) async throws -> (size: Int64, bytes: ByteBuffer)? {
        try await storing {
            do {
                let range = 0..<Self.smallRecordBytes
                guard let (head, bytes) = try await objects.get(ObjectName.record(id), range: range), head.size > 0
                else { return nil }
                return (head.size, bytes)
            } catch let error as S3Error where error.status == 416 {
                // The object of a deleted record is empty.
                return nil
            }
        }
    }

    /// Opens the JSON of a record. Long JSON is read in pieces.
    public func openRecord(_ id: UploadID) async throws -> (any StoredFile)? {
        guard let (size, beginning) = try await beginning(ofRecord: id) else { return nil }
        let isWhole = size == Int64(beginning.readableBytes)
        return isWhole ? BytesInMemory(bytes: beginning) : file(ObjectName.record(id), size: size)
    }

    private static let smallRecordBytes: Int64 = 64 << 10
    private static let largeRecordBytes: Int64 = 1 << 20

    public func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)? {
        guard let described = try await describedFile(index, of: id) else { return nil }
        return file(index, of: id, size: described.size)
    }

    func file(_ index: Int, of id: UploadID, size: Int64) -> any StoredFile {
        file(ObjectName.file(index, of: id), size: size)
    }

    private func file(_ key: String, size: Int64) -> any StoredFile {
        let piece = ObjectFile.Piece(key: key, offset: 0, size: size)
        return ObjectFile(objects, size > 0 ? [piece] : [])
    }

    public func keepResponse(_ response: [UInt8], to id: UploadID) async throws {
        try await storing { try await objects.put(ObjectName.response(to: id), ByteBuffer(bytes: response)) }
    }

    public func response(to id: UploadID) async throws -> [UInt8]? {
        try await storing { try await objects.get(ObjectName.response(to: id)).map { Array(buffer: $0.body) } }
    }

    /// Deletes an upload. Afterwards, no receiver lists or reads the upload. A sweep removes its files an hour later,
    /// because some of them may be open.
    ///
    /// - Returns: Whether the upload existed.
    public func delete(_ id: UploadID) async throws -> Bool {
        try await storing { try await keys.delete(id) }
    }
}
