import Foundation
import PostcardTestSupport
package import SystemPackage
import Testing

/// A disk of a few megabytes, which takes a mount; where this user may not mount, the tests say that they were skipped.
package enum SmallDisk {
    package static let isPossible: Bool = {
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
    package static func with(
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
