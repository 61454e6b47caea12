import Foundation
import NIOCore
import PostcardReceivingSupport
import SystemPackage
import Testing

@testable import PostcardStore

@Suite(.timeLimit(.minutes(10)))
struct LocalUploadStoreTests {
    func entries(_ path: FilePath) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path.string).sorted()
    }

    @discardableResult
    func store(
        _ content: String, in store: LocalUploadStore, under key: UploadKey? = nil
    ) async throws -> UploadRecord {
        let upload = try await store.beginUpload(under: key)
        try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: "f", contentType: "text/plain"))
        try await upload.write(ByteBuffer(string: content))
        try await upload.endFile()
        return try await upload.commit(
            fields: [UploadRecord.Field(name: "a", value: "b")], parts: [.field(0), .file(0)]
        ).record
    }

    @Test
    func `an upload is seen only once it is committed, and then also by the next store`() async throws {
        try await withTemporaryDirectory { directory in
            var known: UploadRecord?
            do {
                let store = try LocalUploadStore(directory: directory)
                let upload = try await store.beginUpload()
                try await upload.beginFile(
                    UploadRecord.FileHeader(name: "f", filename: "../f", contentType: "text/plain"))
                try await upload.write(ByteBuffer(repeating: 7, count: 1_000_000))
                try await upload.endFile()
                #expect(try await store.identifiers(limit: 10, after: nil).isEmpty)
                let record = try await upload.commit(fields: [], parts: [.file(0)]).record
                #expect(try await store.identifiers(limit: 10, after: nil) == [record.id])
                #expect(try entries(directory.appending(".incoming")).isEmpty)
                #expect(try entries(directory.appending(record.id.text)) == ["0", "record.json"])
                known = try await store.record(record.id)
                #expect(known?.files == record.files)
            }
            let store = try LocalUploadStore(directory: directory)
            let record = try #require(known)
            #expect(try await store.record(record.id) == record)
            let file = try #require(try await store.openFile(0, of: record.id))
            #expect(file.size == 1_000_000)
            #expect(try await file.read(at: 999_990, count: 100) == ByteBuffer(repeating: 7, count: 10))
        }
    }

    @Test(arguments: [0, 10, 3_000_000])
    func `an upload that is discarded leaves nothing behind, however far it had come`(size: Int) async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await store.beginUpload()
            try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: "f", contentType: "text/plain"))
            try await upload.write(ByteBuffer(repeating: 7, count: size))
            await upload.discard()
            #expect(try entries(directory) == [".incoming", ".lock", ".unfinished"])
            #expect(try entries(directory.appending(".incoming")).isEmpty)
        }
    }

    @Test
    func `what a crash left half-written or half-deleted is gone after the start, and records stay`() async throws {
        try await withTemporaryDirectory { directory in
            let record = try await store("content", in: LocalUploadStore(directory: directory))
            let left = directory.appending(".incoming").appending("01abc")
            try FileManager.default.createDirectory(atPath: left.string, withIntermediateDirectories: true)
            try Data("half".utf8).write(to: URL(filePath: left.appending("0").string))
            try Data("loose".utf8).write(to: URL(filePath: directory.appending(".incoming/loose").string))
            let store = try LocalUploadStore(directory: directory)
            #expect(try entries(directory.appending(".incoming")).isEmpty)
            #expect(try await store.identifiers(limit: 10, after: nil) == [record.id])
        }
    }

    @Test
    func `two stores cannot have one directory open, and once the first is gone the second can`() async throws {
        try await withTemporaryDirectory { directory in
            do {
                let first = try LocalUploadStore(directory: directory)
                let error = #expect(throws: UploadStoreError.self) { try LocalUploadStore(directory: directory) }
                #expect(error?.code == .inUse)
                #expect(error?.message.contains(directory.string) == true)
                #expect(try await first.identifiers(limit: 1, after: nil).isEmpty)
            }
            _ = try LocalUploadStore(directory: directory)
        }
    }

    @Test
    func `a directory is made with all above it that are missing`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory.appending("a/b/c"))
            let record = try await self.store("content", in: store)
            #expect(try entries(directory.appending("a/b/c")) == [".incoming", ".lock", ".unfinished", record.id.text])
        }
    }

    @Test
    func `a directory whose name is no text is refused`() async throws {
        let name: [CInterop.PlatformChar] = [47, 116, 109, 112, 47, -1, 0]
        let path = FilePath(platformString: name)
        let error = #expect(throws: UploadStoreError.self) { try LocalUploadStore(directory: path) }
        #expect(error?.code == .unusableDirectory)
    }

    @Test
    func `two hundred small files become one record, in their order`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await store.beginUpload()
            for index in 0..<200 {
                try await upload.beginFile(
                    UploadRecord.FileHeader(name: "f", filename: "\(index)", contentType: "text/plain"))
                try await upload.write(ByteBuffer(string: "\(index)"))
                try await upload.endFile()
            }
            let record = try await upload.commit(fields: [], parts: (0..<200).map { .file($0) }).record
            let names: [String] = (0..<200).map { "\($0)" }
            #expect(record.files.map(\.filename) == names)
            let file = try #require(try await store.openFile(150, of: record.id))
            #expect(try await file.read(at: 0, count: 100) == ByteBuffer(string: "150"))
        }
    }

    @Test
    func `a directory that is a file is refused by name`() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory.appending("file")
            try Data().write(to: URL(filePath: path.string))
            let error = #expect(throws: UploadStoreError.self) { try LocalUploadStore(directory: path) }
            #expect(error?.code == .unusableDirectory)
            #expect(error?.message.contains(path.string) == true)
            #expect(error?.message.hasSuffix(": Not a directory") == true)
        }
    }

    @Test
    func `a directory for what is being received that vanishes is made again, and the store's own is not`() async throws
    {
        try await withTemporaryDirectory { directory in
            let path = directory.appending("store")
            let store = try LocalUploadStore(directory: path)
            let incoming = path.appending(".incoming").string
            try FileManager.default.removeItem(atPath: incoming)
            let record = try await self.store("a", in: store)
            try FileManager.default.removeItem(atPath: incoming)
            #expect(try await store.delete(record.id))
            try FileManager.default.removeItem(atPath: path.string)
            let error = await #expect(throws: UploadStoreError.self) { try await self.store("a", in: store) }
            #expect(error?.code == .unavailable)
            // Another receiver could have it by now.
            #expect(!FileManager.default.fileExists(atPath: path.string))
        }
    }

    @Test
    func `what is put into the directory by hand is listed by the next store, and what is taken out is not listed`()
        async throws
    {
        try await withTemporaryDirectory { directory in
            var records: [UploadID] = []
            let late = "01kz5dr1c10123456789abcdef"
            do {
                let store = try LocalUploadStore(directory: directory)
                for index in 0..<3 { records.append(try await self.store("\(index)", in: store).id) }
                // The folder is not read for a listing, however many records there are.
                try FileManager.default.copyItem(
                    atPath: directory.appending(records[0].text).string, toPath: directory.appending(late).string)
                #expect(try await store.identifiers(limit: 10, after: nil) == records.reversed())
                try FileManager.default.removeItem(atPath: directory.appending(records[1].text).string)
                #expect(try await store.record(records[1]) == nil)
                #expect(try await store.identifiers(limit: 10, after: nil) == [records[2], records[0]])
                #expect(try await store.identifiers(limit: 1, after: records[1]) == [records[0]])
            }
            let store = try LocalUploadStore(directory: directory)
            let expected = try ([records[0], records[2], #require(UploadID(late))]).sorted(by: >)
            #expect(try await store.identifiers(limit: 10, after: nil) == expected)
        }
    }

    @Test
    func `a record whose folder was removed by hand cannot be deleted, and is no longer listed`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let kept = try await self.store("kept", in: store)
            let removed = try await self.store("removed", in: store)
            try FileManager.default.removeItem(atPath: directory.appending(removed.id.text).string)
            #expect(try await store.delete(removed.id) == false)
            #expect(try await store.identifiers(limit: 10, after: nil) == [kept.id])
        }
    }

    @Test
    func `by default 64 MiB of the disk stay free, and a store is swept every minute`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            #expect(store.directory.keptFreeBytes == 67_108_864)
            #expect(store.sweepInterval == .seconds(60))
        }
    }

    @Test
    func `without room a large form is refused by its length, a small one when it is written, and a known one is not`()
        async throws
    {
        try await withTemporaryDirectory { directory in
            let key = UploadKey("key", scope: "")
            let known = try await store(
                "content", in: LocalUploadStore(directory: directory, keptFreeBytes: 0), under: key)
            let full = try LocalUploadStore(directory: directory, keptFreeBytes: .max)
            _ = try await full.beginUpload(announcedBytes: 1_048_576)
            let large = await #expect(throws: UploadStoreError.self) {
                _ = try await full.beginUpload(announcedBytes: 1_048_577)
            }
            #expect(large?.code == .full)
            let small = await #expect(throws: UploadStoreError.self) { try await self.store("content", in: full) }
            #expect(small?.code == .full)
            #expect(try entries(directory.appending(".incoming")).isEmpty)
            _ = try await full.beginUpload(under: key, announcedBytes: 1_048_577)
            #expect(try await self.store("content", in: full, under: key).id == known.id)
        }
    }

    @Test
    func `a check of whether a store works leaves nothing behind`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            try await store.checkReadiness()
            #expect(try entries(directory.appending(".incoming")).isEmpty)
        }
    }

    @Test
    func `a record is in the outbox until it is settled or deleted, also for the next store`() async throws {
        try await withTemporaryDirectory { directory in
            var ids: [UploadID] = []
            do {
                let store = try LocalUploadStore(directory: directory)
                let unannounced = try await self.store("before", in: store).id
                #expect(try await store.outbox().isEmpty)
                store.keepOutbox()
                for index in 0..<3 { ids.append(try await self.store("\(index)", in: store).id) }
                #expect(try await store.outbox() == ids)
                #expect(try await store.isInOutbox(ids[0]))
                #expect(try await store.isInOutbox(unannounced) == false)
                // After a crash it may be settled again.
                for _ in 0..<2 { try await store.settle(ids[0]) }
                #expect(try await store.delete(ids[1]))
                #expect(try await store.outbox() == [ids[2]])
            }
            let store = try LocalUploadStore(directory: directory)
            _ = try await self.store("without a webhook", in: store)
            #expect(try await store.outbox() == [ids[2]])
            try await store.settle(ids[2])
            #expect(try await store.outbox().isEmpty)
            #expect(try await store.isInOutbox(ids[2]) == false)
        }
    }

    @Test
    func `identifiers of one store only grow, also across its openings`() async throws {
        try await withTemporaryDirectory { directory in
            var ids: [UploadID] = []
            for _ in 0..<3 {
                let store = try LocalUploadStore(directory: directory)
                for _ in 0..<20 { ids.append(try await self.store("x", in: store).id) }
            }
            #expect(ids == ids.sorted())
            #expect(Set(ids).count == 60)
            let store = try LocalUploadStore(directory: directory)
            #expect(try await store.identifiers(limit: 100, after: nil) == ids.reversed())
        }
    }

    @Test func `a record can be deleted once its commit has ended, and its key is then free`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            for round in 0..<50 {
                let key = UploadKey("\(round)", scope: "")
                async let commit = store.beginUpload(under: key).commit(fields: [], parts: [])
                // As soon as there is something to delete.
                var isDeleted = false
                while !isDeleted {
                    let names = try FileManager.default.contentsOfDirectory(atPath: directory.string)
                    if let id = names.lazy.compactMap({ UploadID($0) }).first { isDeleted = try await store.delete(id) }
                    await Task.yield()
                }
                _ = try await commit
                #expect(store.keys.record(under: key) == nil)
                #expect(try await store.identifiers(limit: 10, after: nil).isEmpty)
            }
        }
    }

    @Test
    func `an open file stays readable when its upload is deleted`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let record = try await self.store("content", in: store)
            let file = try #require(try await store.openFile(0, of: record.id))
            #expect(try await store.delete(record.id))
            #expect(try await store.delete(record.id) == false)
            #expect(try entries(directory) == [".incoming", ".lock", ".unfinished"])
            #expect(try await file.read(at: 0, count: 100) == ByteBuffer(string: "content"))
        }
    }
}
