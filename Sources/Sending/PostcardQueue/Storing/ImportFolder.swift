import GRDB
import PostcardClient
import PostcardFiles
import PostcardForm
import PostcardFoundation
import SystemPackage

/// The folder with the files of an upload until the upload's body is written. Only one process at a time can use it.
struct ImportFolder: Sendable {
    let uuid: UUID
    let url: URL
    private let directory: PrivateDirectory
    private let lock: FileLock
    private let queue: QueueDirectory

    static let lockName: FilePath.Component = "lock"

    /// Opens the folder of an upload. Makes the folder if there is none.
    ///
    /// - Throws: `FileError`, with the errno `wouldBlock` if the folder is in use.
    init(_ uuid: UUID, in queue: QueueDirectory) throws(FileError) {
        guard let name = FilePath.Component(uuid.uuidString) else {
            throw FileError("open", queue.imports.path, Errno.invalidArgument)
        }
        self.uuid = uuid
        self.queue = queue
        url = queue.importURL(uuid)
        directory = try queue.imports.directory(name)
        lock = try directory.lock(Self.lockName)
    }

    /// The URL of a file in the folder. Throws if the name, which may be from the database, leads outside the folder.
    func file(_ name: String) throws(FileError) -> URL {
        guard let component = FilePath.Component(name), component.kind == .regular, component.string == name else {
            throw FileError("open", directory.path, Errno.invalidArgument)
        }
        return url.appending(component: name)
    }

    /// Copies the content of a part into a file, and waits until the file is on disk.
    func write(_ part: FormPart, at index: Int) async throws -> String {
        let name = "\(index)"
        guard let component = FilePath.Component(name) else { throw Errno.invalidArgument }
        var part = part
        part.metadata = .asIs
        part.preparation = nil
        _ = try await queue.write(try FormLayout(contentOf: part), as: component, in: directory)
        return name
    }

    /// Waits until a copied file is on disk.
    func synchronize(_ file: URL) throws(FileError) {
        guard let name = FilePath.Component(file.lastPathComponent) else { return }
        let opened = try directory.open(name)
        defer { try? opened.close() }
        try DurableFiles.synchronize(opened, directory.path.appending(name))
        try directory.synchronize()
    }

    /// Removes the folder and its files.
    func remove() {
        withExtendedLifetime(lock) { try? FileManager.default.removeItem(at: url) }
    }
}

/// Reads and changes uploads whose picked items are being copied. Each method is called within one transaction.
extension Database {
    /// Inserts an upload whose picked items were not copied yet.
    func insert(_ new: NewUpload, importing form: StoredForm, at now: Date) throws -> QueuedUpload.ID {
        let id = try insert(new, at: now)
        try execute(sql: "UPDATE upload SET state = 'importing', schedule = NULL WHERE id = ?", arguments: [id])
        try execute(
            sql: "INSERT INTO import (id, form) VALUES (?, ?)", arguments: [id, try JSONEncoder().encode(form)])
        return id
    }

    /// Records which items of a form were copied.
    func noteImport(of id: QueuedUpload.ID, _ form: StoredForm) throws {
        try execute(
            sql: "UPDATE import SET form = ? WHERE id = ?", arguments: [try JSONEncoder().encode(form), id])
    }

    /// The form of an upload whose picked items are being copied; `nil` if the upload has ended or was removed.
    func importingForm(of id: QueuedUpload.ID) throws -> StoredForm? {
        try Data.fetchOne(
            self, sql: "SELECT form FROM import JOIN upload USING (id) WHERE id = ? AND state = 'importing'",
            arguments: [id]
        ).map { form in
            try RowDamage.naming(id) { try JSONDecoder().decode(StoredForm.self, from: form) }
        }
    }

    /// The uploads whose picked items were not all copied yet.
    func importingUploads() throws -> [QueuedUpload.ID] {
        try QueuedUpload.ID.fetchAll(
            self, sql: "SELECT id FROM import JOIN upload USING (id) WHERE state = 'importing' ORDER BY id")
    }

    /// The names of the import folders that are still needed, even by failed uploads that may be retried.
    func importNames() throws -> Set<UUID> {
        let names = try DatabaseValue.fetchAll(self, sql: "SELECT uuid FROM upload JOIN import USING (id)")
        return Set(names.compactMap(UUID.init(bodyName:)))
    }

    func hasImport(of id: QueuedUpload.ID) throws -> Bool {
        try Bool.fetchOne(self, sql: "SELECT EXISTS (SELECT 1 FROM import WHERE id = ?)", arguments: [id]) ?? false
    }

    /// Puts an upload into the queue after all its items were copied and its body was written. Returns `false` if the
    /// upload has ended or was removed.
    func finishImport(of id: QueuedUpload.ID, with form: NewForm) throws -> Bool {
        try execute(
            sql: """
                UPDATE upload SET state = 'waiting', schedule = \(Self.place), due = coalesce(notBefore, 0), total = ?,
                    failures = 0, code = NULL, reason = NULL, advice = NULL
                WHERE id = ? AND state = 'importing'
                """, arguments: [form.totalBytes, id])
        guard changesCount == 1 else { return false }
        let encoder = JSONEncoder()
        try execute(
            sql: "UPDATE request SET contentType = ?, parts = ?, signed = ? WHERE id = ?",
            arguments: [
                form.contentType, try encoder.encode(form.parts), try form.signed.map { try encoder.encode($0) }, id,
            ])
        try execute(sql: "DELETE FROM import WHERE id = ?", arguments: [id])
        return true
    }

    /// Records the failure to copy items. Copying is tried again until the maximum number of tries is reached.
    func delayImport(of id: QueuedUpload.ID, because failure: QueuedUpload.Failure, atMost tries: Int) throws {
        try execute(
            sql: """
                UPDATE upload SET code = ?, reason = ?, advice = ?, failures = \(Self.increment("failures"))
                WHERE id = ? AND state = 'importing'
                """, arguments: [failure.code.rawValue, failure.message, failure.advice, id])
        guard changesCount == 1 else { return }
        let isLast = try Bool.fetchOne(
            self, sql: "SELECT failures >= ? FROM upload WHERE id = ?", arguments: [tries, id])
        if isLast == true { try failUpload(id, because: failure, mayHaveArrived: false) }
    }

    func forgetImport(of id: QueuedUpload.ID) throws {
        try execute(sql: "DELETE FROM import WHERE id = ?", arguments: [id])
    }

    /// Starts copying again for an upload that ended before all items were copied. Returns `false` if all were copied.
    func restartImport(of id: QueuedUpload.ID) throws -> Bool {
        try execute(
            sql: """
                UPDATE upload SET state = 'importing', schedule = NULL, failures = 0, code = NULL, reason = NULL,
                    advice = NULL, ended = NULL
                WHERE id = ? AND id IN (SELECT id FROM import)
                """, arguments: [id])
        return changesCount == 1
    }
}
