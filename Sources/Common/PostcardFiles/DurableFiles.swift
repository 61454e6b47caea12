import PostcardCLibrary
package import SystemPackage

/// A failed file system call: the action, the path and the system's error.
package struct FileError: Error, Sendable, CustomStringConvertible {
    /// The action that failed, as a verb: "open", "write to".
    package let action: String
    package let path: FilePath
    package let errno: Errno
    /// The text to show instead of the system's error text; `nil` to show the system's text.
    package let reason: String?

    package init(_ action: String, _ path: FilePath, _ error: any Error, reason: String? = nil) {
        self.action = action
        self.path = path
        errno = error as? Errno ?? .ioError
        self.reason = reason
    }

    /// Runs a closure, and turns an error that it throws into a ``FileError`` with the action and the path.
    package static func adding<Value>(
        _ action: String, _ path: FilePath, to body: () throws -> Value
    ) throws(FileError) -> Value {
        do { return try body() } catch { throw FileError(action, path, error) }
    }

    package var isFull: Bool { errno == .noSpace || errno == .diskQuotaExceeded }

    /// Whether something else was found in place of a file or directory, such as a link or a named pipe.
    package var isReplaced: Bool {
        errno == .tooManySymbolicLinkLevels || errno == .notDirectory || errno == .invalidArgument && reason != nil
    }

    package var description: String { "Could not \(action) \(path): \(reason ?? "\(errno)")" }
}

/// Blocking file system calls needed for durability that swift-system lacks.
package enum DurableFiles {
    /// Makes a directory that only its owner can read.
    package static func makeDirectory(_ path: FilePath) throws(FileError) {
        guard path.withPlatformString({ mkdir($0, 0o700) }) == 0 else { throw FileError("make", path, lastError) }
    }

    /// Makes a missing directory and its missing parents, so that they survive a power cut.
    package static func makeDirectories(_ path: FilePath) throws(FileError) {
        let containing = path.removingLastComponent()
        do throws(FileError) {
            try makeDirectory(path)
        } catch  where error.errno == .fileExists {
            return
        } catch  where error.errno == .noSuchFileOrDirectory && !containing.isEmpty {
            try makeDirectories(containing)
            try makeDirectory(path)
        }
        try synchronizeDirectory(containing.isEmpty ? "." : containing)
    }

    /// Renames a file or directory, and replaces an existing one.
    package static func move(_ path: FilePath, to other: FilePath) throws(FileError) {
        let result = path.withPlatformString { old in other.withPlatformString { new in rename(old, new) } }
        guard result == 0 else { throw FileError("rename", path, lastError) }
    }

    /// Asks the disk to begin writing a file's bytes, without waiting. A failure is ignored.
    package static func beginSynchronizing(_ descriptor: FileDescriptor) {
        #if os(Linux) || os(Android)
        // POSIX_FADV_DONTNEED asks the system to drop the file's pages from its cache. Linux begins to write them.
        _ = posix_fadvise(descriptor.rawValue, 0, 0, POSIX_FADV_DONTNEED)
        #endif
    }

    /// Waits until a file's bytes, or a directory's names, are on the disk. The path is only for the error's message.
    package static func synchronize(_ descriptor: FileDescriptor, _ path: FilePath) throws(FileError) {
        #if canImport(Darwin)
        // On Darwin, fsync leaves the bytes in the drive's cache. Some file systems lack F_FULLFSYNC.
        while fcntl(descriptor.rawValue, F_FULLFSYNC) != 0 {
            if lastError != .interrupted { break }
        }
        #endif
        while fsync(descriptor.rawValue) != 0 {
            guard lastError == .interrupted else { throw FileError("sync", path, lastError) }
        }
    }

    /// Waits until the names in a directory are on the disk.
    package static func synchronizeDirectory(_ path: FilePath) throws(FileError) {
        let descriptor = try FileError.adding("open", path) {
            try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec])
        }
        defer { try? descriptor.close() }
        try synchronize(descriptor, path)
    }

    /// The space on a file system that a program without special rights can use.
    package struct FreeRoom: Sendable {
        package let bytes: Int64
        /// The number of files and folders that can still be made. Unlimited if the file system does not count them.
        package let files: Int64
    }

    /// The free space on a path's file system.
    package static func freeRoom(at path: FilePath) throws(FileError) -> FreeRoom {
        var room = statvfs()
        guard path.withPlatformString({ statvfs($0, &room) }) == 0 else {
            throw FileError("look at", path, lastError)
        }
        let (bytes, isOver) = UInt64(room.f_bavail).multipliedReportingOverflow(by: UInt64(room.f_frsize))
        return FreeRoom(
            bytes: isOver ? .max : Int64(clamping: bytes),
            files: room.f_files == 0 ? .max : Int64(clamping: UInt64(room.f_favail)))
    }

    static var lastError: Errno { Errno(rawValue: errno) }
}

/// An exclusive lock on a file. The lock ends when this object is released or the process ends, even by a crash.
package final class FileLock: Sendable {
    private let descriptor: FileDescriptor

    /// Locks an open file, which is closed when the lock ends. The path is only for the error's message. Throws
    /// ``FileError`` with the errno `wouldBlock` if the file is locked through another descriptor of any process.
    package init(_ descriptor: FileDescriptor, _ path: FilePath) throws(FileError) {
        while flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
            let error = DurableFiles.lastError
            if error == .interrupted { continue }
            try? descriptor.close()
            throw FileError("lock", path, error)
        }
        self.descriptor = descriptor
    }

    deinit {
        // Closing alone does not unlock the file while a child process that is being started has a copy of the
        // descriptor.
        _ = flock(descriptor.rawValue, LOCK_UN)
        try? descriptor.close()
    }
}

/// A new file that is written from start to end. It is closed when this object is released.
package final class DurableFile: Sendable {
    private let path: FilePath
    package let descriptor: FileDescriptor

    /// Makes a file that only its owner can read. Throws ``FileError``, also if a file with the name exists.
    package convenience init(_ path: FilePath) throws(FileError) {
        let descriptor = try FileError.adding("create", path) {
            try FileDescriptor.open(
                path, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: [.ownerRead, .ownerWrite])
        }
        self.init(descriptor, path)
    }

    init(_ descriptor: FileDescriptor, _ path: FilePath) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit {
        try? descriptor.close()
    }

    package func write(_ bytes: RawSpan) throws(FileError) {
        try FileError.adding("write to", path) {
            _ = try bytes.withUnsafeBytes { try descriptor.writeAll($0) }
        }
    }

    package func beginSynchronizing() {
        DurableFiles.beginSynchronizing(descriptor)
    }

    package func synchronize() throws(FileError) {
        try DurableFiles.synchronize(descriptor, path)
    }
}

extension DurableFiles {
    /// Opens a regular file for reading, writing or both; returns `nil` if the file or its directory is missing. Throws
    /// ``FileError`` if the file is not regular, or if its name or that of its directory is a link: an attacker's link
    /// could lead to another directory. Named pipes do not block the thread.
    package static func openRegularFile(
        _ path: FilePath, _ access: FileDescriptor.AccessMode
    ) throws(FileError) -> FileDescriptor? {
        guard let name = path.lastComponent else { throw FileError("open", path, Errno.invalidArgument) }
        let containing = path.removingLastComponent()
        let directory: FileDescriptor
        do {
            directory = try FileDescriptor.open(
                containing.isEmpty ? "." : containing, .readOnly, options: [.directory, .noFollow, .closeOnExec])
        } catch Errno.noSuchFileOrDirectory {
            return nil
        } catch {
            throw FileError("open", containing, error)
        }
        defer { try? directory.close() }
        // Without O_NONBLOCK, opening a named pipe would wait for its other end.
        let flags = access.rawValue | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        while true {
            let result = name.withPlatformString { openat(directory.rawValue, $0, flags) }
            let error = lastError
            if result >= 0 { return try regular(FileDescriptor(rawValue: result), path) }
            if error == .noSuchFileOrDirectory { return nil }
            if error == .interrupted { continue }
            throw FileError(
                "open", path, error,
                reason: error == .tooManySymbolicLinkLevels ? "it is a link, and links are not followed here" : nil)
        }
    }

    /// Whether no file, directory or link exists at a path.
    package static func isMissing(_ path: FilePath) throws(FileError) -> Bool {
        do {
            _ = try path.stat(followTargetSymlink: false)
            return false
        } catch Errno.noSuchFileOrDirectory {
            return true
        } catch {
            throw FileError("look at", path, error)
        }
    }

    /// Returns the file if it is regular. Closes any other file and throws.
    private static func regular(_ file: FileDescriptor, _ path: FilePath) throws(FileError) -> FileDescriptor {
        do {
            guard try file.stat().type == .regular else {
                throw FileError("open", path, Errno.invalidArgument, reason: "it is not a regular file")
            }
            return file
        } catch {
            try? file.close()
            throw error as? FileError ?? FileError("look at", path, error)
        }
    }
}
