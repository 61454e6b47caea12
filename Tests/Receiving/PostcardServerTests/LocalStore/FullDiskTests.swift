import Foundation
import NIOCore
import PostcardFiles
import PostcardReceiver
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardReception
@testable import PostcardServer
@testable import PostcardStore

/// A disk of a few megabytes, which takes a mount; where this user may not mount, the tests say that they were skipped.
enum SmallDisk {
    static let isPossible: Bool = {
        #if os(Linux)
        getuid() == 0 && FileManager.default.isExecutableFile(atPath: "/bin/mount")
            && (try? mount(at: FileManager.default.temporaryDirectory.path + "/postcard-probe-\(UUID().uuidString)"))
                == true
        #else
        false
        #endif
    }()

    /// Mounts one for a moment.
    private static func mount(at path: String) throws -> Bool {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        guard try run("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", path]) == 0 else { return false }
        return try run("umount", [path]) == 0
    }

    private static func run(_ program: String, _ arguments: [String]) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// - Parameter files: How many files and folders it can have. Defaults to many.
    static func with(
        megabytes: Int, files: Int = 100_000, _ body: (FilePath) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let options = [
                "-t", "tmpfs", "-o", "size=\(megabytes)m,nr_inodes=\(files)", "tmpfs", directory.string,
            ]
            try #require(try await Program.run("mount", options).status == 0)
            let result: Result<Void, any Error>
            do {
                try await body(directory)
                result = .success(())
            } catch {
                result = .failure(error)
            }
            _ = try await Program.run("umount", ["-l", directory.string])
            try result.get()
        }
    }
}

@Suite(.timeLimit(.minutes(10)), .enabled(if: SmallDisk.isPossible, "A small disk cannot be mounted here."))
struct FullDiskTests {
    private static func form(bytes: Int) -> String {
        Form.request(body: Form.fileHeader + String(repeating: "x", count: bytes) + Form.end)
    }

    @Test func `a form that fills the disk is refused with 503, leaves nothing, and smaller ones are still taken`()
        async throws
    {
        try await SmallDisk.with(megabytes: 4) { disk in
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = 0 }) { receiver in
                // Chunked, so that its size is not known before.
                let size = 6_000_000
                let body = Form.fileHeader + String(repeating: "x", count: size) + Form.end
                let chunk = String(body.utf8.count, radix: 16) + "\r\n" + body + "\r\n0\r\n\r\n"
                let full = try await receiver.exchange(
                    Form.chunked(chunk).replacing("Host: a", with: "Host: a\r\nConnection: close"))
                #expect(full.status == 503)
                #expect(full.problem?.code == "store-full")
                #expect(full.headers["retry-after"] == "60")
                #expect(try receiver.records.isEmpty)
                #expect(try receiver.incoming.isEmpty)
                let small = try await receiver.exchange(Self.form(bytes: 100_000))
                #expect(small.status == 201)
            }
        }
    }

    @Test func `a disk that can hold no more files takes no form, and its receiver is not healthy`() async throws {
        try await SmallDisk.with(megabytes: 4, files: 100) { disk in
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = 0 }) { receiver in
                func health() async throws -> String {
                    try await receiver.curl("-o", "/dev/null", "-w", "%{http_code}", receiver.url + "/health").text
                }
                var last = try await receiver.exchange(Self.form(bytes: 1))
                while last.status == 201 {
                    #expect(try receiver.records.count < 100)
                    let isHealthy = try await health() == "200"
                    last = try await receiver.exchange(Self.form(bytes: 1))
                    #expect(isHealthy == (last.status == 201))
                }
                #expect(last.status == 503)
                #expect(last.problem?.code == "store-full")
                #expect(try await health() == "503")
                for record in try receiver.records.prefix(2) {
                    _ = try await receiver.curl("-X", "DELETE", "\(receiver.url)/uploads/\(record)")
                }
                #expect(try await health() == "200")
                #expect(try await receiver.exchange(Self.form(bytes: 1)).status == 201)
            }
        }
    }

    @Test func `a form is refused by its announced length before its body is asked for`() async throws {
        try await SmallDisk.with(megabytes: 4) { disk in
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = 1 << 20 }) { receiver in
                let head = Form.head(contentLength: 3_500_000, fields: ["Expect: 100-continue"])
                let response = try await receiver.exchange(head)
                #expect(response.text.hasPrefix("HTTP/1.1 503"))
                #expect(response.problem?.code == "store-full")
            }
        }
    }

    @Test func `every answered form is whole, whenever the disk fills, and the space that is kept stays free`()
        async throws
    {
        try await SmallDisk.with(megabytes: 8) { disk in
            let kept: Int64 = 2 << 20
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = kept }) { receiver in
                // One alone fits; of many at once perhaps none does, when all have a share of the space.
                #expect(try await receiver.exchange(Self.form(bytes: 700_000)).status == 201)
                let statuses = try await withThrowingTaskGroup { group in
                    for _ in 0..<32 {
                        group.addTask { try await receiver.exchange(Self.form(bytes: 700_000)).status }
                    }
                    return try await group.reduce(into: [Int]()) { $0.append($1) }
                }
                #expect(Set(statuses).isSubset(of: [201, 503]))
                #expect(statuses.contains(503))
                let taken = 1 + statuses.count { $0 == 201 }
                #expect(try receiver.records.count == taken)
                #expect(try receiver.incoming.isEmpty)
                for id in try receiver.records {
                    let file = receiver.directory.appending(id).appending("0").string
                    #expect(try Data(contentsOf: URL(filePath: file)).count == 700_000)
                }
            }
        }
    }

    @Test(arguments: [0, 1_048_576] as [Int64])
    func `a form is taken whose length fits exactly, and none that is a byte longer`(kept: Int64) async throws {
        try await SmallDisk.with(megabytes: 4) { disk in
            let store = try LocalUploadStore(directory: disk.appending("received"), keptFreeBytes: kept)
            let room = try await store.freeBytes() - kept
            _ = try await store.beginUpload(announcedBytes: room)
            let error = await #expect(throws: UploadStoreError.self) {
                _ = try await store.beginUpload(announcedBytes: room + 1)
            }
            #expect(error?.code == .full)
        }
    }

    private static func createUnfinished(_ digit: Int, length: Int64?, in store: LocalUploadStore) async throws {
        let id = try #require(ResumptionID(String(repeating: "\(digit)", count: 32)))
        let form = UnfinishedForm(
            contentType: "multipart/form-data; boundary=b", key: UploadKey("key", scope: ""), length: length)
        _ = try await store.createUnfinishedUpload(id, of: form, expires: Date(timeIntervalSinceNow: 3600))
    }

    @Test func `an unfinished upload begins if its length fits twice, as its bytes and as a record`() async throws {
        try await SmallDisk.with(megabytes: 4) { disk in
            let store = try LocalUploadStore(directory: disk.appending("received"), keptFreeBytes: 0)
            try await Self.createUnfinished(0, length: store.freeBytes() / 2, in: store)
            for length in [try await store.freeBytes() / 2 + 1, .max] {
                let error = await #expect(throws: UploadStoreError.self) {
                    try await Self.createUnfinished(1, length: length, in: store)
                }
                #expect(error?.code == .full)
            }
        }
    }

    @Test(arguments: [true, false])
    func `what is small is taken for as long as the space that is kept is free`(isForm: Bool) async throws {
        try await SmallDisk.with(megabytes: 4) { disk in
            let directory = disk.appending("received")
            let free = try await LocalUploadStore(directory: directory, keptFreeBytes: 0).freeBytes()
            let store = try LocalUploadStore(directory: directory, keptFreeBytes: free)
            func keepOne(_ number: Int) async throws {
                if isForm {
                    let field = UploadRecord.Field(name: "a", value: "b")
                    _ = try await store.beginUpload().commit(fields: [field], parts: [.field(0)])
                } else {
                    try await Self.createUnfinished(number, length: nil, in: store)
                }
            }
            try await store.checkReadiness()
            try await keepOne(0)
            let refused = await #expect(throws: UploadStoreError.self) { try await keepOne(1) }
            #expect(refused?.code == .full)
            let unready = await #expect(throws: UploadStoreError.self) { try await store.checkReadiness() }
            #expect(unready?.code == .full)
        }
    }

    @Test func `of bytes that do not all fit those count that were written`() async throws {
        try await SmallDisk.with(megabytes: 1) { disk in
            let path = disk.appending("body")
            let before = Data("0123456789".utf8)
            try before.write(to: URL(filePath: path.string))
            let bytes = LargeForm(bytes: 2_000_000).content
            var count = 0
            do throws(FileError) {
                try AppendedFile(path).append(bytes.span.bytes, at: 10) { count += $0 }
                Issue.record("More was written than fits.")
            } catch {
                #expect(error.isFull)
            }
            #expect(count > 0)
            #expect(try Data(contentsOf: URL(filePath: path.string)) == before + Data(bytes.prefix(count)))
        }
    }

    @Test func `no bytes follow those that were not written, before they are taken back`() async throws {
        try await SmallDisk.with(megabytes: 1) { disk in
            let store = try LocalUploadStore(directory: disk.appending("received"), keptFreeBytes: 0)
            let upload = try await UnfinishedUploadTests.create(in: store)
            var appender = try await upload.makeAppender(isRevertible: true)
            let large = ByteBuffer(bytes: LargeForm(bytes: 2_000_000).content)
            await #expect(throws: UploadStoreError.self) {
                try await appender.append(large)
                try await appender.finish()
            }
            await #expect(throws: UploadStoreError.self) { try await appender.append(ByteBuffer(string: "0123")) }
            await #expect(throws: UploadStoreError.self) { try await appender.finish() }
            try await appender.revert()
            try await appender.append(ByteBuffer(string: "0123"))
            try await appender.finish()
            #expect(appender.offset == 4)
            #expect(try await upload.durableProgress() == .unfinished(offset: 4))
        }
    }

    @Test func `a known key is answered though the disk is full`() async throws {
        try await SmallDisk.with(megabytes: 4) { disk in
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = 0 }) { receiver in
                let body = Form.fileHeader + String(repeating: "x", count: 1_500_000) + Form.end
                let request = Form.request(body: body, fields: ["Idempotency-Key: k"])
                let first = try await receiver.exchange(request)
                #expect(first.status == 201)
                let filler = disk.appending("filler").string
                _ = try await Program.run("dd", ["if=/dev/zero", "of=\(filler)", "bs=64k"])
                let other = try await receiver.exchange(Self.form(bytes: 10_000))
                #expect(other.problem?.code == "store-full")
                let again = try await receiver.exchange(request)
                #expect(again.body == first.body)
            }
        }
    }
}
