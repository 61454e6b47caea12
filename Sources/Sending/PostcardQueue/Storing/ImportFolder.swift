import PostcardFiles
import PostcardForm
import PostcardFoundation
import SystemPackage

/// The folder in which the files of an upload are until its body is written. One process at a time uses it.
struct ImportFolder: Sendable {
    let uuid: UUID
    let url: URL
    private let directory: PrivateDirectory
    private let lock: FileLock
    private let queue: QueueDirectory

    static let lockName: FilePath.Component = "lock"

    /// Opens a folder, and makes it if there is none.
    ///
    /// - Throws: `FileError`, with the errno `wouldBlock` if it is in use.
    init(_ uuid: UUID, in queue: QueueDirectory) throws(FileError) {
        guard let name = FilePath.Component(uuid.uuidString) else {
            throw FileError("open", queue.imports.path, Errno.invalidArgument)
        }
        self.uuid = uuid
        self.queue = queue
        url = queue.importURL(uuid)
        directory = try queue.imports.directory(name)
        lock = try directory.lock(Self.lockName)
    }

    /// The URL of a file in the folder. What is in the database may name no other.
    func file(_ name: String) throws(FileError) -> URL {
        guard let component = FilePath.Component(name), component.kind == .regular, component.string == name else {
            throw FileError("open", directory.path, Errno.invalidArgument)
        }
        return url.appending(component: name)
    }

    /// Copies the content of a part as it is, and waits until it is on disk.
    func write(_ part: FormPart, at index: Int) async throws -> String {
        let name = "\(index)"
        guard let component = FilePath.Component(name) else { throw Errno.invalidArgument }
        var part = part
        part.metadata = .asIs
        part.preparation = nil
        _ = try await queue.write(try FormLayout(contentOf: part), as: component, in: directory)
        return name
    }

    /// Waits until a copy is on disk.
    func synchronize(_ file: URL) throws(FileError) {
        guard let name = FilePath.Component(file.lastPathComponent) else { return }
        let opened = try directory.open(name)
        defer { try? opened.close() }
        try DurableFiles.synchronize(opened, directory.path.appending(name))
        try directory.synchronize()
    }

    /// Removes the folder with its files.
    func remove() {
        withExtendedLifetime(lock) { try? FileManager.default.removeItem(at: url) }
    }
}
