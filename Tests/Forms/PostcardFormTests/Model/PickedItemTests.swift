import Foundation
import PostcardTestSupport
import Testing

@testable import PostcardForm

/// Parts whose files are copied when the form is prepared, and parts that own their files.
@Suite struct PickedItemTests {
    private struct Item: PickedItem {
        let record: Data? = nil

        func copy(to folder: URL) async throws -> PickedCopy {
            let file = folder.appending(component: "copy.heic")
            try Data("picture".utf8).write(to: file)
            return PickedCopy(file, filename: "IMG_1.HEIC", contentType: .heic)
        }
    }

    @Test func `a picked item is copied when its form is prepared, with the names that the author gave`() async throws {
        var form = MultipartForm()
        form.append(FormPart(picked: Item(), named: "a"))
        form.append(FormPart(picked: Item(), named: "b", filename: "choco.heic", contentType: .heif, metadata: .asIs))
        #expect(form.needsPreparation)
        let error = #expect(throws: FormError.self) { try form.layout() }
        #expect(error?.code == .notPrepared)
        let (parts, folder) = try await form.withPreparedParts { form in
            let layout = try form.layout()
            #expect(try layout.reader().readAll(by: 99).ranges(of: Array("picture".utf8)).count == 2)
            guard case .file(let file) = form.parts[0].content else { throw CancellationError() }
            return (layout.parts, file.deletingLastPathComponent())
        }
        #expect(parts.map(\.filename) == ["IMG_1.HEIC", "choco.heic"])
        #expect(parts.map(\.contentType) == [.heic, .heif])
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    @Test func `a file that a part owns is there as long as a part or a layout has it, and then goes`() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("copy.bin", Array("picture".utf8))
        var layout: FormLayout?
        do {
            var form = MultipartForm()
            var part = FormPart(name: "a", content: .file(file))
            part.ownedFile = OwnedFile(file)
            form.append(part)
            layout = try form.layout()
        }
        try await Task.sleep(for: .milliseconds(50))
        #expect(try layout?.reader().readAll(by: 99).firstRange(of: Array("picture".utf8)) != nil)
        layout = nil
        try await eventually { !FileManager.default.fileExists(atPath: file.path) }
    }

    @Test func `files that a killed process owned are removed, and those of this one are not`() throws {
        let kept = try PreparationFolder.forOwnedFiles()
        #expect(try PreparationFolder.forOwnedFiles() == kept)
        let abandoned = FormPart.temporaryFolder.appending(component: "prepared-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: abandoned, withIntermediateDirectories: false)
        try Data(count: 10).write(to: abandoned.appending(component: "copy.heic"))
        PreparationFolder.removeAbandoned()
        #expect(!FileManager.default.fileExists(atPath: abandoned.path))
        #expect(FileManager.default.fileExists(atPath: kept.path))
    }

    @Test func `only a body that is a whole file, as it is, can be cloned`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("a.bin", Array("bytes".utf8))
        let photo = try folder.file("a.jpg", JPEG.file())
        func isWhole(_ layout: FormLayout) throws -> Bool { try layout.withWholeFile { _ in true } ?? false }
        #expect(try isWhole(FormLayout(contentOf: FormPart(name: "", content: .file(file)))))
        #expect(try isWhole(FormLayout(contentOf: FormPart(name: "", content: .file(photo), metadata: .asIs))))
        #expect(try !isWhole(FormLayout(contentOf: FormPart(name: "", content: .file(photo)))))
        #expect(try !isWhole(FormLayout(contentOf: FormPart(name: "", content: .bytes(Data("a".utf8))))))
        #expect(try !isWhole(FormLayout(contentOf: FormPart(name: "", content: .file(file))).slice(1..<3)))
        var form = MultipartForm()
        form.append(fileAt: file, named: "a")
        #expect(try !isWhole(form.layout()))
    }

    @Test func `a file that changes while it is cloned is an error`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("a.bin", Array("bytes".utf8))
        let layout = try FormLayout(contentOf: FormPart(name: "", content: .file(file)))
        let error = #expect(throws: FormError.self) {
            try layout.withWholeFile { _ in
                try Data("more bytes".utf8).write(to: file, options: [])
                return true
            }
        }
        #expect(error?.code == .fileChanged)
    }

    @Test func `the free space is known`() throws {
        #expect(try #require(FreeSpace.bytes(at: FileManager.default.temporaryDirectory)) > 0)
        #expect(FreeSpace.bytes(at: URL(filePath: "/nowhere")) == nil)
    }
}
