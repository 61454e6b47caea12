import NIOCore
import PostcardFoundation
import PostcardStore

/// The implementations of the checks in ``UploadStoreCheck``, and their shared code.
struct UploadStoreChecks {
    let check: UploadStoreCheck

    struct Form: Sendable {
        var fields = [
            UploadRecord.Field(name: "이름", value: "초코"), UploadRecord.Field(name: "이름", value: ""),
            UploadRecord.Field(name: "이름", value: "café", bytes: Data([0x63, 0x61, 0x66, 0xE9])),
        ]
        var files = [File(filename: "../a.bin", content: Array("content".utf8))]

        /// All files before all fields, unlike the default order of a record.
        var parts: [UploadRecord.Part] {
            files.indices.map(UploadRecord.Part.file) + fields.indices.map(UploadRecord.Part.field)
        }

        struct File: Sendable {
            var filename: String
            var content: [UInt8]
            /// The number of bytes in each write.
            var pieceBytes = 1 << 16
        }
    }

    func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws(UploadStoreViolation) {
        guard condition else { throw UploadStoreViolation(check: check.rawValue, message: message()) }
    }

    func unwrap<Value>(_ value: Value?, _ message: @autoclosure () -> String) throws(UploadStoreViolation) -> Value {
        guard let value else { throw UploadStoreViolation(check: check.rawValue, message: message()) }
        return value
    }

    func feed(_ form: Form, to upload: some PendingUpload) async throws {
        for file in form.files {
            try await upload.beginFile(
                UploadRecord.FileHeader(
                    name: "file", filename: file.filename, sentFilename: "a/" + file.filename,
                    contentType: "text/plain"))
            var rest = file.content[...]
            while !rest.isEmpty {
                try await upload.write(ByteBuffer(bytes: rest.prefix(file.pieceBytes)))
                rest = rest.dropFirst(file.pieceBytes)
            }
            try await upload.endFile()
        }
    }

    @discardableResult
    func store(
        _ form: Form = Form(), in store: some UploadStore, under key: UploadKey? = nil
    ) async throws -> UploadRecord {
        try await commit(form, to: store, under: key).record
    }

    func commit(
        _ form: Form = Form(), to store: some UploadStore, under key: UploadKey? = nil
    ) async throws -> CommittedUpload {
        let upload = try await store.beginUpload(under: key, announcedBytes: nil)
        do {
            try await feed(form, to: upload)
            return try await upload.commit(fields: form.fields, parts: form.parts)
        } catch {
            await upload.discard()
            throw error
        }
    }

    func all(_ store: some UploadStore) async throws -> [UploadID] {
        try await store.identifiers(limit: 1000, after: nil)
    }

    func content(_ index: Int, of record: UploadRecord, in store: some UploadStore) async throws -> [UInt8] {
        let file = try unwrap(
            try await store.openFile(index, of: record.id), "File \(index) of the record is not there.")
        let content = try await file.read(at: 0, count: Int(file.size) + 1)
        try expect(content.readableBytes == Int(file.size), "A file has not the size that it says.")
        return Array(content.readableBytesView)
    }

    func expectStored(_ form: Form, as record: UploadRecord, in store: some UploadStore) async throws {
        let stored = try unwrap(try await store.record(record.id), "A committed record is not there.")
        try expect(stored.fields == form.fields && record.fields == form.fields, "The fields are not those sent.")
        try expect(stored.parts == form.parts, "The parts are not in the order in which they were sent.")
        try expect(stored.files == record.files, "The record that is read is not the one that was committed.")
        try expect(
            stored.files.map(\.filename) == form.files.map(\.filename)
                && stored.files.map(\.sentFilename) == form.files.map { "a/" + $0.filename },
            "The filenames are not those sent.")
        for (index, file) in form.files.enumerated() {
            try expect(stored.files[index].size == Int64(file.content.count), "A file's size is not that sent.")
            let content = try await content(index, of: record, in: store)
            try expect(content == file.content, "A file's bytes are not those sent.")
        }
    }
}

extension UploadStoreChecks {
    func filesAreReadInPieces(_ store: some UploadStore) async throws {
        let content = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
        let record = try await self.store(Form(files: [Form.File(filename: "f", content: content)]), in: store)
        let file = try unwrap(try await store.openFile(0, of: record.id), "The file is not there.")
        for (offset, count) in [(0, 1), (0, 1000), (990, 100), (500, 0), (999, 1), (1000, 5)] {
            let piece = try await file.read(at: Int64(offset), count: count)
            try expect(
                piece.readableBytesView.elementsEqual(content.dropFirst(offset).prefix(count)),
                "Reading \(count) bytes at \(offset) of 1000 gave other bytes.")
        }
        let second = try await store.openFile(1, of: record.id)
        try expect(second == nil, "There is a file behind the last one.")
    }

    /// Stores a number of forms without files, one after the other.
    private func commit(_ count: Int, to store: some UploadStore) async throws -> [UploadID] {
        var identifiers: [UploadID] = []
        while identifiers.count < count {
            let record = try await self.store(Form(files: []), in: store)
            identifiers.append(record.id)
        }
        return identifiers
    }

    func listingIsNewestFirst(_ store: some UploadStore) async throws {
        let committed = try await commit(10, to: store)
        try expect(committed == committed.sorted(), "A later record has a smaller identifier.")
        let listed = try await all(store)
        try expect(listed == committed.reversed(), "The listing is not newest first.")
    }

    func listingResumesBehindAnIdentifier(_ store: some UploadStore) async throws {
        let committed = try await commit(7, to: store)
        var paged: [UploadID] = []
        while true {
            let page = try await store.identifiers(limit: 3, after: paged.last)
            try expect(page.count <= 3, "A page is longer than asked for.")
            paged += page
            // A page can begin after a deleted record, and new records do not shift it.
            guard let last = page.last else { break }
            _ = try await store.delete(last)
            _ = try await self.store(Form(files: []), in: store)
        }
        try expect(paged == committed.reversed(), "Page after page the listing is not the records, each of them once.")
    }

    func unknownIdentifiersAreNoError(_ store: some UploadStore) async throws {
        let record = try await self.store(in: store)
        _ = try await store.delete(record.id)
        let found = try await store.record(record.id)
        let file = try await store.openFile(0, of: record.id)
        let wasDeleted = try await store.delete(record.id)
        try expect(found == nil && file == nil && !wasDeleted, "There is something under an unknown identifier.")
    }

    func deletingRemovesTheRecord(_ store: some UploadStore) async throws {
        let kept = try await self.store(in: store)
        let doomed = try await self.store(in: store)
        let wasThere = try await store.delete(doomed.id)
        try expect(wasThere, "Deleting a record says that there was none.")
        let listed = try await all(store)
        try expect(listed == [kept.id], "After a deletion the listing is not what is left.")
        try await expectStored(Form(), as: kept, in: store)
    }

    func openFilesOutliveTheirRecord(_ store: some UploadStore) async throws {
        let record = try await self.store(in: store)
        let file = try unwrap(try await store.openFile(0, of: record.id), "The file is not there.")
        _ = try await store.delete(record.id)
        let content = try await file.read(at: 0, count: 100)
        try expect(content == ByteBuffer(string: "content"), "An open file changes when its record is deleted.")
    }
}
