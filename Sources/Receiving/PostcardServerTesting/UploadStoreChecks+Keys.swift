import PostcardStore

extension UploadStoreChecks {
    private static var key: UploadKey { UploadKey("key", scope: "") }

    func keyGivesTheFirstRecord(_ store: some UploadStore) async throws {
        let made = try await commit(to: store, under: Self.key)
        try expect(!made.isRepetition, "A key's first upload is said to be a repetition.")
        let first = made.record
        for _ in 0..<3 {
            let again = try await commit(to: store, under: Self.key)
            try expect(again.record.id == first.id, "A key's second upload is not answered with the first record.")
            try expect(again.isRepetition, "A key's second upload is not said to be a repetition.")
        }
        try await expectStored(Form(), as: first, in: store)
        let unkeyed = try await self.store(in: store)
        try expect(unkeyed.id != first.id, "An upload without a key is answered with the record of one.")
        let listed = try await all(store)
        try expect(listed == [unkeyed.id, first.id], "A key has \(listed.count - 1) records.")
    }

    func keyGivesTheFirstRecordAfterReopening<Store: UploadStore>(_ open: () async throws -> Store) async throws {
        let first = try await store(in: open(), under: Self.key)
        let reopened = try await open()
        let again = try await store(in: reopened, under: Self.key)
        try expect(again.id == first.id, "After the restart a key's upload makes a second record.")
        let listed = try await all(reopened)
        try expect(listed == [first.id], "A key has \(listed.count) records after the restart.")
    }

    func keyGivesOneRecordToManyAtOnce(_ store: some UploadStore) async throws {
        let uploads = try await withThrowingTaskGroup { group in
            for _ in 0..<50 { group.addTask { try await self.commit(to: store, under: Self.key) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let ids = Set(uploads.map(\.record.id))
        let made = uploads.count { !$0.isRepetition }
        try expect(made == 1, "Of fifty uploads of one key at once \(made) are said to have made a record.")
        let listed = try await all(store)
        try expect(ids.count == 1, "Fifty uploads of one key at once were answered with \(ids.count) records.")
        try expect(Set(listed) == ids, "A key has \(listed.count) records.")
    }

    func keyOfAnotherContentIsRefused(_ store: some UploadStore) async throws {
        let first = try await self.store(in: store, under: Self.key)
        let others = [
            Form(fields: []), Form(files: []), Form(fields: Form().fields.reversed()),
            Form(files: [Form.File(filename: "other", content: Array("content".utf8))]),
            Form(files: [Form.File(filename: "../a.bin", content: Array("CONTENT".utf8))]),
        ]
        for other in others {
            do {
                try await self.store(other, in: store, under: Self.key)
                try expect(false, "A key's upload of another content is not refused.")
            } catch let error as UploadStoreError {
                try expect(error.code == .keyReused, "A key's upload of another content fails with: \(error)")
            }
        }
        let listed = try await all(store)
        try expect(listed == [first.id], "What was refused is listed.")
    }

    func keyOfAnotherScopeIsAnotherKey(_ store: some UploadStore) async throws {
        let first = try await self.store(in: store, under: Self.key)
        let second = try await self.store(in: store, under: UploadKey("key", scope: "other"))
        try expect(first.id != second.id, "The keys of two senders name one record.")
    }

    func keyIsFreeAfterDeletion(_ store: some UploadStore) async throws {
        let first = try await self.store(in: store, under: Self.key)
        _ = try await store.delete(first.id)
        let second = try await self.store(in: store, under: Self.key)
        try expect(first.id != second.id, "A key is answered with a deleted record.")
        let third = try await self.store(in: store, under: Self.key)
        try expect(second.id == third.id, "A key has two records after its first one was deleted.")
    }

    func keyIsFreeAfterFailure(_ store: some UploadStore) async throws {
        let failing = try await store.beginUpload(under: Self.key, announcedBytes: nil)
        try await feed(Form(fields: [], files: []), to: failing)
        await failing.discard()
        let record = try await self.store(in: store, under: Self.key)
        try await expectStored(Form(), as: record, in: store)
    }
}
