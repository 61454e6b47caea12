import Foundation
import PostcardFiles
import SystemPackage
import Testing

@testable import PostcardStore

@Suite(.timeLimit(.minutes(10)))
struct StoreFileErrorTests {
    @Test(
        arguments: [
            (Errno.noSpace, UploadStoreError.Code.full, "There is no room left to write to /a/b: "),
            (.diskQuotaExceeded, .full, "There is no room left to write to /a/b: "),
            (.ioError, .unavailable, "Could not write to /a/b: "),
            (.permissionDenied, .unavailable, "Could not write to /a/b: "),
        ])
    func `what fails on a file fails in the store, with what the system said`(
        errno: Errno, code: UploadStoreError.Code, message: String
    ) async throws {
        let error = await #expect(throws: UploadStoreError.self) {
            try await onFileThread { throw FileError("write to", "/a/b", errno) }
        }
        #expect(error?.code == code)
        #expect(error?.message == message + "\(errno)")
        #expect(error?.underlyingError as? Errno == errno)
    }

    @Test func `an error of a store says what happened and what to do, and its code is a stable word`() {
        let error = UploadStoreError(.full, "There is no room left: No space", advice: "Make room.")
        #expect("\(error)" == "There is no room left: No space. Make room.")
        #expect(error.localizedDescription == "There is no room left: No space")
        #expect(error.recoverySuggestion == "Make room.")
        #expect("\(UploadStoreError(.damaged, "It is damaged."))" == "It is damaged.")
        #expect("\(UploadStoreError.keyReused.code)" == "idempotency-key-reused")
    }

    @Test func `a message does not name an unfinished upload`() {
        let path = FilePath("/a/.unfinished/0123456789abcdefghjkmnpqrstvwxyz/body")
        let errors = [
            UploadStoreError(FileError("write to", path, Errno.noSpace)),
            UploadStoreError(FileError("write to", path, Errno.ioError)),
            .unreadable("read", path, CancellationError()), .damaged(path, CancellationError()),
            .unreadable("read", path, FileError("open", path, Errno.tooManyOpenFiles)),
            .damaged(path, FileError("open", path, Errno.ioError)),
        ]
        for error in errors {
            #expect(error.message.contains("/a/.unfinished/012345…/body"))
            #expect(!error.message.contains("0123456789"))
        }
        #expect(FilePath("/a/.unfinished").shown == "/a/.unfinished")
        #expect(FilePath("relative/body").shown == "relative/body")
    }

    @Test func `what fails otherwise stays what it is`() async throws {
        /// An error that the store does not know.
        struct Refusal: Error {}
        await #expect(throws: Refusal.self) { try await onFileThread { throw Refusal() } }
        await #expect(throws: CancellationError.self) { try await onFileThread { throw CancellationError() } }
    }
}
