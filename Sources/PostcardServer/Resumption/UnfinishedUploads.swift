import Crypto
import Logging
import PostcardFiles
import Synchronization
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The uploads of a store that can be resumed, and the answers of those that are done.
final class UnfinishedUploads: Sendable {
    private struct Table {
        var uploads: [ResumptionID: UnfinishedUpload] = [:]
        /// Those that are not done, and those that are being made.
        var unfinishedCount = 0
        /// How many of them each address has created.
        var owners: [PeerAddress: Int] = [:]
        var unfinishedBytes: Int64 = 0
        /// Those that are done, oldest first.
        var finished: [ResumptionID] = []
        var nextSweep = Date.distantPast

        mutating func joins(_ owner: PeerAddress?) {
            unfinishedCount += 1
            if let owner { owners[owner, default: 0] += 1 }
        }

        mutating func leaves(_ owner: PeerAddress?) {
            unfinishedCount -= 1
            if let owner, let rest = owners[owner] { owners[owner] = rest > 1 ? rest - 1 : nil }
        }
    }

    /// Whether there is room for another upload.
    private enum Room {
        case taken
        /// There are as many uploads as may be, of everyone or of the address alone.
        case tooMany(of: PeerAddress?)
        case tooLarge
    }

    private let layout: StoreLayout
    private let logger: Logger
    private let table: Mutex<Table>

    /// How often it is looked for what has expired.
    private static let sweepInterval: TimeInterval = 60

    /// Finds what was there when the receiver was ended, and removes what was never told of. The call blocks.
    init(layout: StoreLayout, logger: Logger, now: Date = Date()) throws {
        self.layout = layout
        self.logger = logger
        var table = Table()
        var finished: [(id: ResumptionID, created: Date)] = []
        for name in try Self.names(in: layout.unfinished) {
            let folder = UnfinishedFolder(path: layout.unfinished.appending(name))
            guard let id = ResumptionID(name), let (facts, content) = try Self.load(folder, id, logger, now) else {
                continue
            }
            switch content {
            case .bytes(let count):
                table.uploads[id] = UnfinishedUpload(id, in: folder, facts, .unfinished(offset: count))
                table.joins(nil)
                table.unfinishedBytes += count
            case .answer(let length, let location):
                table.uploads[id] = UnfinishedUpload(
                    id, in: folder, facts, .finished(length: length, location: location))
                finished.append((id, facts.created))
            }
        }
        table.finished = finished.sorted { $0.created < $1.created }.map(\.id)
        self.table = Mutex(table)
    }

    /// The folder is made with the first upload.
    private static func names(in folder: FilePath) throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.string)
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return []
        }
    }

    /// - Returns: `nil` where nothing is there to go on with.
    private static func load(
        _ folder: UnfinishedFolder, _ id: ResumptionID, _ logger: Logger, _ now: Date
    ) throws -> (facts: UnfinishedFolder.Facts, content: UnfinishedFolder.Content)? {
        do {
            if let loaded = try folder.load(), loaded.facts.expires > now { return loaded }
        } catch {
            // What was promised is not thrown away for a disk that fails now and then.
            logger.error(
                "Could not read an upload", metadata: ["upload": "\(id.loggedText)", "error": "\(error)"])
            return nil
        }
        // Without a sync: what a power cut brings back is removed at the next start.
        try FileManager.default.removeItem(atPath: folder.path.string)
        return nil
    }

    /// How many uploads are not done.
    var unfinishedCount: Int { table.withLock { $0.unfinishedCount } }

    /// The upload of an address; `nil` where there is none or it has expired.
    func find(_ id: ResumptionID, now: Date = Date()) async -> UnfinishedUpload? {
        guard let upload = table.withLock({ $0.uploads[id] }) else { return nil }
        guard upload.facts.expires <= now else {
            upload.use(at: now)
            return upload
        }
        await expire(upload)
        return nil
    }

    /// Begins an upload.
    ///
    /// Where there are as many as may be, one without bytes that no request is at makes room.
    ///
    /// - Parameters:
    ///   - key: The sender's; without one the upload has a key of its own.
    ///   - owner: The client.
    ///   - share: How many uploads one client may have.
    /// - Returns: `nil` where there are as many as may be.
    /// - Throws: ``UploadStoreError`` where there is no room for it.
    func begin(
        contentType: String, key: IdempotencyKey?, length: Int64?, check: FormCheck, options: ResumptionOptions,
        owner: PeerAddress?, share: Int, now: Date = Date()
    ) async throws -> UnfinishedUpload? {
        await sweep(now: now)
        var room = takeRoom(length ?? 0, options, owner, share)
        while case .tooMany(let crowd) = room {
            guard await evict(of: crowd) else { return nil }
            room = takeRoom(length ?? 0, options, owner, share)
        }
        guard case .taken = room else { return nil }
        let id = ResumptionID.random()
        let folder = UnfinishedFolder(path: layout.unfinished.appending(id.text))
        // The address is known to its sender alone, and so is a key made of it.
        let key = key ?? IdempotencyKey(id.text, scope: "\u{0}resumable")
        let facts = UnfinishedFolder.Facts(
            contentType: contentType, keyDigest: key.digest, created: now,
            expires: now.addingTimeInterval(options.lifetime / .seconds(1)), length: length)
        do {
            try await onFileThread { [layout] in
                // The form is there twice for a moment: as it came, and as its record.
                let (both, isOver) = (length ?? 0).multipliedReportingOverflow(by: 2)
                try layout.checkRoom(for: isOver ? .max : both)
                try DurableFiles.makeDirectories(layout.unfinished)
                try folder.make(facts)
            }
        } catch {
            table.withLock { $0.leaves(owner) }
            throw error
        }
        let upload = UnfinishedUpload(id, in: folder, facts, check: check, owner: owner)
        table.withLock { $0.uploads[id] = upload }
        return upload
    }

    private func takeRoom(
        _ length: Int64, _ options: ResumptionOptions, _ owner: PeerAddress?, _ share: Int
    ) -> Room {
        table.withLock { table in
            guard length <= options.maximumUnfinishedBytes - table.unfinishedBytes else { return .tooLarge }
            if let owner, table.owners[owner, default: 0] >= share { return .tooMany(of: owner) }
            guard table.unfinishedCount < options.maximumUnfinished else { return .tooMany(of: nil) }
            table.joins(owner)
            return .taken
        }
    }

    /// Removes the least recently used upload that has no bytes and that no request is at. Its sender has lost nothing
    /// but its address, and begins another one.
    ///
    /// - Parameter owner: The client whose upload it is; anyone's where it is `nil`.
    /// - Returns: Whether there was one.
    private func evict(of owner: PeerAddress?) async -> Bool {
        let uploads = table.withLock { $0.uploads.values.filter { owner == nil || $0.owner == owner } }
        let empty = uploads.filter { $0.progress == .unfinished(offset: 0) && $0.turns.isIdle }
        guard let upload = empty.min(by: { $0.lastUse < $1.lastUse }) else { return false }
        // Where a request has come to it in the meantime, another one is looked for.
        guard let turn = upload.turns.takeIfIdle() else { return true }
        defer { upload.turns.giveBack(turn) }
        guard upload.progress == .unfinished(offset: 0) else { return true }
        return await removeOrLog(upload)
    }

    /// Writes bytes behind those that are there. The call blocks.
    func append(_ bytes: RawSpan, to upload: UnfinishedUpload, _ file: AppendedFile) throws {
        try layout.checkRoom(for: Int64(bytes.byteCount))
        try file.append(bytes, at: upload.bytes) { count in
            upload.advance(by: count)
            table.withLock { $0.unfinishedBytes += Int64(count) }
        }
    }

    /// Whether so many bytes more would be too many.
    func isFull(for count: Int64, _ options: ResumptionOptions) -> Bool {
        table.withLock { $0.unfinishedBytes + count > options.maximumUnfinishedBytes }
    }

    /// Keeps an upload's answer in place of its bytes; by the request that has the turn. The answer that shows a record
    /// which was deleted in the meantime is not kept.
    func finish(_ upload: UnfinishedUpload, with answer: KeptAnswer, options: ResumptionOptions) async throws {
        let bytes = upload.bytes
        try await upload.finish(with: answer)
        let surplus: UnfinishedUpload? = table.withLock { table in
            table.leaves(upload.owner)
            table.unfinishedBytes -= bytes
            table.finished.append(upload.id)
            guard table.finished.count > options.maximumKeptAnswers else { return nil }
            return table.uploads[table.finished.removeFirst()]
        }
        if let surplus, surplus !== upload { await expire(surplus) }
        // Whoever deleted the record before found no answer to forget.
        if let record = answer.record, try await !exists(record) { try await remove(upload) }
    }

    private func exists(_ record: UploadID) async throws -> Bool {
        try await onFileThread { [layout] in
            FileManager.default.fileExists(atPath: layout.folder(of: record).string)
        }
    }

    /// Removes an upload; by the request that has the turn.
    func remove(_ upload: UnfinishedUpload) async throws {
        let progress = upload.progress
        guard progress != .gone else { return }
        let doomed = layout.incoming.appending(upload.id.text)
        try await onFileThread { [folder = upload.folder, layout] in
            try layout.makeIncoming()
            try folder.remove(by: doomed)
        }
        upload.becomeGone()
        table.withLock { table in
            table.uploads[upload.id] = nil
            switch progress {
            case .unfinished(let offset):
                table.leaves(upload.owner)
                table.unfinishedBytes -= offset
            case .finished: table.finished.removeAll { $0 == upload.id }
            case .gone: break
            }
        }
    }

    /// Forgets the answers that show a record that was deleted: what it held is to be gone.
    func forget(_ record: UploadID) async {
        let url = UploadRecord.url(of: record)
        let answers = table.withLock { table in
            table.uploads.values.filter { upload in
                if case .finished(_, url) = upload.progress { true } else { false }
            }
        }
        for answer in answers { await expire(answer) }
    }

    /// Removes what has expired, where that was not done a moment ago.
    func sweep(now: Date = Date()) async {
        let expired: [UnfinishedUpload] = table.withLock { table in
            guard now >= table.nextSweep else { return [] }
            table.nextSweep = now.addingTimeInterval(Self.sweepInterval)
            return table.uploads.values.filter { $0.facts.expires <= now }
        }
        for upload in expired { await expire(upload) }
    }

    private func expire(_ upload: UnfinishedUpload) async {
        await upload.turns.taking { _ in _ = await removeOrLog(upload) }
    }

    /// - Returns: Whether it is removed.
    private func removeOrLog(_ upload: UnfinishedUpload) async -> Bool {
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
