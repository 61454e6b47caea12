import Foundation
import NIOCore
import PostcardReceivingSupport
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardStore

/// Files that are not as they were written, or that cannot be read.
extension LocalUploadStoreTests {
    /// Stores a form with a field and a file.
    private func store(fieldBytes: Int, content: String, in store: LocalUploadStore) async throws -> UploadRecord {
        let upload = try await store.beginUpload()
        try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: "f", contentType: "text/plain"))
        if !content.isEmpty { try await upload.write(ByteBuffer(string: content)) }
        try await upload.endFile()
        let field = UploadRecord.Field(name: "a", value: String(repeating: "x", count: fieldBytes))
        return try await upload.commit(fields: [field], parts: [.field(0), .file(0)]).record
    }

    /// Changes the file of a record.
    private func change(_ id: UploadID, in directory: FilePath, _ change: (String) -> String) throws {
        let file = URL(filePath: directory.appending(id.text).appending("record.json").string)
        let text = try String(contentsOf: file, encoding: .utf8)
        let changed = change(text)
        try #require(changed != text)
        try Data(changed.utf8).write(to: file)
    }

    @Test
    func `a damaged record is no longer listed, and its key is free`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let (key, other) = (UploadKey("1", scope: ""), UploadKey("2", scope: ""))
            let damaged = try await self.store("content", in: store, under: key)
            let kept = try await self.store("content", in: store, under: other)
            try change(damaged.id, in: directory) { _ in "{}" }
            let error = await #expect(throws: UploadStoreError.self) { try await store.record(damaged.id) }
            #expect(error?.code == .damaged)
            #expect(try await store.identifiers(limit: 10, after: nil) == [kept.id])
            #expect(store.damagedCount == 1)
            #expect(try await self.store("content", in: store, under: other).id == kept.id)
            let again = try await self.store("content", in: store, under: key)
            #expect(try await store.identifiers(limit: 10, after: nil) == [again.id, kept.id])
        }
    }

    @Test
    func `a key whose record was removed by hand is free once an upload under it has failed`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let key = UploadKey("key", scope: "")
            let removed = try await self.store("content", in: store, under: key)
            try FileManager.default.removeItem(atPath: directory.appending(removed.id.text).string)
            let error = await #expect(throws: UploadStoreError.self) {
                try await self.store("content", in: store, under: key)
            }
            #expect(error?.code == .unavailable)
            #expect(error?.advice == "Send it again.")
            let record = try await self.store("content", in: store, under: key)
            #expect(try await store.identifiers(limit: 10, after: nil) == [record.id])
        }
    }

    @Test(arguments: ["0", "record.json"])
    func `a file that has a second name is not read, and nothing is set aside, until that name is gone`(name: String)
        async throws
    {
        try await withTemporaryDirectory { directory in
            let place = directory.appending("store")
            let store = try LocalUploadStore(directory: place)
            let record = try await self.store("content", in: store)
            let folder = place.appending(record.id.text)
            let second = directory.appending("second").string
            try FileManager.default.linkItem(atPath: folder.appending(name).string, toPath: second)
            let error = await #expect(throws: UploadStoreError.self) {
                _ = try await store.record(record.id)
                _ = try await store.openFile(0, of: record.id)
            }
            #expect(error?.code == .unavailable)
            #expect(error?.message.hasSuffix(": it has a second name elsewhere") == true)
            #expect(store.damagedCount == 0)
            #expect(try await store.identifiers(limit: 10, after: nil) == [record.id])
            try FileManager.default.removeItem(atPath: second)
            #expect(try await store.record(record.id)?.files == record.files)
            let content = try await store.openFile(0, of: record.id)?.read(at: 0, count: 100)
            #expect(content == ByteBuffer(string: "content"))
            #if os(Linux)
            let resolved = URL(filePath: folder.string).resolvingSymlinksInPath()
            try await eventually { try OpenDescriptors.files(in: resolved) == 0 }
            #endif
        }
    }

    @Test
    func `a link in the place of a record's file is damage, and the record is set aside with its files`() async throws {
        try await withTemporaryDirectory { directory in
            let place = directory.appending("store")
            let store = try LocalUploadStore(directory: place)
            let record = try await self.store("content", in: store)
            let path = place.appending(record.id.text).appending("record.json").string
            let elsewhere = directory.appending("elsewhere").string
            try FileManager.default.moveItem(atPath: path, toPath: elsewhere)
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: elsewhere)
            let error = await #expect(throws: UploadStoreError.self) { try await store.record(record.id) }
            #expect(error?.code == .damaged)
            #expect(store.damagedCount == 1)
            #expect(try entries(place.appending(".damaged").appending(record.id.text)) == ["0", "record.json"])
        }
    }

    @Test(arguments: [10, 70_000])
    func `a file that is described otherwise than it was written is damage, in a small record and in a large one`(
        fieldBytes: Int
    ) async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            for number in 1...3 {
                let record = try await self.store(fieldBytes: fieldBytes, content: "0123456789", in: store)
                let file = record.files[0]
                // The same number of bytes, because in a large record the description is found by its offset.
                let changes = [
                    (#""size":10,"#, #""size":-1,"#), ("/files/0", "/files/1"), (file.sha256, file.sha256.uppercased()),
                ]
                let (old, new) = changes[number - 1]
                try change(record.id, in: directory) { $0.replacing(old, with: new) }
                let error = await #expect(throws: UploadStoreError.self) {
                    try await store.describedFile(0, of: record.id)
                }
                #expect(error?.code == .damaged)
                #expect(store.damagedCount == number)
            }
        }
    }

    @Test
    func `a small record is served only if all of it is as it was written, and a large one if it has its end`()
        async throws
    {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let small = try await self.store(fieldBytes: 10, content: "0123456789", in: store)
            try change(small.id, in: directory) { $0.replacing(#""size":10,"#, with: #""size":-1,"#) }
            let large = try await self.store(fieldBytes: 70_000, content: "0123456789", in: store)
            try change(large.id, in: directory) { String($0.dropLast()) }
            for id in [small.id, large.id] {
                let error = await #expect(throws: UploadStoreError.self) { _ = try await store.openRecord(id) }
                #expect(error?.code == .damaged)
            }
        }
    }

    @Test(arguments: [65_536, 65_537])
    func `a record of more than 64 KiB has a file that says where files are described`(bytes: Int) async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let smallest = try await self.store(fieldBytes: 0, content: "", in: store).json().count
            let record = try await self.store(fieldBytes: bytes - smallest, content: "", in: store)
            #expect(record.json().count == bytes)
            let isLarge = bytes > 65_536
            let names = try entries(directory.appending(record.id.text))
            #expect(names == (isLarge ? ["record.json", "record.offsets"] : ["record.json"]))
            #expect(try await store.describedFile(0, of: record.id) == record.files[0])
            #expect(try await store.describedFile(1, of: record.id) == nil)
            #expect(try await store.openFile(0, of: record.id)?.size == 0)
            // Only a record that is not large is decoded before it is served.
            try change(record.id, in: directory) { $0.replacing("/files/0", with: "/files/1") }
            let isServed = (try? await store.openRecord(record.id)) != nil
            #expect(isServed == isLarge)
        }
    }

    @Test
    func `a large record without files describes none`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let field = UploadRecord.Field(name: "a", value: String(repeating: "x", count: 70_000))
            let record = try await store.beginUpload().commit(fields: [field], parts: [.field(0)]).record
            #expect(try await store.describedFile(0, of: record.id) == nil)
            #expect(try await store.identifiers(limit: 10, after: nil) == [record.id])
        }
    }

    /// Where a file is described in a record, and where the offsets say.
    static let places: [(spaces: Int, bytes: Int, start: Int64, next: Int64, isFound: Bool)] = [
        (70_000, 1000, 70_000, 71_001, true), (1, 70_000, 1, 70_002, true),
        // Nothing but the beginning of a record is there.
        (0, 70_000, 0, 70_001, false),
        (70_000, 1000, 70_000, 70_000, false), (70_000, 1000, 70_000, 71_002, false),
        // No description has more than 4 MiB.
        (100, 4_194_303, 100, 4_194_404, true), (100, 4_194_304, 100, 4_194_405, false),
    ]

    @Test(arguments: places)
    func `a description is read only from within the record, and only up to 4 MiB`(
        spaces: Int, bytes: Int, start: Int64, next: Int64, isFound: Bool
    ) async throws {
        try await withTemporaryDirectory { directory in
            let id = try #require(UploadID("01kz5dr1c10123456789abcdef"))
            let file = UploadRecord.File(
                name: "f", filename: "f", contentType: "text/plain", size: 1,
                sha256: String(repeating: "a", count: 64), url: "/uploads/\(id)/files/0")
            var description = try JSONEncoder().encode(file)
            description.insert(contentsOf: Data(repeating: 0x20, count: bytes - description.count), at: 1)
            let json = Data(repeating: 0x20, count: spaces) + description + Data("]".utf8)
            let path = directory.appending("record.json")
            try json.write(to: URL(filePath: path.string))
            let offsets = try #require(StoredRecord.offsetsFile([start, next], recordBytes: Int64(json.count)))
            try Data(offsets).write(to: URL(filePath: directory.appending("record.offsets").string))
            let record = StoredRecord(id: id, file: try #require(try LocalFile(path)))
            if isFound {
                #expect(try record.describedFile(0) == file)
            } else {
                #expect(throws: StoreDamage.self) { try record.describedFile(0) }
            }
        }
    }

    @Test
    func `a record of more than a GiB is damage, and is not read`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let record = try await self.store("content", in: store)
            let file = URL(filePath: directory.appending(record.id.text).appending("record.json").string)
            try FileHandle(forWritingTo: file).truncate(atOffset: (1 << 30) + 1)
            let error = await #expect(throws: UploadStoreError.self) { try await store.record(record.id) }
            #expect(error?.code == .damaged)
            #expect(error?.message.contains("1073741825 bytes, more than 1073741824") == true)
        }
    }

    @Test
    func `a file is read whole up to a limit, and one that grows meanwhile not beyond it`() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory.appending("file")
            let url = URL(filePath: path.string)
            let piece = LocalFile.pieceBytes
            let bytes = Data(repeating: 7, count: piece + 1)
            try bytes.write(to: url)
            let file = try #require(try LocalFile(path))
            #expect(try file.data(maximumBytes: Int64(piece) + 1) == bytes)
            #expect(throws: StoreDamage.self) { try file.data(maximumBytes: Int64(piece)) }
            let handle = try FileHandle(forWritingTo: url)
            try handle.truncate(atOffset: UInt64(piece))
            let growing = try #require(try LocalFile(path))
            try handle.truncate(atOffset: UInt64(4 * piece))
            #expect(try growing.data(maximumBytes: Int64(piece)).count == piece)
        }
    }

    @Test(arguments: [true, false])
    func `what is damaged is set aside though something of its name was before`(isFolder: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let place = StoreDirectory(path: directory)
            let folder = directory.appending("01kz5dr1c10123456789abcdef")
            // It is gone, as when another request was faster.
            #expect(try place.setAside(folder) == false)
            let before = place.damaged.appending("01kz5dr1c10123456789abcdef")
            if isFolder {
                try FileManager.default.createDirectory(
                    atPath: before.appending("0").string, withIntermediateDirectories: true)
            } else {
                try Data().write(to: URL(filePath: before.string))
            }
            try FileManager.default.createDirectory(
                atPath: folder.appending("1").string, withIntermediateDirectories: true)
            #expect(try place.setAside(folder))
            #expect(try entries(directory) == [".damaged"])
            let aside = try entries(place.damaged)
            #expect(aside.count == 2)
            #expect(try entries(place.damaged.appending(try #require(aside.last))) == ["1"])
        }
    }

    @Test
    func `only a name of two digests is that of a key`() {
        let (key, record) = (String(repeating: "a", count: 64), String(repeating: "b", count: 64))
        let name = "key-\(key)-\(record)"
        let found = StoreDirectory.key(in: ["0", "key-", "record.json", name])
        #expect(found?.key == key)
        #expect(found?.record == record)
        for other in [
            "key-\(key)", "key-\(key)-", "key--\(key)-\(record)", "key-\(key)--\(record)", "\(name)-\(record)",
            "\(name)b", name.uppercased(), "\(key)-\(record)", "x\(name)",
        ] {
            #expect(StoreDirectory.key(in: [other])?.key == nil, "\(other)")
        }
    }
}
