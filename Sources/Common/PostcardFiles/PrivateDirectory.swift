import PostcardCLibrary
package import SystemPackage

/// A directory that only its owner can use, held open.
///
/// Files are opened relative to the directory and without following links, so no name leads out of it. Every call
/// blocks.
package final class PrivateDirectory: Sendable {
    /// The path of the directory when it was opened.
    package let path: FilePath
    /// Whether a file in the directory may have further hard links, which may be in other directories.
    private let allowsOtherNames: Bool
    private let descriptor: FileDescriptor

    /// Opens a directory, and makes it and its parents if they are missing. Other users lose the right to read the
    /// directory. Throws ``FileError``, also if the directory belongs to another user, or others can write to it.
    package convenience init(_ path: FilePath) throws(FileError) {
        try DurableFiles.makeDirectories(path)
        let descriptor = try FileError.adding("open", path) {
            try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec])
        }
        try self.init(descriptor, path, allowsOtherNames: false)
    }

    private init(_ descriptor: FileDescriptor, _ path: FilePath, allowsOtherNames: Bool) throws(FileError) {
        self.descriptor = descriptor
        self.path = path
        self.allowsOtherNames = allowsOtherNames
        let status = try FileError.adding("look at", path) { try descriptor.stat() }
        guard status.userID.rawValue == geteuid() else {
            throw FileError("use", path, Errno.notPermitted, reason: "it belongs to another user")
        }
        guard status.permissions.isDisjoint(with: [.groupWrite, .otherWrite]) else {
            throw FileError(
                "use", path, Errno.notPermitted,
                reason: "other users can write to it. Run chmod 700 on it if you trust what is in it")
        }
        guard fchmod(descriptor.rawValue, 0o700) == 0 else {
            throw FileError("protect", path, DurableFiles.lastError)
        }
    }

    deinit {
        try? descriptor.close()
    }

    /// Opens a subdirectory, and makes it if it is missing. With `allowsOtherNames`, a file in the subdirectory may
    /// have further hard links, which may be in other directories. Throws ``FileError``, also if the name is a link.
    package func directory(
        _ name: FilePath.Component, allowsOtherNames: Bool = false
    ) throws(FileError) -> PrivateDirectory {
        if name.withPlatformString({ mkdirat(descriptor.rawValue, $0, 0o700) }) == 0 {
            try synchronize()
        } else if DurableFiles.lastError != .fileExists {
            throw FileError("make", path.appending(name), DurableFiles.lastError)
        }
        return try existingDirectory(name, allowsOtherNames: allowsOtherNames)
    }

    /// Opens an existing subdirectory. With `allowsOtherNames`, its files may have further hard links. Throws
    /// ``FileError``, also if the name is a link.
    package func existingDirectory(
        _ name: FilePath.Component, allowsOtherNames: Bool = false
    ) throws(FileError) -> PrivateDirectory {
        try PrivateDirectory(
            try open(name, O_RDONLY | O_DIRECTORY, action: "open"), path.appending(name),
            allowsOtherNames: allowsOtherNames)
    }

    /// Opens a file for reading.
    ///
    /// - Throws: ``FileError`` if the file is missing, a link, or not a regular file.
    package func open(_ name: FilePath.Component) throws(FileError) -> FileDescriptor {
        // Without O_NONBLOCK, opening a named pipe would wait for a writer.
        try checked(try open(name, O_RDONLY | O_NONBLOCK, action: "open"), name)
    }

    /// Makes a file that only its owner can read. Throws ``FileError``, also if a file with the name exists.
    package func create(_ name: FilePath.Component) throws(FileError) -> DurableFile {
        DurableFile(
            try open(name, O_WRONLY | O_CREAT | O_EXCL, action: "create"), path.appending(name))
    }

    /// Clones a file. The clone takes no space, because the file system copies only blocks that are changed later.
    /// Returns `nil` if the file system cannot clone the file. Throws ``FileError``, also if a file with the name
    /// exists.
    package func clone(_ file: FileDescriptor, as name: FilePath.Component) throws(FileError) -> DurableFile? {
        #if canImport(Darwin)
        // Cloning fails between volumes and on file systems other than APFS.
        guard name.withPlatformString({ fclonefileat(file.rawValue, descriptor.rawValue, $0, 0) }) == 0 else {
            if DurableFiles.lastError == .fileExists {
                throw FileError("create", path.appending(name), DurableFiles.lastError)
            }
            return nil
        }
        do throws(FileError) {
            // A clone copies the file's permissions, which may be read-only.
            try protect(name)
            let clone = try open(name, O_RDWR, action: "open")
            #if !os(macOS)
            // A clone copies the file's data protection, which may forbid reading it while the device is locked.
            let untilFirstUnlock: Int32 = 3
            guard fcntl(clone.rawValue, F_SETPROTECTIONCLASS, untilFirstUnlock) == 0 else {
                try? clone.close()
                try remove(name)
                return nil
            }
            #endif
            return DurableFile(clone, path.appending(name))
        } catch {
            try? remove(name)
            throw error
        }
        #elseif os(Linux)
        let clone = try create(name)
        // FICLONE of linux/fs.h, supported by Btrfs and XFS.
        if ioctl(clone.descriptor.rawValue, 0x4004_9409, file.rawValue) == 0 { return clone }
        try remove(name)
        return nil
        #else
        return nil
        #endif
    }

    /// Opens a file, or makes one that only its owner can read. Throws ``FileError`` if the name is a link, or if the
    /// file is not regular or has further hard links.
    package func openOrCreate(_ name: FilePath.Component) throws(FileError) -> FileDescriptor {
        let file = try checked(try open(name, O_RDWR | O_CREAT | O_NONBLOCK, action: "open"), name)
        guard fchmod(file.rawValue, 0o600) == 0 else {
            defer { try? file.close() }
            throw FileError("protect", path.appending(name), DurableFiles.lastError)
        }
        return file
    }

    /// Makes a regular file readable only to its owner, without opening the file. A missing file is no error.
    package func protect(_ name: FilePath.Component) throws(FileError) {
        guard let status = try status(of: name), status.type == .regular else { return }
        guard name.withPlatformString({ fchmodat(descriptor.rawValue, $0, 0o600, 0) }) != 0 else { return }
        let error = DurableFiles.lastError
        if error != .noSuchFileOrDirectory { throw FileError("protect", path.appending(name), error) }
    }

    /// Removes a file or a link. A missing file is no error.
    package func remove(_ name: FilePath.Component) throws(FileError) {
        guard name.withPlatformString({ unlinkat(descriptor.rawValue, $0, 0) }) == 0 else {
            let error = DurableFiles.lastError
            if error == .noSuchFileOrDirectory { return }
            throw FileError("remove", path.appending(name), error)
        }
    }

    /// Moves a file, directory or link to another directory and keeps its name. A missing name is no error.
    package func move(_ name: FilePath.Component, to other: PrivateDirectory) throws(FileError) {
        let result = name.withPlatformString {
            renameat(descriptor.rawValue, $0, other.descriptor.rawValue, $0)
        }
        guard result == 0 else {
            let error = DurableFiles.lastError
            if error == .noSuchFileOrDirectory { return }
            throw FileError("move", path.appending(name), error)
        }
    }

    /// The status of a name without following links; `nil` if the name does not exist.
    package func status(of name: FilePath.Component) throws(FileError) -> Stat? {
        do {
            return try FilePath(root: nil, components: name).stat(relativeTo: descriptor, flags: .symlinkNoFollow)
        } catch Errno.noSuchFileOrDirectory {
            return nil
        } catch {
            throw FileError("look at", path.appending(name), error)
        }
    }

    /// The modification time of a file, in seconds since 1970; `nil` if no file of this type has the name.
    package func lastChange(of name: FilePath.Component, as type: FileType = .regular) throws(FileError) -> Int64? {
        guard let status = try status(of: name), status.type == type else { return nil }
        return Int64(status.st_mtim.tv_sec)
    }

    /// The size and modification time of a file, which identify its version.
    package struct FileVersion: Sendable, CustomStringConvertible {
        package let bytes: Int64
        private let seconds: Int
        private let nanoseconds: Int

        fileprivate init(_ status: Stat) {
            bytes = status.size
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }

        package var description: String { "\(bytes) \(seconds) \(nanoseconds)" }
    }

    /// The version of a regular file; `nil` if the name is not that of a regular file.
    package func version(of name: FilePath.Component) throws(FileError) -> FileVersion? {
        guard let status = try status(of: name), status.type == .regular else { return nil }
        return FileVersion(status)
    }

    /// The names in the directory, in any order.
    package func names() throws(FileError) -> [String] {
        // Duplicates of a descriptor share one reading position, so the directory is opened again.
        let copy = try open(".", O_RDONLY | O_DIRECTORY, action: "read")
        guard let stream = fdopendir(copy.rawValue) else {
            try? copy.close()
            throw FileError("read", path, DurableFiles.lastError)
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// Waits until the names in the directory are on the disk.
    package func synchronize() throws(FileError) {
        try DurableFiles.synchronize(descriptor, path)
    }

    /// Locks a file in the directory. Throws ``FileError`` with the errno `wouldBlock` if the file is already locked.
    package func lock(_ name: FilePath.Component) throws(FileError) -> FileLock {
        try FileLock(try openOrCreate(name), path.appending(name))
    }

    private func open(_ name: FilePath.Component, _ flags: Int32, action: String) throws(FileError) -> FileDescriptor {
        while true {
            let result = name.withPlatformString {
                openat(descriptor.rawValue, $0, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
            }
            if result >= 0 { return FileDescriptor(rawValue: result) }
            let error = DurableFiles.lastError
            if error == .interrupted { continue }
            throw FileError(
                action, path.appending(name), error,
                reason: error == .tooManySymbolicLinkLevels ? "it is a link, and links are not followed here" : nil)
        }
    }

    /// Returns the file if its type, owner and number of hard links are allowed. Closes any other file and throws.
    private func checked(_ file: FileDescriptor, _ name: FilePath.Component) throws(FileError) -> FileDescriptor {
        let path = path.appending(name)
        do {
            let status = try file.stat()
            guard status.type == .regular else {
                throw FileError("open", path, Errno.invalidArgument, reason: "it is not a regular file")
            }
            guard allowsOtherNames || status.linkCount == 1, status.userID.rawValue == geteuid() else {
                throw FileError(
                    "open", path, Errno.notPermitted, reason: "it has another name or another owner as well")
            }
            return file
        } catch {
            try? file.close()
            throw error as? FileError ?? FileError("look at", path, error)
        }
    }
}
