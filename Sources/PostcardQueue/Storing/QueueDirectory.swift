#if Queue
import PostcardForm
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// For fsync and flock.
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// Where a queue lives: its database, the copies of files, and the lock of who sends.
struct QueueDirectory: Sendable {
    let url: URL

    var databasePath: String { url.appending(path: "queue.sqlite").path }
    private var files: URL { url.appending(path: "files") }

    init(_ url: URL) throws(UploadQueueError) {
        self.url = url
        do {
            try FileManager.default.createDirectory(
                at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw .unusableDirectory(url.path, error)
        }
    }

    /// The folder of an upload.
    func folder(named name: String) -> URL { files.appending(path: name) }

    /// Makes a folder for an upload's files.
    func makeFolder() throws -> String {
        let name = UUID().uuidString
        try FileManager.default.createDirectory(at: folder(named: name), withIntermediateDirectories: true)
        return name
    }

    /// Copies a file into an upload's folder, as a clone where the file system can.
    func copy(_ file: URL, to name: String, in folder: String) throws {
        let copy = self.folder(named: folder).appending(path: name)
        try FileManager.default.copyItem(at: file, to: copy)
        try Self.synchronize(copy)
    }

    /// Writes bytes to a file in an upload's folder.
    func write(_ bytes: Data, to name: String, in folder: String) throws {
        let file = self.folder(named: folder).appending(path: name)
        try bytes.write(to: file)
        try Self.synchronize(file)
    }

    /// Waits until an upload's folder is on the disk, its files' names included.
    func synchronize(_ folder: String) throws {
        for directory in [self.folder(named: folder), files, url] { try Self.synchronize(directory) }
    }

    /// Removes an upload's folder; one that is gone already is as good.
    func remove(_ folder: String) {
        try? FileManager.default.removeItem(at: self.folder(named: folder))
    }

    /// Removes the folders that no upload has and nobody has touched for a day: what a process left behind that
    /// ended while it copied.
    func sweep(keeping folders: Set<String>, now: Date) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: files.path)) ?? []
        for name in names where !folders.contains(name) {
            let attributes = try? FileManager.default.attributesOfItem(atPath: folder(named: name).path)
            guard let modified = attributes?[.modificationDate] as? Date, modified < now.addingTimeInterval(-86_400)
            else { continue }
            remove(name)
        }
    }

    private static func synchronize(_ url: URL) throws {
        let descriptor = try FileDescriptor.open(FilePath(url.path), .readOnly, options: .closeOnExec)
        defer { try? descriptor.close() }
        while fsync(descriptor.rawValue) != 0 {
            guard errno == EINTR else { throw Errno(rawValue: errno) }
        }
    }

    /// The right to send from the queue, held until it is let go or the process ends, however it ends.
    final class Lock: Sendable {
        private let descriptor: FileDescriptor

        /// - Throws: ``UploadQueueError`` with the code ``UploadQueueError/Code/inUse``.
        init(_ directory: QueueDirectory) throws(UploadQueueError) {
            let path = directory.url.appending(path: "queue.lock").path
            do {
                descriptor = try FileDescriptor.open(
                    FilePath(path), .readWrite, options: [.create, .closeOnExec],
                    permissions: [.ownerRead, .ownerWrite])
            } catch {
                throw .unusableDirectory(directory.url.path, error)
            }
            while flock(descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
                let error = Errno(rawValue: errno)
                if error == .interrupted { continue }
                try? descriptor.close()
                throw error == .wouldBlock ? .inUse(directory.url.path) : .unusableDirectory(directory.url.path, error)
            }
        }

        deinit {
            // A child that is just being started holds the descriptor too, and with it the lock.
            _ = flock(descriptor.rawValue, LOCK_UN)
            try? descriptor.close()
        }
    }
}
#endif
