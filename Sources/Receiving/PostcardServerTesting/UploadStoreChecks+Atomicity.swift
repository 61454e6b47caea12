import NIOCore
import PostcardStore

extension UploadStoreChecks {
    func nothingIsSeenBeforeTheCommit(_ store: some UploadStore) async throws {
        let upload = try await store.beginUpload(under: nil, announcedBytes: nil)
        try await feed(Form(), to: upload)
        let before = try await all(store)
        try expect(before.isEmpty, "An upload is listed before it is committed.")
        let record = try await upload.commit(fields: Form().fields, parts: Form().parts).record
        let after = try await all(store)
        try expect(after == [record.id], "A committed upload is not listed.")
    }

    func recordHoldsWhatWasSent(_ store: some UploadStore) async throws {
        let large = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let form = Form(files: [
            Form.File(filename: "", content: []),
            Form.File(filename: "큰 그림\r\n\".png", content: large),
            Form.File(filename: "a", content: [0], pieceBytes: 1),
            Form.File(filename: "a", content: Array(large.prefix(5000)), pieceBytes: 7),
            Form.File(filename: "/etc/passwd", content: []),
        ])
        let record = try await self.store(form, in: store)
        try await expectStored(form, as: record, in: store)
        let empty = Form(fields: [], files: [])
        try await expectStored(empty, as: try await self.store(empty, in: store), in: store)
    }

    func discardedUploadLeavesNothing(_ store: some UploadStore) async throws {
        for size in [0, 10, 3_000_000] {
            for isFileEnded in [false, true] {
                let upload = try await store.beginUpload(under: nil, announcedBytes: nil)
                try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: "f", contentType: "text/plain"))
                try await upload.write(ByteBuffer(repeating: 7, count: size))
                if isFileEnded { try await upload.endFile() }
                await upload.discard()
            }
        }
        let listed = try await all(store)
        try expect(listed.isEmpty, "A discarded upload is listed.")
        try await self.store(in: store)
    }

    func abandonedUploadLeavesNothing<Store: UploadStore>(_ open: () async throws -> Store) async throws {
        do {
            let upload = try await open().beginUpload(under: nil, announcedBytes: nil)
            try await feed(
                Form(files: [Form.File(filename: "f", content: Array(repeating: 7, count: 1 << 20))]), to: upload)
        }
        let reopened = try await open()
        let listed = try await all(reopened)
        try expect(listed.isEmpty, "An upload that was never committed is listed after the restart.")
        try await store(in: reopened)
    }

    func uploadsAtOnceStayApart(_ store: some UploadStore) async throws {
        let forms = (0..<20).map { index in
            Form(
                fields: [UploadRecord.Field(name: "index", value: "\(index)")],
                files: [Form.File(filename: "f", content: Array(repeating: UInt8(index), count: 1 << 20))])
        }
        try await withThrowingTaskGroup { group in
            for form in forms {
                group.addTask {
                    let record = try await self.store(form, in: store)
                    try await expectStored(form, as: record, in: store)
                }
            }
            try await group.waitForAll()
        }
        let listed = try await all(store)
        try expect(Set(listed).count == forms.count, "Of \(forms.count) uploads at once \(listed.count) are listed.")
    }

    func recordsSurviveReopening<Store: UploadStore>(_ open: () async throws -> Store) async throws {
        let record = try await store(in: open())
        do {
            let reopened = try await open()
            try await expectStored(Form(), as: record, in: reopened)
            let second = try await store(in: reopened)
            try expect(second.id > record.id, "An identifier is not greater than those from before the restart.")
        }
        let listed = try await all(open())
        try expect(listed.count == 2, "Of two records \(listed.count) survived the restart.")
    }
}
