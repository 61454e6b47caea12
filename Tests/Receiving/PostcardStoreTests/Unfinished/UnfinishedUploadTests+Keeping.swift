import Foundation
import Logging
import PostcardReceivingSupport
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardStore

/// When unfinished uploads begin and expire, and what becomes of damaged ones.
extension UnfinishedUploadTests {
    private static func isStored(_ upload: LocalUnfinishedUpload) -> Bool {
        FileManager.default.fileExists(atPath: upload.directory.path.string)
    }

    private static func names(in path: FilePath) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path.string)
    }

    @Test func `an upload is in use until the request that creates it has ended`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await store.createUnfinishedUpload(.random(), of: Self.form, expires: .distantFuture)
            #expect(!upload.lock.isIdle)
            await upload.lock.withLock {}
            #expect(upload.lock.isIdle)
        }
    }

    @Test(arguments: [(-1, true), (0, false), (1, false)] as [(Double, Bool)])
    func `an upload is there until its time is over, whether it is looked for, swept or loaded`(
        seconds: Double, isThere: Bool
    ) async throws {
        try await withTemporaryDirectory { directory in
            let expires = Date(timeIntervalSince1970: 1_000_000_000)
            let (created, now) = (expires - 1000, expires + seconds)
            let store = try LocalUploadStore(directory: directory.appending("open"))
            let sought = try await Self.create(in: store, expires: expires, now: created)
            let swept = try await Self.create(in: store, expires: expires, now: created)
            let isFound = await store.unfinished.find(sought.id, now: now) != nil
            #expect(isFound == isThere)
            #expect(Self.isStored(sought) == isThere)
            await store.unfinished.sweep(now: now)
            #expect(Self.isStored(swept) == isThere)
            let place = StoreDirectory(path: directory.appending("closed"))
            let (id, _) = try Self.makeUpload(
                in: place.path, promised: 10, start: SystemStart.current, expires: expires)
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let loaded = try LocalUnfinishedUploads(
                directory: place, damaged: DamagedUploads(directory: place, logger: logger), logger: logger, now: now)
            defer { loaded.close() }
            let isLoaded = await loaded.find(id, now: created) != nil
            #expect(isLoaded == isThere)
        }
    }

    @Test func `what has expired is removed once a minute, and when another upload is created`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let start = Date(timeIntervalSince1970: 1_000_000_000)
            let first = try await Self.create(in: store, expires: start + 30, now: start)
            await store.unfinished.sweep(now: start + 59)
            #expect(Self.isStored(first))
            await store.unfinished.sweep(now: start + 60)
            #expect(!Self.isStored(first))
            let second = try await Self.create(in: store, expires: start + 90, now: start + 61)
            _ = try await Self.create(in: store, now: start + 119)
            #expect(Self.isStored(second))
            _ = try await Self.create(in: store, now: start + 120)
            #expect(!Self.isStored(second))
            // The time by the system's clock is later.
            let third = try await Self.create(in: store, expires: start + 150, now: start + 121)
            await store.sweep()
            #expect(!Self.isStored(third))
        }
    }

    @Test func `an expired upload that cannot be removed yet is not found, and is removed later`() async throws {
        try await withTemporaryDirectory { directory in
            let lines = CapturedLog.Lines()
            let store = try LocalUploadStore(
                directory: directory, logger: Logger(label: "test") { _ in CapturedLog(lines: lines) })
            let expires = Date(timeIntervalSince1970: 1_000_000_000)
            let upload = try await Self.create(in: store, expires: expires, now: expires - 1000)
            let incoming = directory.appending(".incoming").string
            try FileManager.default.removeItem(atPath: incoming)
            try Data().write(to: URL(filePath: incoming))
            #expect(await store.unfinished.find(upload.id, now: expires) == nil)
            #expect(Self.isStored(upload))
            let log = "\(lines.all)"
            #expect(log.contains("Not a directory"))
            #expect(!log.contains(upload.id.text))
            try FileManager.default.removeItem(atPath: incoming)
            #expect(await store.unfinished.find(upload.id, now: expires) == nil)
            #expect(!Self.isStored(upload))
            #expect(try Self.names(in: directory.appending(".incoming")).isEmpty)
        }
    }

    @Test func `the folder of unfinished uploads is made again if it vanishes`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            try FileManager.default.removeItem(atPath: directory.appending(".unfinished").string)
            let upload = try await Self.create(in: store)
            #expect(Self.isStored(upload))
        }
    }

    @Test func `an upload that cannot be written leaves nothing, and can be created again`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let id = ResumptionID.random()
            let error = await #expect(throws: UploadStoreError.self) {
                // No file can say this time.
                try await store.createUnfinishedUpload(
                    id, of: Self.form, expires: Date(timeIntervalSinceReferenceDate: .infinity))
            }
            #expect(error?.code == .unavailable)
            #expect(try Self.names(in: directory.appending(".unfinished")).isEmpty)
            _ = try await store.createUnfinishedUpload(id, of: Self.form, expires: .distantFuture)
            #expect(try Self.names(in: directory.appending(".unfinished")) == [id.text])
        }
    }

    @Test func `what a crash left of new facts is no obstacle to newer ones`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await Self.create(in: store)
            try Data("{".utf8).write(to: URL(filePath: upload.directory.path.appending("upload.json.new").string))
            try await upload.setLength(10)
            #expect(try upload.directory.load()?.facts.length == 10)
        }
    }

    @Test func `where no room may be used an upload neither begins nor grows`() async throws {
        try await withTemporaryDirectory { directory in
            let id: ResumptionID
            do {
                let store = try LocalUploadStore(directory: directory, keptFreeBytes: 0)
                id = try await Self.create(in: store, bytes: "0123456789").id
            }
            let store = try LocalUploadStore(directory: directory, keptFreeBytes: .max)
            let upload = try #require(await store.unfinished.find(id))
            let appending = await #expect(throws: UploadStoreError.self) { try await Self.append("a", to: upload) }
            #expect(appending?.code == .full)
            #expect(try await upload.durableProgress() == .unfinished(offset: 10))
            let creating = await #expect(throws: UploadStoreError.self) { try await Self.create(in: store) }
            #expect(creating?.code == .full)
            #expect(try Self.names(in: directory.appending(".unfinished")) == [id.text])
        }
    }

    @Test func `a store that is closed leaves nothing of its uploads in memory`() async throws {
        try await withTemporaryDirectory { directory in
            weak var uploads: LocalUnfinishedUploads?
            do {
                let store = try LocalUploadStore(directory: directory)
                _ = try await Self.create(in: store, bytes: "0123456789")
                uploads = store.unfinished
            }
            try await eventually { uploads == nil }
        }
    }

    // MARK: - Damage

    /// What is changed in the facts about an upload that has 10 of 20 bytes.
    static let changes: [(old: String, new: String, isDamage: Bool)] = [
        ("{", "", true),
        (#""promised":4"#, #""promised":-1"#, true),
        (#""promised":4"#, #""promised":0"#, false),
        (#""length":20"#, #""length":-1"#, true),
        // Fewer than it has, and as many.
        (#""length":20"#, #""length":9"#, true),
        (#""length":20"#, #""length":10"#, false),
        (#""keyDigest":"a"#, #""keyDigest":"A"#, true),
        (#""created":"#, #""created":1e300,"ignored":"#, true),
        (#""expires":"#, #""expires":1e300,"ignored":"#, true),
    ]

    @Test(arguments: changes)
    func `an upload that is not as it was written is set aside when the store is opened`(
        old: String, new: String, isDamage: Bool
    ) async throws {
        try await withTemporaryDirectory { directory in
            let (id, _) = try Self.makeUpload(in: directory, promised: 4, start: SystemStart.current, length: 20)
            let folder = directory.appending(".unfinished").appending(id.text)
            let facts = URL(filePath: folder.appending("upload.json").string)
            let text = try String(contentsOf: facts, encoding: .utf8)
            try #require(text.contains(old))
            try Data(text.replacing(old, with: new).utf8).write(to: facts)
            let store = try LocalUploadStore(directory: directory)
            let isFound = try await store.unfinishedUpload(id) != nil
            #expect(isFound == !isDamage)
            #expect(store.damagedCount == (isDamage ? 1 : 0))
            let aside = directory.appending(".damaged").appending(id.text).appending("body").string
            #expect(FileManager.default.fileExists(atPath: aside) == isDamage)
        }
    }

    @Test(arguments: [(1_048_576, false), (1_048_577, true)])
    func `facts about an upload have at most a MiB`(bytes: Int, isDamage: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let (id, _) = try Self.makeUpload(in: directory, promised: 4, start: SystemStart.current)
            let facts = URL(
                filePath: directory.appending(".unfinished").appending(id.text).appending("upload.json").string)
            let json = try Data(contentsOf: facts)
            try (json + Data(repeating: 0x20, count: bytes - json.count)).write(to: facts)
            let store = try LocalUploadStore(directory: directory)
            #expect(store.damagedCount == (isDamage ? 1 : 0))
        }
    }

    @Test func `an upload that cannot be read is left for the next start, and the log does not name it`() async throws {
        try await withTemporaryDirectory { directory in
            let place = directory.appending("store")
            let (id, _) = try Self.makeUpload(in: place, promised: 10, start: SystemStart.current)
            let facts = place.appending(".unfinished").appending(id.text).appending("upload.json").string
            let second = directory.appending("second").string
            try FileManager.default.linkItem(atPath: facts, toPath: second)
            let lines = CapturedLog.Lines()
            do {
                let store = try LocalUploadStore(
                    directory: place, logger: Logger(label: "test") { _ in CapturedLog(lines: lines) })
                #expect(try await store.unfinishedUpload(id) == nil)
                #expect(store.damagedCount == 0)
            }
            let log = "\(lines.all)"
            #expect(log.contains("it has a second name elsewhere"))
            #expect(!log.contains(id.text))
            try FileManager.default.removeItem(atPath: second)
            let store = try LocalUploadStore(directory: place)
            #expect(await store.unfinished.find(id)?.progress == .unfinished(offset: 10))
        }
    }
}
