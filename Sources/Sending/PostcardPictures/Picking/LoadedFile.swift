import PostcardForm
import PostcardFoundation
import Synchronization
import SystemPackage

/// Copies of files that the system lends only for a moment.
enum LoadedFile {
    /// A new path in a folder, which is created if it does not exist.
    ///
    /// - Parameters:
    ///   - folder: The folder. Defaults to that of the files that parts own.
    ///   - name: The name of a file whose extension the new one gets. The rest of its name is made up, so that files of
    ///     the same name do not collide.
    static func place(in folder: URL?, for name: String) throws -> URL {
        let folder = try FormPart.makeFolder(folder ?? PreparationFolder.forOwnedFiles())
        let dot = name.lastIndex(of: ".")
        let suffix = dot.map { name[$0...].dropFirst() } ?? ""
        // What is no plain extension has no place in a path.
        let isPlain = !suffix.isEmpty && suffix.utf8.count <= 16 && suffix.allSatisfy { $0.isLetter || $0.isNumber }
        return folder.appending(component: UUID().uuidString + (isPlain ? ".\(suffix)" : ""))
    }

    /// Copies a file. Only its owner can read the copy. On one volume of an Apple platform it is a clone, which takes
    /// neither time nor space.
    ///
    /// - Parameter freeBytes: The bytes that are free in a folder.
    /// - Throws: ``PictureError`` with code ``PictureError/Code/full`` if they are too few; errors of the system.
    static func copy(
        _ file: URL, to folder: URL?, freeBytes: (URL) -> Int64? = FreeSpace.bytes
    ) throws -> URL {
        let copy = try place(in: folder, for: file.lastPathComponent)
        // A link is copied as what it leads to: its copy would lead to a file that is lent no longer.
        let file = file.resolvingSymlinksInPath()
        let folder = copy.deletingLastPathComponent()
        if let (needed, free) = FreeSpace.shortage(ofCopying: file, to: folder, freeBytes: freeBytes) {
            throw PictureError.full(file.lastPathComponent, needed: needed, free: free)
        }
        do {
            try FileManager.default.copyItem(at: file, to: copy)
            // A document may be a folder, which could not be removed without the permission to search it.
            let type = try FileManager.default.attributesOfItem(atPath: copy.path)[.type] as? FileAttributeType
            let isFolder = type == .typeDirectory
            try FileManager.default.setAttributes(
                [.posixPermissions: isFolder ? 0o700 : 0o600], ofItemAtPath: copy.path)
        } catch {
            // A copy that failed half way, on a full disk for example.
            remove(copy)
            throw error
        }
        return copy
    }

    static func remove(_ file: URL) {
        try? FileManager.default.removeItem(at: file)
    }
}

/// A file that is written chunk by chunk, as a callback receives them.
final class ReceivedFile: Sendable {
    let url: URL
    private let state: Mutex<State>

    private enum State {
        case open(FileDescriptor)
        case closed
    }

    init(at url: URL) throws {
        self.url = url
        let options: FileDescriptor.OpenOptions = [.create, .exclusiveCreate, .closeOnExec]
        let descriptor = try FileDescriptor.open(
            FilePath(url.path), .writeOnly, options: options, permissions: [.ownerRead, .ownerWrite])
        state = Mutex(.open(descriptor))
    }

    /// Creates a file in a folder, and not on the caller's actor.
    @concurrent
    static func create(in folder: URL?, for name: String) async throws -> ReceivedFile {
        try ReceivedFile(at: LoadedFile.place(in: folder, for: name))
    }

    deinit {
        state.withLock { if case .open(let descriptor) = $0 { try? descriptor.close() } }
    }

    /// Appends a chunk, unless the file is closed. An error closes it.
    func append(_ chunk: Data) throws {
        try state.withLock { state in
            guard case .open(let descriptor) = state else { return }
            do {
                try descriptor.writeAll(chunk)
            } catch {
                state = .closed
                try? descriptor.close()
                throw error
            }
        }
    }

    func finish() throws {
        try state.withLock { state in
            guard case .open(let descriptor) = state else { return }
            state = .closed
            try descriptor.close()
        }
    }

    /// Closes and removes the file, and not on the caller's actor.
    @concurrent
    func discard() async {
        state.withLock { state in
            if case .open(let descriptor) = state { try? descriptor.close() }
            state = .closed
        }
        LoadedFile.remove(url)
    }
}
