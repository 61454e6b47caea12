package import PostcardFiles
import PostcardFoundation
import Synchronization
package import SystemPackage

/// Temporary files in their own directory, which is created with the first file.
package final class TemporaryFiles: Sendable {
    private struct Folder {
        let path: FilePath
        var count = 0
    }

    private let folder = Mutex<Folder?>(nil)

    package init() {}

    /// Makes a file. The call blocks.
    package func make() throws(FileError) -> (path: FilePath, file: DurableFile) {
        let path = try folder.withLock { folder throws(FileError) in
            var used: Folder
            if let folder { used = folder } else { used = try Self.makeFolder() }
            let path = used.path.appending(String(used.count))
            used.count += 1
            folder = used
            return path
        }
        return (path, try DurableFile(path))
    }

    private static func makeFolder() throws(FileError) -> Folder {
        let temporary = FilePath(FileManager.default.temporaryDirectory.path(percentEncoded: false))
        let path = temporary.appending("postcard-form-\(UUID().uuidString)")
        try DurableFiles.makeDirectory(path)
        return Folder(path: path)
    }

    /// Removes the folder with all that is in it, off the calling thread.
    package func remove() {
        guard let path = folder.withLock({ $0.take()?.path }) else { return }
        _ = FileWork { try? FileManager.default.removeItem(atPath: path.string) }
    }
}
