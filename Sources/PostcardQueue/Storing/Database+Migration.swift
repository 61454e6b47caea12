import GRDB
import HTTPTypes
import PostcardFiles
import PostcardForm
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Database {
    /// Brings the tables of versions 1 to 5 to the current version.
    ///
    /// Version 4 lacks a table, and both it and version 5 lack columns. The earlier versions get new tables, and their
    /// rows are copied.
    ///
    /// Versions 1 to 3 stored a form as JSON. Its files were copies in a directory per upload, or paths of files
    /// elsewhere. Copies become part of the body that is sent. Paths are not followed: with them, someone who can write
    /// to the database could have any file sent. An upload with a path fails, and its reason names the file.
    func migrateFromVersion(_ found: Int, _ directory: QueueDirectory) throws {
        if found == 5 { return try QueueDatabase.addRetryColumns(in: self) }
        if found == 4 {
            try QueueDatabase.makeDeliveryTable(in: self)
            try QueueDatabase.addRetryColumns(in: self)
        } else {
            try replaceTables(directory)
        }
        // Older versions did not note which attempts may have delivered the form. Failed uploads are left out: a server
        // that never read the form may have accepted it.
        try execute(
            sql: """
                INSERT INTO delivery SELECT id, 1 FROM upload WHERE attempts > 0 AND state NOT IN ('done', 'failed')
                """)
    }

    /// Makes new tables and copies the rows of versions 1 to 3.
    private func replaceTables(_ directory: QueueDirectory) throws {
        // Those versions had no bodies, so these are from a migration that did not finish.
        directory.removeAllBodies()
        try execute(
            sql: """
                DROP TABLE IF EXISTS handover;
                DROP INDEX upload_ready; DROP INDEX upload_due; DROP INDEX upload_sequence; DROP INDEX upload_sending;
                ALTER TABLE upload RENAME TO upload_3;
                ALTER TABLE request RENAME TO request_3;
                ALTER TABLE response RENAME TO response_3;
                """)
        try QueueDatabase.makeTables(in: self)
        let ids = try QueuedUpload.ID.fetchAll(self, sql: "SELECT id FROM upload_3 ORDER BY id")
        for id in ids { try migrateUpload(id, directory) }
        // Identifiers of removed uploads are not reused.
        try execute(
            sql: """
                DELETE FROM sqlite_sequence WHERE name = 'upload';
                UPDATE sqlite_sequence SET name = 'upload' WHERE name = 'upload_3';
                DROP TABLE response_3; DROP TABLE request_3; DROP TABLE upload_3;
                """)
    }

    private func migrateUpload(_ id: QueuedUpload.ID, _ directory: QueueDirectory) throws {
        let uuid = UUID()
        try execute(
            sql: """
                INSERT INTO upload (id, uuid, url, method, state, schedule, due, priority, networks, sequence, notBefore,
                    sent, total, attempts, failures, reason, enqueued)
                SELECT id, ?, url, method, CASE state WHEN 'sending' THEN 'waiting' ELSE state END,
                    CASE state WHEN 'sending' THEN 0 ELSE schedule END, due, priority,
                    CASE WHEN unmetered THEN 6 ELSE 0 END, sequence, notBefore, sent, total, attempts, failures, reason,
                    enqueued
                FROM upload_3 WHERE id = ?
                """, arguments: [uuid.uuidString, id])
        try execute(
            sql: "INSERT INTO response SELECT id, status, contentType, body FROM response_3 WHERE id = ?",
            arguments: [id])
        do {
            try migrateRequest(of: id, to: uuid, directory)
        } catch let error as UploadQueueError {
            // For example a full disk. The transaction is rolled back, and the next opening migrates the queue.
            throw error
        } catch let error as FileError where error.mayPass {
            throw UploadQueueError(error)
        } catch let error as FormError where error.code == .fileUnreadable {
            throw UploadQueueError.unusableDirectory(
                "The queue's directory cannot be used: \(error).", underlyingError: error)
        } catch let error as DatabaseError where error.resultCode != .SQLITE_TOOBIG {
            throw error
        } catch {
            try execute(
                sql: """
                    UPDATE upload SET state = 'failed', schedule = NULL, reason = ?
                    WHERE id = ? AND state NOT IN ('done', 'cancelled')
                    """, arguments: ["\(error)", id])
            try insertRequest(of: id, key: "", headerFields: [], contentType: "multipart/form-data", parts: [])
        }
    }

    private func migrateRequest(of id: QueuedUpload.ID, to uuid: UUID, _ directory: QueueDirectory) throws {
        let row = try Row.fetchOne(
            self,
            sql: "SELECT upload_3.state, request_3.* FROM upload_3 JOIN request_3 USING (id) WHERE id = ?",
            arguments: [id])
        guard let row else { return }
        let key = try row.decode(String.self, forColumn: "idempotencyKey")
        let state = try row.decode(String.self, forColumn: "state")
        let decoder = JSONDecoder()
        let fields = try decoder.decode(
            [UploadRow.Field].self, from: try row.decode(Data.self, forColumn: "headerFields"))
        var contentType = "multipart/form-data"
        var parts: [UploadRow.Part] = []
        if state != QueuedUpload.State.Kind.done.rawValue {
            let old = try decoder.decode(FormOfVersion3.self, from: try row.decode(Data.self, forColumn: "form"))
            let copies = try row.decode(String?.self, forColumn: "folder")
            let layout = try old.form(in: directory, copies).layout()
            (contentType, parts) = (layout.contentType, try directory.writeSynchronously(layout, for: uuid))
            let length = layout.contentLength ?? 0
            try execute(sql: "UPDATE upload SET total = ? WHERE id = ?", arguments: [length, id])
        }
        try insertRequest(of: id, key: key, headerFields: fields, contentType: contentType, parts: parts)
    }
}

/// A form as versions 1 to 3 stored it.
private struct FormOfVersion3: Decodable {
    let boundary: String
    let normalizesLineBreaks: Bool
    let parts: [Part]

    struct Part: Decodable {
        let name: String
        let filename: String?
        let contentType: String?
        let headerFields: [UploadRow.Field]
        let content: Content
    }

    enum Content: Decodable {
        case text(String)
        case bytes(Data)
        case file(path: String)
        case copy(name: String)
    }

    /// Why a form of an older version cannot be sent.
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    /// The form, with the copies of its files.
    ///
    /// - Parameter copies: The name of the directory with the copies.
    func form(in directory: QueueDirectory, _ copies: String?) throws -> MultipartForm {
        var form = MultipartForm(
            boundary: try Boundary(boundary), lineBreaks: normalizesLineBreaks ? .normalized : .asGiven)
        for part in parts {
            var fields = HTTPFields()
            for field in part.headerFields {
                if let name = HTTPField.Name(field.name) { fields.append(HTTPField(name: name, value: field.value)) }
            }
            let content: FormPart.Content
            switch part.content {
            case .text(let text): content = .text(text)
            case .bytes(let bytes): content = .bytes(bytes)
            case .file(let path):
                throw Problem(
                    description:
                        "An older version of the queue stored only the path of the file \(path) and no copy of it. "
                        + "Enqueue the form again.")
            case .copy(let name):
                content = .file(try directory.legacyFile(name, in: copies))
            }
            var copy = FormPart(name: part.name, headerFields: fields, content: content)
            copy.filename = part.filename
            copy.contentType = try part.contentType.map { try MediaType($0) }
            form.append(copy)
        }
        return form
    }
}

extension QueueDirectory {
    /// A copy that an older version made. Its name is a number, and the name of its directory a UUID.
    fileprivate func legacyFile(_ name: String, in copies: String?) throws -> URL {
        guard let copies, let uuid = UUID(uuidString: copies)?.uuidString, uuid == copies,
            let directoryName = FilePath.Component(uuid), let number = Int(name), number >= 0, "\(number)" == name,
            let fileName = FilePath.Component(name)
        else {
            throw FormOfVersion3.Problem(
                description: "The copies of its files are outside the queue's directory. Enqueue the form again.")
        }
        guard let directory = try legacyFiles()?.existingDirectory(directoryName) else {
            throw FormOfVersion3.Problem(
                description: "The copies of its files are missing. Enqueue the form again.")
        }
        // Opened first to make sure that it is not a link.
        try directory.open(fileName).close()
        return URL(filePath: directory.path.appending(fileName).string)
    }

    /// Writes the body of a migrated upload, and returns its parts.
    fileprivate func writeSynchronously(_ layout: FormLayout, for upload: UUID) throws -> [UploadRow.Part] {
        guard let name = FilePath.Component(upload.uuidString) else { return [] }
        do {
            let file = try bodies.create(name)
            let ranges = try layout.writeBodyWithoutStreams(to: file.descriptor)
            try file.synchronize()
            try bodies.synchronize()
            return UploadRow.Part.list(layout, ranges)
        } catch let error as FileError {
            throw UploadQueueError(error)
        } catch let error as Errno {
            throw UploadQueueError(FileError("write to", bodies.path, error))
        }
    }

    fileprivate func removeAllBodies() {
        for name in (try? bodies.names()) ?? [] where UUID(uuidString: name.string)?.uuidString == name.string {
            try? bodies.remove(name)
        }
    }

    /// Removes the copies of older versions, which have numbers as names, in directories with UUIDs as names.
    func removeCopiesOfOlderVersions() {
        guard let files = try? legacyFiles() else { return }
        for name in (try? files.names()) ?? [] where UUID(uuidString: name.string) != nil {
            guard let directory = try? files.existingDirectory(name) else { continue }
            for file in (try? directory.names()) ?? [] where UInt32(file.string) != nil { try? directory.remove(file) }
            try? files.removeDirectory(name)
        }
        removeLegacyFiles()
    }
}
