package import Foundation

/// A folder that is removed with its last holder.
package final class TemporaryFolder: Sendable {
    package let url: URL

    /// - Parameter directory: Where it is made.
    package init(in directory: URL = FileManager.default.temporaryDirectory) throws {
        url = directory.appending(component: "postcard-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    package var path: String { url.path }

    /// Writes a file and says where it is.
    package func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> URL {
        let file = url.appending(component: name)
        try Data(bytes).write(to: file)
        return file
    }

    /// Makes a file whose bytes differ from one another enough to notice a wrong offset.
    package func file(_ name: String, size: Int) throws -> URL {
        let file = url.appending(component: name)
        var bytes = Data(capacity: size)
        // Copied, because a debug build would take seconds to compute each byte of a large file.
        while bytes.count < size { bytes.append(Self.pattern.prefix(size - bytes.count)) }
        try bytes.write(to: file)
        return file
    }

    private static let pattern = Data((0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    /// Makes a file that takes no room on disk.
    package func sparseFile(_ name: String, size: UInt64) throws -> URL {
        let file = try file(name, [])
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: size)
        try handle.close()
        return file
    }
}
