import Logging
import PostcardFiles
import Synchronization
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The unfinished uploads of a ``LocalUploadStore``, and the responses that are kept.
final class LocalUnfinishedUploads: Sendable {
    private struct Table {
        var uploads: [ResumptionID: LocalUnfinishedUpload] = [:]
        /// How many have no response yet, those that are being created included.
        var unfinishedCount = 0
        /// What each client has of them.
        var clients: [String: Usage] = [:]
        /// How many bytes of a client's usage each upload is.
        var reservations: [ResumptionID: Int64] = [:]
        var unfinishedBytes: Int64 = 0
        /// Those with a response, oldest first.
        var finished: [ResumptionID] = []
        var nextSweep = Date.distantPast

        mutating func add(of client: UnfinishedForm.Client?) {
            unfinishedCount += 1
            if let client { clients[client.name, default: Usage()].uploads += 1 }
        }

        mutating func remove(_ id: ResumptionID, of client: UnfinishedForm.Client?) {
            unfinishedCount -= 1
            guard let client, var usage = clients[client.name] else { return }
            usage.uploads -= 1
            usage.bytes -= reservations.removeValue(forKey: id) ?? 0
            clients[client.name] = usage.uploads > 0 ? usage : nil
        }

        /// - Returns: Whether the client's share has room for an upload of this length.
        mutating func reserve(_ length: Int64, for id: ResumptionID, of client: UnfinishedForm.Client?) -> Bool {
            guard let client else { return true }
            let reserved = reservations[id] ?? 0
            guard length > reserved else { return true }
            let others = clients[client.name, default: Usage()].bytes - reserved
            // A single upload may be as large as any.
            guard others == 0 || length <= client.maximumBytes - others else { return false }
            clients[client.name, default: Usage()].bytes = others + length
            reservations[id] = length
            return true
        }
    }

    private struct Usage {
        var uploads = 0
        var bytes: Int64 = 0
    }

    /// Whether there is room for another upload.
    private enum Room {
        case taken
        /// There are as many uploads as are allowed: of the client, or of all where it is `nil`.
        case tooMany(of: UnfinishedForm.Client?)
        /// The client has as many bytes as are allowed.
        case tooManyBytes(of: UnfinishedForm.Client)
        case tooLarge
    }

    private let directory: StoreDirectory
    private let logger: Logger
    private let table: Mutex<Table>

    /// How often expired uploads are removed, in seconds.
    private static let sweepInterval: TimeInterval = 60

    /// Loads the uploads on the disk, and removes those whose address no client knows. The call blocks.
    init(directory: StoreDirectory, logger: Logger, now: Date = Date()) throws {
        self.directory = directory
        self.logger = logger
        table = Mutex(Table())
        var table = Table()
        var finished: [(id: ResumptionID, created: Date)] = []
        for name in try Self.names(in: directory.unfinished) {
            let folder = UnfinishedDirectory(path: directory.unfinished.appending(name))
            guard let id = ResumptionID(name), let (facts, progress) = try Self.load(folder, id, logger, now) else {
                continue
            }
            table.uploads[id] = LocalUnfinishedUpload(id, in: folder, facts, progress, self)
            switch progress {
            case .unfinished(let offset):
                table.add(of: nil)
                table.unfinishedBytes += offset
            case .finished: finished.append((id, facts.created))
            case .gone: break
            }
        }
        table.finished = finished.sorted { $0.created < $1.created }.map(\.id)
        self.table.withLock { [table] in $0 = table }
    }

    private static func names(in folder: FilePath) throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.string)
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return []
        }
    }

    /// - Returns: `nil` if there is nothing to resume.
    private static func load(
        _ folder: UnfinishedDirectory, _ id: ResumptionID, _ logger: Logger, _ now: Date
    ) throws -> (facts: UnfinishedDirectory.Facts, progress: UnfinishedUploadProgress)? {
        do {
            if let loaded = try folder.load(), loaded.facts.expires > now { return loaded }
        } catch {
            // The disk may be readable again at the next start.
            logger.error(
                "Could not read an upload", metadata: ["upload": "\(id.loggedText)", "error": "\(error)"])
            return nil
        }
        // Without a sync: what a power cut brings back is removed at the next start.
        try FileManager.default.removeItem(atPath: folder.path.string)
        return nil
    }

    /// Releases the uploads, which refer back to this object.
    func close() {
        table.withLock { $0 = Table() }
    }

    func find(_ id: ResumptionID, now: Date = Date()) async -> LocalUnfinishedUpload? {
        guard let upload = table.withLock({ $0.uploads[id] }) else { return nil }
        guard upload.expires <= now else {
            upload.use(at: now)
            return upload
        }
        await expire(upload)
        return nil
    }

    /// Creates an upload. If there are as many as are allowed, it takes the place of one without bytes that no request
    /// uses.
    func create(
        _ id: ResumptionID, of form: UnfinishedForm, options: ResumptionOptions, now: Date = Date()
    ) async throws -> LocalUnfinishedUpload? {
        await sweep(now: now)
        guard await makeRoom(id, form, options) else { return nil }
        let folder = UnfinishedDirectory(path: directory.unfinished.appending(id.text))
        let facts = UnfinishedDirectory.Facts(
            contentType: form.contentType, keyDigest: form.key.digest, created: now,
            expires: now.addingTimeInterval(options.lifetime / .seconds(1)), length: form.length)
        do {
            try await onFileThread { [directory] in
                // When it is committed, the form takes up room as an upload and as a record.
                let (both, isOver) = (form.length ?? 0).multipliedReportingOverflow(by: 2)
                try directory.checkRoom(for: isOver ? .max : both)
                try DurableFiles.makeDirectories(directory.unfinished)
                try folder.make(facts)
            }
        } catch {
            table.withLock { $0.remove(id, of: form.client) }
            throw error
        }
        let upload = LocalUnfinishedUpload(id, in: folder, facts, of: form.client, self)
        table.withLock { $0.uploads[id] = upload }
        return upload
    }

    /// - Returns: Whether there is room for the upload, which it has then.
    private func makeRoom(_ id: ResumptionID, _ form: UnfinishedForm, _ options: ResumptionOptions) async -> Bool {
        while true {
            switch takeRoom(id, form, options) {
            case .taken: return true
            case .tooLarge: return false
            case .tooMany(let client):
                guard await evict(where: { client == nil || $0.client?.name == client?.name }) else { return false }
            case .tooManyBytes(let client):
                guard await evict(where: { $0.client?.name == client.name && $0.length != nil }) else { return false }
            }
        }
    }

    private func takeRoom(_ id: ResumptionID, _ form: UnfinishedForm, _ options: ResumptionOptions) -> Room {
        table.withLock { table in
            let length = form.length ?? 0
            guard length <= options.maximumUnfinishedBytes - table.unfinishedBytes else { return .tooLarge }
            if let client = form.client, table.clients[client.name]?.uploads ?? 0 >= client.maximumUploads {
                return .tooMany(of: client)
            }
            guard table.unfinishedCount < options.maximumUnfinished else { return .tooMany(of: nil) }
            if let client = form.client, !table.reserve(length, for: id, of: client) {
                return .tooManyBytes(of: client)
            }
            table.add(of: form.client)
            return .taken
        }
    }

    /// Removes the least recently used upload that has no bytes and that no request uses. Its client only loses the
    /// address, and creates another upload.
    ///
    /// - Parameter belongs: Whether an upload may be removed.
    /// - Returns: Whether it is worth looking for room again.
    private func evict(where belongs: (UnfinishedForm) -> Bool) async -> Bool {
        let uploads = table.withLock { Array($0.uploads.values) }
        let empty = uploads.filter { upload in
            upload.progress == .unfinished(offset: 0) && upload.lock.isIdle && belongs(upload.form)
        }
        guard let upload = empty.min(by: { $0.lastUse < $1.lastUse }) else { return false }
        let isRemoved = await upload.lock.withLockIfIdle {
            guard upload.progress == .unfinished(offset: 0) else { return true }
            return await removeOrLog(upload)
        }
        // If a request has taken it in the meantime, another one may do.
        return isRemoved ?? true
    }

    /// Appends bytes. The call blocks.
    func append(_ bytes: RawSpan, to upload: LocalUnfinishedUpload, _ file: AppendedFile) throws {
        try directory.checkRoom(for: Int64(bytes.byteCount))
        try file.append(bytes, at: upload.bytes) { count in
            upload.advance(by: count)
            table.withLock { $0.unfinishedBytes += Int64(count) }
        }
    }

    func reserve(
        upTo length: Int64, of upload: LocalUnfinishedUpload, _ client: UnfinishedForm.Client?,
        _ options: ResumptionOptions
    ) -> Bool {
        table.withLock { table in
            // A piece that is being written may not count for a moment.
            let room = options.maximumUnfinishedBytes - table.unfinishedBytes
            guard length - upload.bytes <= room else { return false }
            return table.reserve(length, for: upload.id, of: client)
        }
    }

    /// Replaces the bytes of an upload by its response. A response that shows a record which was deleted in the
    /// meantime is not kept.
    func finish(
        _ upload: LocalUnfinishedUpload, with response: FinalResponse, options: ResumptionOptions
    ) async throws {
        let bytes = upload.bytes
        try await upload.store(response)
        let surplus: LocalUnfinishedUpload? = table.withLock { table in
            table.remove(upload.id, of: upload.form.client)
            table.unfinishedBytes -= bytes
            table.finished.append(upload.id)
            guard table.finished.count > options.maximumKeptResponses else { return nil }
            return table.uploads[table.finished.removeFirst()]
        }
        if surplus === upload {
            // No response is kept. The caller holds its lock already.
            try await remove(upload)
        } else if let surplus {
            await expire(surplus)
        }
        // The deletion of the record found no response to forget.
        if let record = response.record, try await !exists(record) { try await remove(upload) }
    }

    private func exists(_ record: UploadID) async throws -> Bool {
        try await onFileThread { [directory] in
            FileManager.default.fileExists(atPath: directory.folder(of: record).string)
        }
    }

    /// Removes an upload.
    func remove(_ upload: LocalUnfinishedUpload) async throws {
        let progress = upload.progress
        guard progress != .gone else { return }
        let doomed = directory.incoming.appending(upload.id.text)
        try await onFileThread { [folder = upload.directory, directory] in
            try directory.makeIncoming()
            try folder.remove(by: doomed)
        }
        upload.becomeGone()
        table.withLock { table in
            table.uploads[upload.id] = nil
            switch progress {
            case .unfinished(let offset):
                table.remove(upload.id, of: upload.form.client)
                table.unfinishedBytes -= offset
            case .finished: table.finished.removeAll { $0 == upload.id }
            case .gone: break
            }
        }
    }

    /// Removes the responses that show a deleted record: nothing of it may be left.
    func forget(_ record: UploadID) async {
        let uploads = table.withLock { table in
            table.uploads.values.filter { upload in
                if case .finished(_, record) = upload.progress { true } else { false }
            }
        }
        for upload in uploads { await expire(upload) }
    }

    /// Removes uploads that have expired, at most once a minute.
    func sweep(now: Date = Date()) async {
        let expired: [LocalUnfinishedUpload] = table.withLock { table in
            guard now >= table.nextSweep else { return [] }
            table.nextSweep = now.addingTimeInterval(Self.sweepInterval)
            return table.uploads.values.filter { $0.expires <= now }
        }
        for upload in expired { await expire(upload) }
    }

    private func expire(_ upload: LocalUnfinishedUpload) async {
        await upload.lock.withLock { _ = await removeOrLog(upload) }
    }

    /// - Returns: Whether it is removed.
    private func removeOrLog(_ upload: LocalUnfinishedUpload) async -> Bool {
        do {
            try await remove(upload)
            return true
        } catch {
            logger.warning(
                "Could not remove an upload",
                metadata: ["upload": "\(upload.id.loggedText)", "error": "\(error)"])
            return false
        }
    }
}
