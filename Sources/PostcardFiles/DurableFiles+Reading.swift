package import SystemPackage

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

extension DurableFiles {
    /// Opens a regular file. Neither its name nor that of the directory it is in may be a link: what others put in
    /// the place of a file does not lead out of the directory, and a named pipe does not hold up the thread.
    ///
    /// - Parameter access: What the file is opened for.
    /// - Returns: `nil` if there is no such file or directory.
    /// - Throws: ``FileError``, also if one of the names is a link, or the file is not regular.
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

    /// Whether nothing has the path as its name.
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

    /// Returns a file if it is regular, and closes it otherwise.
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
