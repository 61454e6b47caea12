import Foundation
import PostcardStore
import PostcardServerTesting
import SystemPackage
import Testing

@testable import PostcardReceivingSupport

@Suite(.timeLimit(.minutes(10)))
struct UploadStoreCheckTests {
    @Test(arguments: UploadStoreCheck.allCases)
    func `the local store keeps every promise and leaves no temporary file`(check: UploadStoreCheck) async throws {
        try await withTemporaryDirectory { directory in
            try await check.run { try LocalUploadStore(directory: directory) }
            _ = try LocalUploadStore(directory: directory)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.string + "/.incoming").isEmpty)
        }
    }

    @Test(arguments: ResumableUploadStoreCheck.allCases)
    func `the local store keeps every promise about unfinished uploads`(check: ResumableUploadStoreCheck) async throws {
        try await withTemporaryDirectory { directory in
            try await check.run { try LocalUploadStore(directory: directory) }
        }
    }

    @Test(arguments: UploadStoreCheck.allCases)
    func `a store of another kind keeps every promise`(check: UploadStoreCheck) async throws {
        let disk = MemoryStore.Disk()
        try await check.run { MemoryStore(disk: disk) }
    }
}
