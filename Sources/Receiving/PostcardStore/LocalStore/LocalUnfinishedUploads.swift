import Logging
import PostcardFiles
import PostcardFoundation
import Synchronization
import SystemPackage

/// The unfinished uploads of a ``LocalUploadStore``, and their kept responses.
final class LocalUnfinishedUploads: Sendable {
    private struct Table {
        var uploads: [ResumptionID: LocalUnfinishedUpload] = [:]
        var finished = SharedHistory<ResumptionID>()
        var nextSweep = Date.distantPast
    }

    private let directory: StoreDirectory
    private let damaged: DamagedUploads
    private let logger: Logger
    private let table: Mutex<Table>

    /// The interval at which expired uploads are removed, in seconds.
    private static let sweepInterval: TimeInterval = 60

    /// Loads the uploads on the disk, and removes those whose address no client knows. The call blocks.
    init(directory: StoreDirectory, damaged: DamagedUploads, logger: Logger, now: Date = Date()) throws {
        self.directory = directory
        self.damaged = damaged
        self.logger = logger
        table = Mutex(Table())
        var table = Table()
        var finished: [(id: ResumptionID, facts: UnfinishedDirectory.Facts)] = []
        for name in try Self.names(in: directory.unfinished) {
            let folder = UnfinishedDirectory(path: directory.unfinished.appending(name))
            guard let id = ResumptionID(name), let (facts, progress) = Self.load(folder, id, damaged, logger, now)
            else {
                continue
            }
            table.uploads[id] = LocalUnfinishedUpload(id, in: folder, facts, progress, self)
            if case .finished = progress { finished.append((id, facts)) }
        }
        for (id, facts) in finished.sorted(by: { $0.facts.created < $1.facts.created }) {
            table.finished.append(id, of: facts.client)
        }
        self.table.withLock { [table] in $0 = table }
    }

    private static func names(in folder: FilePath) throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.string)
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return []
        }
    }

    /// Loads the upload in a folder. If there is nothing to resume, returns `nil`.
    private static func load(
        _ folder: UnfinishedDirectory, _ id: ResumptionID, _ damaged: DamagedUploads, _ logger: Logger, _ now: Date
    ) -> (facts: UnfinishedDirectory.Facts, progress: UnfinishedUploadProgress)? {
        do {
            if let loaded = try folder.load(), loaded.facts.expires > now { return loaded }
        } catch  where StoreDamage.isCause(of: error) {
            damaged.setAside(folder.path, id.loggedText, error)
            return nil
        } catch {
            // The disk may be readable again at the next start, so the upload is kept.
            logger.error(
                "Could not read an upload", metadata: ["upload": "\(id.loggedText)", "error": "\(shown(error))"])
            return nil
        }
        do {
            // No sync is needed: a folder that reappears after a power cut is removed at the next start.
            try FileManager.default.removeItem(atPath: folder.path.string)
        } catch {
            logger.warning(
                "Could not remove an upload; the next start will",
                metadata: ["upload": "\(id.loggedText)", "error": "\(shown(error))"])
        }
        return nil
    }

    /// Describes an error without the name of the upload's folder. Of Foundation's errors, only the code is shown.
    private static func shown(_ error: any Error) -> String {
        switch error {
        case let error as FileError: "\(UploadStoreError(error))"
        case let error as UploadStoreError: "\(error)"
        case let error as CocoaError: "\(type(of: error)) \(error.code.rawValue)"
        default: "\(type(of: error))"
        }
    }

    /// Releases the uploads, which refer back to this object.
    func close() {
        table.withLock { $0 = Table() }
    }

    func find(_ id: ResumptionID, now: Date = Date()) async -> LocalUnfinishedUpload? {
        guard let upload = table.withLock({ $0.uploads[id] }) else { return nil }
        guard upload.expires <= now else { return upload }
        await expire(upload)
        return nil
    }

    /// The uploads without a response.
    var unfinished: [LocalUnfinishedUpload] {
        table.withLock { table in
            table.uploads.values.filter { upload in
                if case .unfinished = upload.progress { true } else { false }
            }
        }
    }

    func create(
        _ id: ResumptionID, of form: UnfinishedForm, expires: Date, now: Date = Date()
    ) async throws -> LocalUnfinishedUpload {
        await sweep(now: now)
        let folder = UnfinishedDirectory(path: directory.unfinished.appending(id.text))
        let facts = UnfinishedDirectory.Facts(
            contentType: form.contentType, keyDigest: form.key.digest, created: now, expires: expires,
            length: form.length, reprDigest: form.reprDigest, wantReprDigest: form.wantReprDigest,
            fileParameters: form.fileParameters, client: form.client)
        try await onFileThread { [directory] in
            // During the commit, the form uses disk space twice: as an upload and as a record.
            let (both, isOver) = (form.length ?? 0).multipliedReportingOverflow(by: 2)
            try directory.checkRoom(for: isOver ? .max : both)
            try directory.checkRoomForFiles()
            try DurableFiles.makeDirectories(directory.unfinished)
            try folder.make(facts)
        }
        let upload = LocalUnfinishedUpload(id, in: folder, facts, self)
        table.withLock { $0.uploads[id] = upload }
        return upload
    }

    /// Appends bytes. The call blocks.
    func append(_ bytes: RawSpan, to upload: LocalUnfinishedUpload, _ file: AppendedFile) throws {
        try directory.checkRoom(for: Int64(bytes.byteCount))
        try file.append(bytes, at: upload.bytes) { upload.advance(by: $0) }
    }

    /// Replaces the bytes of an upload with its response. Drops a response that shows a record deleted meanwhile.
    func finish(
        _ upload: LocalUnfinishedUpload, with response: FinalResponse, options: UnfinishedUploadOptions
    ) async throws {
        try await upload.store(response)
        let surplus = table.withLock { table in
            table.finished.append(upload.id, of: upload.form.client)
            // More than one response exceeds the maximum only after the maximum was lowered.
            return table.finished.removeExcess(over: options.maximumKeptResponses).compactMap { table.uploads[$0] }
        }
        for other in surplus where other !== upload { await expire(other) }
        // If no responses are kept, this upload is removed too. The caller already holds its lock.
        if surplus.last === upload { try await remove(upload) }
        // The record may have been deleted before this response was listed. The deletion then missed the response.
        if let record = response.record, try await !exists(record) { try await remove(upload) }
    }

    private func exists(_ record: UploadID) async throws -> Bool {
        try await onFileThread { [directory] in
            FileManager.default.fileExists(atPath: directory.folder(of: record).string)
        }
    }

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
            if case .finished = progress { table.finished.removeAll(of: upload.form.client) { $0 == upload.id } }
        }
    }

    /// Moves an upload with damaged files to `.damaged`.
    func setAside(_ upload: LocalUnfinishedUpload, _ error: any Error) async {
        upload.becomeGone()
        table.withLock { table in
            table.uploads[upload.id] = nil
            table.finished.removeAll(of: upload.form.client) { $0 == upload.id }
        }
        try? await onFileThread { [damaged] in
            damaged.setAside(upload.directory.path, upload.id.loggedText, error)
        }
    }

    /// Removes the responses that show a deleted record, because no data of the record may remain.
    func forget(_ record: UploadID) async {
        let uploads = table.withLock { table in
            table.uploads.values.filter { upload in
                if case .finished(_, record) = upload.progress { true } else { false }
            }
        }
        for upload in uploads { await expire(upload) }
    }

    /// Removes expired uploads, at most once a minute.
    func sweep(now: Date = Date()) async {
        let expired: [LocalUnfinishedUpload] = table.withLock { table in
            guard now >= table.nextSweep else { return [] }
            table.nextSweep = now.addingTimeInterval(Self.sweepInterval)
            return table.uploads.values.filter { $0.expires <= now }
        }
        for upload in expired { await expire(upload) }
    }

    private func expire(_ upload: LocalUnfinishedUpload) async {
        await upload.lock.withLock {
            do {
                try await remove(upload)
            } catch {
                logger.warning(
                    "Could not remove an upload",
                    metadata: ["upload": "\(upload.id.loggedText)", "error": "\(Self.shown(error))"])
            }
        }
    }
}
