import Foundation
import PostcardForm
import PostcardFoundation
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardPictures

@Suite struct PickedPhotoTests {
    private let type = OfferedType("public.jpeg", .image, mimeType: "image/jpeg", fileExtension: "jpeg")

    @Test func `the copy of a part goes with the part, unless the caller chose its folder`() async throws {
        let folder = try TemporaryFolder()
        let lent = try folder.file("4F0C.jpeg", [0xFF, 0xD8, 0xFF])
        func load(to folder: URL?) throws -> URL {
            let part = try FormPart.loaded(
                lent, named: "a", suggestedName: nil, type: type, to: folder, metadata: .withoutLocation)
            guard case .file(let copy) = part.content else { throw CancellationError() }
            #expect(FileManager.default.fileExists(atPath: copy.path))
            return copy
        }
        let chosen = try load(to: folder.url.appending(component: "chosen"))
        let owned = try load(to: nil)
        try await eventually { !FileManager.default.fileExists(atPath: owned.path) }
        #expect(FileManager.default.fileExists(atPath: chosen.path))
    }

    @Test func `a copy that needs more than is free is not begun`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("a.mov", size: 1000)
        let chosen = folder.url.appending(component: "chosen")
        let error = try #require(throws: PictureError.self) {
            try LoadedFile.copy(file, to: chosen, freeBytes: { _ in 999 })
        }
        #expect(error.code == .full && error.neededBytes == 1000 && error.freeBytes == 999)
        #expect(error.message.contains("1000") && error.message.contains("999") && error.advice != nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: chosen.path).isEmpty)
        #expect(try Data(contentsOf: LoadedFile.copy(file, to: chosen, freeBytes: { _ in 1000 })).count == 1000)
        #expect(try Data(contentsOf: LoadedFile.copy(file, to: chosen, freeBytes: { _ in nil })).count == 1000)
    }

    // MARK: - Within an activity

    @Test func `an import that the system suspends is an error, and its call is cancelled`() async throws {
        let expire = Mutex<(@Sendable () -> Void)?>(nil)
        let isCancelled = Atomic(false)
        let isEnded = Atomic(0)
        let system = SystemActivity { handler in
            expire.withLock { $0 = handler }
            return { isEnded.add(1, ordering: .relaxed) }
        }
        let result = CallbackResult<Int>(within: ExpiringActivity(system))
        let error = try await #require(throws: PictureError.self) {
            try await result.value {
                let suspend = expire.withLock(\.self)
                Task { suspend?() }
                return { isCancelled.store(true, ordering: .relaxed) }
            }
        }
        #expect(error.code == .suspended)
        try await eventually { isCancelled.load(ordering: .relaxed) }
        #expect(isEnded.load(ordering: .relaxed) == 1)
    }

    @Test func `an import does not begin if the system is about to suspend the app`() async throws {
        let result = CallbackResult<Int>(within: ExpiringActivity(SystemActivity { _ in nil }))
        let error = try await #require(throws: PictureError.self) {
            try await result.value {
                Issue.record("It began.")
                return {}
            }
        }
        #expect(error.code == .suspended)
    }

    @Test func `the activity ends with the import`() async throws {
        let isEnded = Atomic(0)
        let system = SystemActivity { _ in { isEnded.add(1, ordering: .relaxed) } }
        let result = CallbackResult<Int>(within: ExpiringActivity(system))
        #expect(
            try await result.value {
                result.finish(.success(1)); return {}
            } == 1)
        #expect(isEnded.load(ordering: .relaxed) == 1)
    }

    @Test func `an import for a queue that is suspended goes on later`() async throws {
        await #expect(throws: CancellationError.self) { try await PickedCopy { throw PictureError.suspended } }
        let error = await #expect(throws: PictureError.self) {
            try await PickedCopy { throw PictureError.noFile(offered: []) }
        }
        #expect(error?.code == .noFile)
        let file = URL(filePath: "/tmp/choco.heic")
        let copy = try await PickedCopy { FormPart(name: "", contentType: .heic, content: .file(file)) }
        #expect(copy.file == file && copy.filename == "choco.heic" && copy.contentType == .heic)
    }

    // MARK: - Found again

    @Test(
        arguments: [
            .photo("1F2E/L0/001", .current, .primary), .photo("1", .original, .pairedVideo), .file(Data([1, 2, 3])),
        ] as [RecordedItem])
    func `what is recorded of an item is read again`(item: RecordedItem) throws {
        #expect(RecordedItem(try #require(item.data)) == item)
    }

    @Test(arguments: ["", "{}", "[1]", "{\"photo\":{}}"])
    func `what is no record finds nothing`(text: String) async throws {
        #expect(RecordedItem(Data(text.utf8)) == nil)
        #expect(try await PickedPhotosAndFiles().item(recordedAs: Data(text.utf8)) == nil)
        #expect(PickedPhotosAndFiles().preparation(recordedAs: Data(text.utf8)) == nil)
    }

    @Test(
        arguments: [
            .serverLimit, .serverLimit(maximumEdge: 100), .form(maximumBytes: 5),
            .each(PictureLimit(maximumBytes: 7, maximumEdge: 8, acceptedTypes: [.png], onFailure: .sendOriginal)),
        ] as [PictureFitting])
    func `photos are made to fit in a later run as in this one`(fitting: PictureFitting) throws {
        let found = PickedPhotosAndFiles().preparation(recordedAs: try #require(fitting.record))
        #expect(found as? PictureFitting == fitting)
    }
}
