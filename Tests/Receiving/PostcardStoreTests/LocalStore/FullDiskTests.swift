import Foundation
import NIOCore
import PostcardFiles
import PostcardReceivingSupport
import SystemPackage
import Testing

@testable import PostcardStore

@Suite(.timeLimit(.minutes(10)), .enabled(if: SmallDisk.isPossible, "A small disk cannot be mounted here."))
struct FullDiskTests {
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
}
