import PostcardClient
import PostcardFiles
import PostcardForm
import PostcardFoundation
import PostcardWire
import Synchronization
import SystemPackage

/// Forms with items that the user has picked: what was picked is recorded before anything is copied. If the run ends,
/// a later run copies the rest.
extension UploadQueue {
    /// How long to wait until items are tried again that could not be copied.
    private static let pause = Duration.seconds(60)
    /// How often items are tried that could not be copied for a reason of which nothing is known.
    private static let maximumTries = 10

    /// Adds a form with picked items.
    ///
    /// - Returns: The upload's identifier, also if the system suspends the app while the items are copied.
    func enqueueImporting(
        _ form: MultipartForm, _ request: QueuedRequest, conditions: UploadConditions, tag: Data?
    ) async throws -> QueuedUpload.ID {
        let recorded = Mutex<QueuedUpload.ID?>(nil)
        let record = { @Sendable (id: QueuedUpload.ID) in recorded.withLock { $0 = id } }
        do {
            return try await opening.activity.perform { [self] in
                let store = try await opening.store()
                let uuid = UUID()
                let folder = try Self.folder(uuid, in: store)
                let id: QueuedUpload.ID
                do {
                    let stored = try await StoredForm(form, request.presigned, in: folder)
                    let new = NewUpload(
                        form: try NewForm(request, as: uuid), conditions: conditions, tag: tag)
                    id = try store.database.write { try $0.insert(new, importing: stored, at: time.date()) }
                } catch {
                    folder.remove()
                    throw error
                }
                imports.withLock { $0[uuid] = form }
                record(id)
                store.log.note("Upload \(id) to \(request.url.origin) is recorded.", at: time.date())
                store.notifyChange()
                try await importItems(of: id, folder, in: store)
                return id
            }
        } catch {
            guard let id = recorded.withLock(\.self) else { throw error }
            // It is safe, and the next run goes on.
            if Self.isInterruption(error), !Task.isCancelled { return id }
            do {
                try await remove(id)
            } catch  where error.mayPass {
                // The queue has it, and the caller must know that.
                return id
            } catch {}
            throw error
        }
    }

    /// Whether an import was only interrupted: the app is suspended, or the queue's own files cannot be used now.
    private static func isInterruption(_ error: any Error) -> Bool {
        if let error = error as? UploadQueueError { return error.mayPass && error.code != .full }
        return error is CancellationError
    }

    /// Removes what the imports of uploads have left that are no longer in the queue.
    func removeImports(of uploads: [UUID], in store: QueueStore) {
        for upload in uploads {
            store.directory.removeImport(upload)
            _ = imports.withLock { $0.removeValue(forKey: upload) }
        }
    }

    private static func folder(_ uuid: UUID, in store: QueueStore) throws(UploadQueueError) -> ImportFolder {
        do throws(FileError) {
            return try ImportFolder(uuid, in: store.directory)
        } catch {
            throw UploadQueueError(error)
        }
    }

    /// Copies the items of an upload that are still missing, and writes its body.
    private func importItems(of id: QueuedUpload.ID, _ folder: ImportFolder, in store: QueueStore) async throws {
        defer {
            // All is copied, or the upload was removed meanwhile.
            if (try? store.database.read { try $0.hasImport(of: id) }) == false {
                removeImports(of: [folder.uuid], in: store)
            }
        }
        let live = imports.withLock { $0[folder.uuid] }
        guard var stored = try store.database.read({ try $0.importingForm(of: id) }),
            let row = try store.database.read({ try $0.row(id) })
        else { return }
        for (index, part) in stored.parts.enumerated() {
            guard case .picked(let record) = part.content else { continue }
            try Task.checkCancellation()
            guard let item = try await item(at: index, of: live, recordedAs: record) else { throw LostItem() }
            let copy = try await item.copy(to: folder.url)
            try folder.synchronize(copy.file)
            stored.take(copy, at: index)
            try store.database.write { [stored] in try $0.noteImport(of: id, stored) }
        }
        try Task.checkCancellation()
        let form = try stored.form(in: folder, live, finder)
        var request = QueuedRequest(
            url: row.upload.url, method: row.upload.method, headerFields: row.headerFields,
            acceptedStatuses: row.acceptedStatuses)
        request.presigned = stored.presigned
        let isFinished = try await form.withPreparedParts(within: try limits(of: request)) { [request] form in
            store.directory.removeBody(folder.uuid)
            let written = try await write(form, request, as: folder.uuid, in: store)
            return try store.database.write { try $0.finishImport(of: id, with: written) }
        }
        // It may have been cancelled or removed meanwhile.
        guard isFinished else { return store.directory.removeBody(folder.uuid) }
        store.log.note("Upload \(id) to \(request.url.origin) is in the queue.", at: time.date())
        store.notifyChange()
        sender?.handOverSoon()
        reporter?.start()
    }

    /// An item to copy: the app's own, if this run has recorded it.
    private func item(
        at index: Int, of live: MultipartForm?, recordedAs record: Data?
    ) async throws -> (any PickedItem)? {
        if case .picked(let item)? = live?.part(at: index)?.content { return item }
        guard let record else { return nil }
        return try await finder?.item(recordedAs: record)
    }

    /// Copies what imports still lack, again and again, until the task is cancelled.
    func keepImporting() async {
        while !Task.isCancelled {
            await resumeImports()
            try? await time.sleep(time.instant() + Self.pause)
        }
    }

    /// Copies what the imports lack that are tried again, whether or not the queue runs.
    func resumeImportsSoon() {
        Task { await resumeImports() }
    }

    /// Copies what imports still lack: those of an earlier run, and those of this run, if the app was suspended.
    func resumeImports() async {
        guard let store = try? await opening.store(),
            let uploads = try? store.database.read({ try $0.importingUploads() })
        else { return }
        for id in uploads where !Task.isCancelled {
            do {
                try await opening.activity.perform { [self] in
                    guard let row = try store.database.read({ try $0.row(id) }) else { return }
                    // One that is locked is being imported.
                    guard let folder = try? ImportFolder(row.uuid, in: store.directory) else { return }
                    try await importItems(of: id, folder, in: store)
                }
            } catch {
                try? settleImport(of: id, after: error, in: store)
            }
        }
    }

    /// How often items are tried that fail with an error.
    private static func tries(after error: any Error) -> Int {
        switch error {
        // A file that cannot be read may be locked now, or never be readable.
        case let error as FormError: error.mayPass ? maximumTries : 1
        case let error as any PassingError: error.mayPass ? .max : 1
        case is LostItem, is UploadError: 1
        // An error of the app's own item, or of the system, does not say.
        default: maximumTries
        }
    }

    /// Records why an import failed: for good, if it would fail again.
    private func settleImport(of id: QueuedUpload.ID, after error: any Error, in store: QueueStore) throws {
        if Self.isInterruption(error) { return }
        let failure: QueuedUpload.Failure =
            switch error {
            case is LostItem: .pickLost
            case let error as UploadQueueError where error.code == .damaged: .damaged(error.message)
            default: .notImported(error)
            }
        let tries = Self.tries(after: error)
        try store.database.write { try $0.delayImport(of: id, because: failure, atMost: tries) }
        store.log.note("What was picked for upload \(id) could not be copied: \(error)", .error, at: time.date())
        store.notifyChange()
        reporter?.start()
    }
}
