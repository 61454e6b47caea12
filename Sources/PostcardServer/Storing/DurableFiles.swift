#if Server
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// The calls on files that durability is made of and that swift-system does not have. All of them block.
enum DurableFiles {
    /// Makes a directory that only its owner may look into.
    static func makeDirectory(_ path: FilePath) throws(UploadStoreError) {
        guard path.withPlatformString({ mkdir($0, 0o700) }) == 0 else { throw .file("make", path, lastError) }
    }

    /// Makes a directory where there is none, and all above it that are missing, so that they survive a power cut.
    static func makeDirectories(_ path: FilePath) throws(UploadStoreError) {
        let containing = path.removingLastComponent()
        do throws(UploadStoreError) {
            try makeDirectory(path)
        } catch  where error.underlying as? Errno == .fileExists {
            return
        } catch  where error.underlying as? Errno == .noSuchFileOrDirectory && !containing.isEmpty {
            try makeDirectories(containing)
            try makeDirectory(path)
        }
        try synchronizeDirectory(containing.isEmpty ? "." : containing)
    }

    /// Names a file or directory anew, in place of whatever had the name.
    static func move(_ path: FilePath, to other: FilePath) throws(UploadStoreError) {
        let result = path.withPlatformString { old in other.withPlatformString { new in rename(old, new) } }
        guard result == 0 else { throw .file("rename", path, lastError) }
    }

    /// Lets the disk begin to write what was written to a file. It is a hint, and fails in silence.
    static func beginSynchronizing(_ descriptor: FileDescriptor) {
        #if os(Linux) || os(Android)
        // To give pages up the system has to write them first, and it does not wait until it has.
        _ = posix_fadvise(descriptor.rawValue, 0, 0, POSIX_FADV_DONTNEED)
        #endif
    }

    /// Waits until what was written to the file is on the disk.
    static func synchronize(_ descriptor: FileDescriptor, _ path: FilePath) throws(UploadStoreError) {
        #if canImport(Darwin)
        // On Darwin fsync leaves the bytes in the drive's own cache. Not every file system knows the stronger call.
        if fcntl(descriptor.rawValue, F_FULLFSYNC) == 0 { return }
        #endif
        while fsync(descriptor.rawValue) != 0 {
            guard lastError == .interrupted else { throw .file("sync", path, lastError) }
        }
    }

    /// Waits until the names in the directory are on the disk.
    static func synchronizeDirectory(_ path: FilePath) throws(UploadStoreError) {
        let descriptor: FileDescriptor
        do {
            descriptor = try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec])
        } catch {
            throw .file("open", path, error)
        }
        defer { try? descriptor.close() }
        try synchronize(descriptor, path)
    }

    /// The bytes that are free for a program like this one where a path lies.
    static func freeBytes(at path: FilePath) throws(UploadStoreError) -> Int64 {
        var room = statvfs()
        guard path.withPlatformString({ statvfs($0, &room) }) == 0 else { throw .file("look at", path, lastError) }
        let (bytes, isOver) = UInt64(room.f_bavail).multipliedReportingOverflow(by: UInt64(room.f_frsize))
        return isOver ? .max : Int64(clamping: bytes)
    }

    /// Takes a file's lock, until it is given back or the process ends.
    ///
    /// - Returns: `false` where someone else has it.
    /// - Throws: Whatever else the system says, such as that the file system knows no locks.
    static func lock(_ descriptor: FileDescriptor) throws(Errno) -> Bool {
        while flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
            switch lastError {
            case .interrupted: continue
            case .wouldBlock: return false
            case let error: throw error
            }
        }
        return true
    }

    /// Gives a file's lock back.
    static func unlock(_ descriptor: FileDescriptor) {
        _ = flock(descriptor.rawValue, LOCK_UN)
    }

    static var lastError: Errno { Errno(rawValue: errno) }
}
#endif
