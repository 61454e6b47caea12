import Foundation
import NIOCore
import PostcardFiles
import PostcardReceivingSupport
import PostcardTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import PostcardStore

/// When bytes are written, and what becomes of writes that fail.
extension LocalUploadStoreTests {
    private func begin(_ filename: String = "f", of upload: LocalUpload) async throws {
        try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: filename, contentType: "text/plain"))
    }

    /// The folder of the only upload that has written something.
    private func writtenFolder(in directory: FilePath) throws -> FilePath? {
        let incoming = directory.appending(".incoming")
        return try entries(incoming).first.map { incoming.appending($0) }
    }

    private func writtenBytes(ofFile name: String = "0", in directory: FilePath) throws -> Int {
        guard let folder = try writtenFolder(in: directory) else { return 0 }
        return (try? Data(contentsOf: URL(filePath: folder.appending(name).string)).count) ?? 0
    }

    private func writtenFiles(in directory: FilePath) throws -> Int {
        try writtenFolder(in: directory).map { try entries($0).count } ?? 0
    }

    @Test(arguments: [(1, 262_144), (64, 131_072), (2000, 16_384)])
    func `the bytes of an upload are written once there are 256 KiB, or fewer if many uploads share the memory`(
        uploads: Int, batch: Int
    ) async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            var others: [LocalUpload] = []
            for _ in 1..<uploads {
                let other = try await store.beginUpload()
                try await begin(of: other)
                others.append(other)
            }
            let upload = try await store.beginUpload()
            try await begin(of: upload)
            for round in 1...2 {
                try await upload.write(ByteBuffer(repeating: 7, count: batch - 1))
                // Bytes that are written too early are on the disk by the time that this upload is.
                try await self.store("another", in: store)
                #expect(try writtenBytes(in: directory) == (round - 1) * batch)
                try await upload.write(ByteBuffer(repeating: 7, count: 1))
                try await eventually { try writtenBytes(in: directory) == round * batch }
            }
            try await upload.endFile()
            let record = try await upload.commit(fields: [], parts: [.file(0)]).record
            #expect(record.files.map(\.size) == [Int64(2 * batch)])
            withExtendedLifetime(others) {}
        }
    }

    @Test
    func `small files are written once there are thirty-two`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await store.beginUpload()
            for count in 1...64 {
                try await begin("\(count)", of: upload)
                try await upload.write(ByteBuffer(string: "x"))
                try await upload.endFile()
                if count % 32 == 31 {
                    try await self.store("another", in: store)
                    #expect(try writtenFiles(in: directory) == count - 31)
                }
                if count % 32 == 0 { try await eventually { try writtenFiles(in: directory) == count } }
            }
            await upload.discard()
        }
    }

    @Test
    func `uploads share the memory from their first file on, until they are released`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            func count() -> Int { store.uploadCount.load(ordering: .relaxed) }
            #expect(count() == 0)
            do {
                let upload = try await store.beginUpload()
                _ = try await store.beginUpload()
                #expect(count() == 0)
                for _ in 0..<2 {
                    try await begin(of: upload)
                    try await upload.endFile()
                }
                #expect(count() == 1)
                await upload.discard()
            }
            try await eventually { count() == 0 }
        }
    }

    @Test
    func `a few bytes are kept without the block that they were read with, and small pieces are gathered up to 4 KiB`()
        throws
    {
        let block = ByteBuffer(repeating: 7, count: 65_536)
        let few = try #require(block.getSlice(at: 0, length: 4095))
        #expect(few.kept == few)
        #expect(few.kept.storageCapacity < block.storageCapacity)
        let many = try #require(block.getSlice(at: 0, length: 4096))
        #expect(many.kept == many)
        #expect(many.kept.storageCapacity == block.storageCapacity)
        var gathered = ByteBuffer(string: "abc")
        var areTaken = [gathered.appendIfSmall(ByteBuffer(repeating: 7, count: 4093))]
        areTaken.append(gathered.appendIfSmall(ByteBuffer(string: "x")))
        var empty = ByteBuffer()
        areTaken.append(empty.appendIfSmall(many))
        #expect(areTaken == [true, false, false])
        #expect(gathered == ByteBuffer(string: "abc" + String(repeating: "\u{7}", count: 4093)))
        #expect(empty.readableBytes == 0)
    }

    @Test
    func `the files of a form can be read before it is a record, and none of them stays open`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await store.beginUpload()
            let contents = ["content", "", "x"]
            for content in contents {
                try await begin(content, of: upload)
                if !content.isEmpty { try await upload.write(ByteBuffer(string: content)) }
                try await upload.endFile()
            }
            let files = try await upload.finishedFiles()
            #expect(files.map(\.filename) == contents)
            #expect(files.map { $0.content.size } == [7, 0, 1])
            #expect(files.map { $0.path == nil } == [false, true, false])
            for file in files {
                let content = try await file.content.read(at: 0, count: 100)
                #expect(String(buffer: content) == file.filename)
            }
            #if os(Linux)
            #expect(try OpenDescriptors.files(in: Self.url(directory.appending(".incoming"))) == 0)
            #endif
            let record = try await upload.commit(fields: [], parts: contents.indices.map { .file($0) }).record
            #expect(record.files.map(\.sha256) == files.map(\.sha256))
        }
    }

    @Test
    func `a form under a known key is compared, and not written`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let key = UploadKey("key", scope: "")
            let known = try await self.store("content", in: store, under: key)
            let upload = try await store.beginUpload(under: key)
            try await begin(of: upload)
            try await upload.write(ByteBuffer(string: "content"))
            try await upload.endFile()
            #expect(try await upload.finishedFiles().isEmpty)
            #expect(try entries(directory.appending(".incoming")).isEmpty)
            let committed = try await upload.commit(
                fields: [UploadRecord.Field(name: "a", value: "b")], parts: [.field(0), .file(0)])
            #expect(committed.record.id == known.id)
            #expect(committed.isRepetition)
        }
    }

    /// What may come after a write.
    enum NextCall: CaseIterable {
        case write, finishedFiles, commit
    }

    @Test(arguments: NextCall.allCases)
    func `a write that failed fails whatever comes next`(next: NextCall) async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await store.beginUpload()
            let bytes = ByteBuffer(repeating: 7, count: 1_000_000)
            try await begin(of: upload)
            try await upload.write(bytes)
            try await eventually { try writtenBytes(in: directory) == 1_000_000 }
            // Something else is in the place of the next file.
            let folder = try #require(try writtenFolder(in: directory))
            try Data().write(to: URL(filePath: folder.appending("1").string))
            try await upload.endFile()
            try await begin(of: upload)
            try await upload.write(bytes)
            let error = await #expect(throws: UploadStoreError.self) {
                switch next {
                case .write: try await upload.write(bytes)
                case .finishedFiles: _ = try await upload.finishedFiles()
                case .commit: _ = try await upload.commit(fields: [], parts: [.file(0), .file(1)])
                }
            }
            #expect(error?.message.hasSuffix(": File exists") == true)
            await upload.discard()
            #expect(try entries(directory) == [".incoming", ".lock", ".unfinished"])
            #expect(try entries(directory.appending(".incoming")).isEmpty)
        }
    }

    @Test
    func `an upload whose commit fails leaves nothing behind, and its key to the next`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let key = UploadKey("key", scope: "")
            let upload = try await store.beginUpload(under: key)
            try await begin(of: upload)
            try await upload.write(ByteBuffer(repeating: 7, count: 1_000_000))
            try await upload.endFile()
            try await eventually { try writtenBytes(in: directory) == 1_000_000 }
            // Something else is in the place of the record.
            let folder = try #require(try writtenFolder(in: directory))
            try Data().write(to: URL(filePath: folder.appending("record.json").string))
            let error = await #expect(throws: UploadStoreError.self) {
                _ = try await upload.commit(fields: [], parts: [.file(0)])
            }
            #expect(error?.code == .unavailable)
            #expect(try entries(directory.appending(".incoming")).isEmpty)
            let record = try await self.store("content", in: store, under: key)
            #expect(try await store.identifiers(limit: 10, after: nil) == [record.id])
        }
    }

    @Test
    func `a record is taken back if its name may not be on the disk`() async throws {
        try await withTemporaryDirectory { directory in
            let place = StoreDirectory(path: directory)
            let id = try #require(UploadID("01kz5dr1c10123456789abcdef"))
            let folder = place.folder(of: id).string
            // Whether the record was there when its name was to be synced.
            let wasThere = Mutex<[Bool]>([])
            let names = SharedDirectorySync(directory) { path throws(FileError) in
                let isThere = FileManager.default.fileExists(atPath: folder)
                wasThere.withLock { $0.append(isThere) }
                throw FileError("sync", path, Errno.ioError)
            }
            var upload = UploadDirectory(directory: place, names: names, name: "upload", key: nil, isKept: true)
            try upload.perform([.beginFile, .bytes(ByteBuffer(string: "content")), .endFile])
            do {
                _ = try upload.commit(UploadRecord(id: id, received: Date(), fields: [], files: []), inOutbox: false)
                Issue.record("The commit has not failed.")
            } catch let error as FileError {
                #expect(error.errno == .ioError)
            }
            upload.remove()
            // The name must not come back either.
            #expect(wasThere.withLock(\.self) == [true, false])
            #expect(try entries(directory) == [".incoming"])
            #expect(try entries(place.incoming).isEmpty)
        }
    }

    #if os(Linux)
    private static func url(_ path: FilePath) -> URL { URL(filePath: path.string).resolvingSymlinksInPath() }

    @Test
    func `of an upload that goes on only the file that is being written is open`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let incoming = Self.url(directory.appending(".incoming"))
            let upload = try await store.beginUpload()
            for name in ["0", "1", "2"] {
                try await begin(of: upload)
                try await upload.write(ByteBuffer(repeating: 7, count: 300_000))
                try await eventually { try writtenBytes(ofFile: name, in: directory) == 300_000 }
                try await eventually { try OpenDescriptors.files(in: incoming) == 1 }
                try await upload.endFile()
            }
            await upload.discard()
            #expect(try OpenDescriptors.files(in: incoming) == 0)
        }
    }

    @Test
    func `of complete files that wait for the disk at most thirty-two are open, and none once they are removed`()
        async throws
    {
        try await withTemporaryDirectory { directory in
            let place = StoreDirectory(path: directory)
            var upload = UploadDirectory(
                directory: place, names: SharedDirectorySync(directory), name: "upload", key: nil, isKept: true)
            let begun: [UploadDirectory.Step] = [.beginFile, .bytes(ByteBuffer(string: "x"))]
            let complete = begun + [UploadDirectory.Step.endFile]
            // The first thirty-two are on the disk when the others are not yet.
            let steps = (0..<40).flatMap { _ in complete } + begun
            try upload.perform(steps)
            let incoming = Self.url(place.incoming)
            #expect(try OpenDescriptors.files(in: incoming) == 9)
            upload.remove()
            #expect(try OpenDescriptors.files(in: incoming) == 0)
            let count = upload.contents.count
            #expect(count == 40)
        }
    }
    #endif
}
