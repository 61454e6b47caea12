import Foundation
import PostcardFiles
import PostcardTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct FileLockTests {
    private let folder: TemporaryFolder
    private let path: FilePath

    init() throws {
        folder = try TemporaryFolder()
        path = FilePath(folder.path).appending("lock")
    }

    private func open() throws -> FileDescriptor {
        try FileDescriptor.open(
            path, .readWrite, options: [.create, .closeOnExec], permissions: [.ownerRead, .ownerWrite])
    }

    @Test func `a second lock of a file is refused until the first is gone`() throws {
        for _ in 0..<3 {
            let first = try FileLock(open(), path)
            let error = #expect(throws: FileError.self) { try FileLock(open(), path) }
            #expect(error?.errno == .wouldBlock)
            withExtendedLifetime(first) {}
        }
        _ = try FileLock(open(), path)
    }

    @Test func `a lock ends with its object, though a copy of its descriptor is still open`() throws {
        let descriptor = try open()
        let copy = try descriptor.duplicate()
        defer { try? copy.close() }
        do {
            let lock = try FileLock(descriptor, path)
            #expect(throws: FileError.self) { try FileLock(open(), path) }
            withExtendedLifetime(lock) {}
        }
        _ = try FileLock(open(), path)
    }

    @Test func `a directory that is opened twice has one lock of a name, and others of other names`() throws {
        let directories = try (0..<2).map { _ in try PrivateDirectory(FilePath(folder.path)) }
        let lock = try directories[0].lock("name")
        for directory in directories {
            let error = #expect(throws: FileError.self) { try directory.lock("name") }
            #expect(error?.errno == .wouldBlock)
        }
        _ = try directories[1].lock("other")
        withExtendedLifetime(lock) {}
    }

    private static let isPerlHere: @Sendable () async throws -> Bool = {
        try await Program.run("perl", ["-e", "exit 0"]).status == 0
    }

    @Test(.enabled("There is no perl here to be the other process.", isPerlHere))
    func `another process is kept out until the lock is gone`() async throws {
        let tryLock = "open(my $f, '<', $ARGV[0]) or exit 2; exit(flock($f, 6) ? 0 : 1)"
        let lock = try FileLock(open(), path)
        #expect(try await Program.run("perl", ["-e", tryLock, path.string]).status == 1)
        withExtendedLifetime(consume lock) {}
        #expect(try await Program.run("perl", ["-e", tryLock, path.string]).status == 0)
    }
}
