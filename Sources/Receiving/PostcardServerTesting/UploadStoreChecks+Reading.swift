import NIOCore
import PostcardStore

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

    /// Stores forms without files, one after the other.
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
            // The next page begins after a record whether or not it still exists, and new records do not shift it.
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
