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
    /// Brings the tables of versions 1 to 4 to the current version.
    ///
    /// Version 4 lacks one table. Those before it get new tables, to which their rows are copied.
    ///
    /// Versions 1 to 3 kept a form as JSON with its texts, with copies of files in a folder for each upload, or with the paths
    /// of files elsewhere. Copies become the body that is sent. Paths are not followed, because anyone who can write to the
    /// database could name any file with them: such an upload fails and says so.
    func migrateFromVersion(_ found: Int, _ folder: QueueFolder) throws {
        if found == 4 { try QueueDatabase.makeDeliveryTable(in: self) } else { try replaceTables(folder) }
        // Older versions did not note which attempts may have delivered the form. What has failed is left out: it may have
        // failed because a server that does not know it accepted it too early.
        try execute(
            sql: """
                INSERT INTO delivery SELECT id, 1 FROM upload WHERE attempts > 0 AND state NOT IN ('done', 'failed')
                """)
    }

    /// Makes new tables and copies the rows of versions 1 to 3.
    private func replaceTables(_ folder: QueueFolder) throws {
        // What an earlier start has left that could not finish: those versions had no bodies.
        folder.removeAllBodies()
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
        for id in ids { try migrateUpload(id, folder) }
        // Identifiers of uploads that were removed are not used again.
        try execute(
            sql: """
                DELETE FROM sqlite_sequence WHERE name = 'upload';
                UPDATE sqlite_sequence SET name = 'upload' WHERE name = 'upload_3';
                DROP TABLE response_3; DROP TABLE request_3; DROP TABLE upload_3;
                """)
    }

    private func migrateUpload(_ id: QueuedUpload.ID, _ folder: QueueFolder) throws {
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
            try migrateRequest(of: id, to: uuid, folder)
        } catch let error as UploadQueueError {
            // A full disk, say: the old tables are kept, and the next start tries again.
            throw error
        } catch let error as FileError where error.mayPass {
            throw UploadQueueError(error)
        } catch let error as FormError where error.code == .fileUnreadable {
            throw UploadQueueError(
                .unusableDirectory, "The queue's directory cannot be used. \(error)", underlying: error)
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

    private func migrateRequest(of id: QueuedUpload.ID, to uuid: UUID, _ folder: QueueFolder) throws {
        let row = try Row.fetchOne(
            self,
            sql: "SELECT upload_3.state, request_3.* FROM upload_3 JOIN request_3 USING (id) WHERE id = ?",
            arguments: [id])
        guard let row else { return }
        let key = try row.decode(String.self, forColumn: "idempotencyKey")
        let state = try row.decode(String.self, forColumn: "state")
        let decoder = JSONDecoder()
        let fields = try decoder.decode(
            [UploadRecord.Field].self, from: try row.decode(Data.self, forColumn: "headerFields"))
        var contentType = "multipart/form-data"
        var parts: [UploadRecord.Part] = []
        if state != QueuedUpload.State.Kind.done.rawValue {
            let old = try decoder.decode(FormOfVersion3.self, from: try row.decode(Data.self, forColumn: "form"))
            let files = try row.decode(String?.self, forColumn: "folder")
            let layout = try old.form(in: folder, files).layout()
            (contentType, parts) = (layout.contentType, try folder.writeSynchronously(layout, for: uuid))
            let length = layout.contentLength ?? 0
            try execute(sql: "UPDATE upload SET total = ? WHERE id = ?", arguments: [length, id])
        }
        try insertRequest(of: id, key: key, headerFields: fields, contentType: contentType, parts: parts)
    }
}

/// A form as versions 1 to 3 kept it.
private struct FormOfVersion3: Decodable {
    let boundary: String
    let normalizesLineBreaks: Bool
    let parts: [Part]

    struct Part: Decodable {
        let name: String
        let filename: String?
        let contentType: String?
        let headerFields: [UploadRecord.Field]
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

    func form(in folder: QueueFolder, _ files: String?) throws -> MultipartForm {
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
                        "An older version noted only where its file \(path) was, and this version keeps a copy "
                        + "of what it sends. Enqueue the form again.")
            case .copy(let name):
                content = .file(try folder.legacyFile(name, in: files))
            }
            var copy = FormPart(name: part.name, headerFields: fields, content: content)
            copy.filename = part.filename
            copy.contentType = try part.contentType.map { try MediaType($0) }
            form.append(copy)
        }
        return form
    }
}

extension QueueFolder {
    /// A copy that an older version made, which is a number in a folder named by a UUID.
    fileprivate func legacyFile(_ name: String, in files: String?) throws -> URL {
        guard let files, let folder = UUID(uuidString: files)?.uuidString, folder == files,
            let folderName = FilePath.Component(folder), let number = Int(name), number >= 0, "\(number)" == name,
            let fileName = FilePath.Component(name)
        else { throw FormOfVersion3.Problem(description: "Its copies are not where the queue keeps them.") }
        guard let directory = try legacyFiles()?.existingDirectory(folderName) else {
            throw FormOfVersion3.Problem(description: "Its copies are gone. Enqueue the form again.")
        }
        // Looked at first, because it must not be a link.
        try directory.open(fileName).close()
        return URL(filePath: directory.path.appending(fileName).string)
    }

    /// Writes a body of an older version and says where its parts are.
    fileprivate func writeSynchronously(_ layout: FormLayout, for upload: UUID) throws -> [UploadRecord.Part] {
        guard let name = FilePath.Component(upload.uuidString) else { return [] }
        do {
            let file = try bodies.create(name)
            let ranges = try layout.writeBodyWithoutStreams(to: file.descriptor)
            try file.synchronize()
            try bodies.synchronize()
            return UploadRecord.Part.list(layout, ranges)
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

    /// Removes the copies of older versions, by the names that those gave: numbers in folders named by UUIDs.
    func removeCopiesOfOlderVersions() {
        guard let files = try? legacyFiles() else { return }
        for name in (try? files.names()) ?? [] where UUID(uuidString: name.string) != nil {
            guard let folder = try? files.existingDirectory(name) else { continue }
            for file in (try? folder.names()) ?? [] where UInt32(file.string) != nil { try? folder.remove(file) }
            try? files.removeDirectory(name)
        }
        removeLegacyFiles()
    }
}

extension UploadRecord.Part {
    /// The parts of a body that was written.
    static func list(_ layout: FormLayout, _ ranges: [Range<Int64>]) -> [UploadRecord.Part] {
        zip(layout.parts, ranges).map { part, range in
            UploadRecord.Part(
                name: part.name, filename: part.filename, contentType: part.contentType?.value,
                offset: range.lowerBound, length: range.upperBound - range.lowerBound)
        }
    }
}
