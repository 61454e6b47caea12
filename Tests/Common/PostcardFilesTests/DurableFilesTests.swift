import Foundation
import PostcardFiles
import PostcardTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct DurableFilesTests {
    private let folder: TemporaryFolder
    private let root: FilePath

    init() throws {
        folder = try TemporaryFolder()
        root = FilePath(folder.path)
    }

    @Test func `a file is written in pieces, and its name is not taken twice`() throws {
        let path = root.appending("file")
        let file = try DurableFile(path)
        for piece in ["one ", "", "two"] { try file.write(Data(piece.utf8).bytes) }
        file.beginSynchronizing()
        try file.synchronize()
        #expect(try String(contentsOfFile: path.string, encoding: .utf8) == "one two")
        let error = #expect(throws: FileError.self) { try DurableFile(path) }
        #expect(error?.errno == .fileExists)
        #expect(error?.description == "Could not create \(path): File exists")
    }

    @Test func `missing directories are made down to the last, and making them again is fine`() throws {
        for _ in 0..<2 { try DurableFiles.makeDirectories(root.appending("a/b/c")) }
        try DurableFiles.synchronizeDirectory(root.appending("a/b/c"))
        for path in ["a", "a/b", "a/b/c"] {
            let status = try root.appending(path).stat()
            #expect(status.type == .directory && status.permissions == .ownerReadWriteExecute)
        }
    }

    @Test func `a file takes the place of another, and a directory that is not empty keeps its own`() throws {
        let (old, new) = (try folder.file("old", "old".utf8), try folder.file("new", "new".utf8))
        try DurableFiles.move(FilePath(new.path), to: FilePath(old.path))
        #expect(try String(contentsOf: old, encoding: .utf8) == "new")
        try DurableFiles.makeDirectories(root.appending("full/inside"))
        try DurableFiles.makeDirectory(root.appending("other"))
        #expect(throws: FileError.self) {
            try DurableFiles.move(root.appending("other"), to: root.appending("full"))
        }
        let error = #expect(throws: FileError.self) {
            try DurableFiles.move(root.appending("missing"), to: root.appending("name"))
        }
        #expect(error?.errno == .noSuchFileOrDirectory)
    }
}
