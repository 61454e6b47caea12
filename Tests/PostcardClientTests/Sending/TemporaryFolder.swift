import Foundation

/// A folder that is removed with its last holder.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(component: "postcard-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    /// Makes a file whose bytes differ from one another enough to notice a wrong offset.
    func file(_ name: String, size: Int) throws -> URL {
        let file = url.appending(component: name)
        try Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }).write(to: file)
        return file
    }

    /// Makes a file that takes no room on disk.
    func sparseFile(_ name: String, size: UInt64) throws -> URL {
        let file = url.appending(component: name)
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: size)
        try handle.close()
        return file
    }
}
