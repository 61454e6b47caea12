import PostcardClient
import PostcardFiles
import PostcardForm
import PostcardFoundation
import PostcardWire
import Synchronization
import SystemPackage

/// Imports the items that the user has picked for a form. The items are recorded before they are copied. If this run of
/// the app ends first, a later run copies the remaining items.
extension UploadQueue {
    /// How long to wait before another try to copy items that could not be copied.
    private static let pause = Duration.seconds(60)
    /// The maximum number of tries to copy an item after an unknown error.
    private static let maximumTries = 10

    /// Adds a form with picked items. Returns the upload's identifier, even if the app is suspended during the copying.
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
            // The upload is recorded, and the next run copies its remaining items.
            if Self.isInterruption(error), !Task.isCancelled { return id }
            do {
                try await remove(id)
            } catch  where error.mayPass {
                // The upload could not be removed and is still in the queue, so the caller must get its identifier.
                return id
            } catch {}
            throw error
        }
    }

    /// Whether an import was interrupted, because the app is being suspended or the queue's files cannot be used now.
    private static func isInterruption(_ error: any Error) -> Bool {
        if let error = error as? UploadQueueError { return error.mayPass && error.code != .full }
        return error is CancellationError
    }

    /// Removes the files of imports whose uploads are no longer in the queue.
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

    /// Copies the missing items of an upload, and writes its body.
    private func importItems(of id: QueuedUpload.ID, _ folder: ImportFolder, in store: QueueStore) async throws {
        defer {
            // All items were copied, or the upload was removed in the meantime.
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
        // The upload may have been cancelled or removed in the meantime.
        guard isFinished else { return store.directory.removeBody(folder.uuid) }
        store.log.note("Upload \(id) to \(request.url.origin) is in the queue.", at: time.date())
        store.notifyChange()
        sender?.handOverSoon()
        reporter?.start()
    }

    /// The item to copy: the app's own item if this run has recorded it, or else the item found from its record.
    private func item(
        at index: Int, of live: MultipartForm?, recordedAs record: Data?
    ) async throws -> (any PickedItem)? {
        if case .picked(let item)? = live?.part(at: index)?.content { return item }
        guard let record else { return nil }
        return try await finder?.item(recordedAs: record)
    }

    /// Copies the missing items of all imports, again and again, until the task is cancelled.
    func keepImporting() async {
        while !Task.isCancelled {
            await resumeImports()
            try? await time.sleep(time.instant() + Self.pause)
        }
    }

    /// Copies the missing items of imports that were retried, even if the queue does not run.
    func resumeImportsSoon() {
        Task { await resumeImports() }
    }

    /// Copies the missing items of imports from an earlier run, and of imports that a suspension has interrupted.
    func resumeImports() async {
        guard let store = try? await opening.store(),
            let uploads = try? store.database.read({ try $0.importingUploads() })
        else { return }
        for id in uploads where !Task.isCancelled {
            do {
                try await opening.activity.perform { [self] in
                    guard let row = try store.database.read({ try $0.row(id) }) else { return }
                    // If the folder is locked, the upload's items are already being imported.
                    guard let folder = try? ImportFolder(row.uuid, in: store.directory) else { return }
                    try await importItems(of: id, folder, in: store)
                }
            } catch {
                try? settleImport(of: id, after: error, in: store)
            }
        }
    }

    /// The maximum number of tries to copy an item that failed with an error.
    private static func tries(after error: any Error) -> Int {
        switch error {
        // A file that cannot be read may be locked now, or may never be readable.
        case let error as FormError: error.mayPass ? maximumTries : 1
        case let error as any PassingError: error.mayPass ? .max : 1
        case is LostItem, is UploadError: 1
        // For an error of the app's own item or of the system, it is unknown whether another try helps.
        default: maximumTries
        }
    }

    /// Records the error of an import. If another try would fail too, the upload fails.
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
