import PostcardFiles
import PostcardFoundation
import SystemPackage

/// The directory of an unfinished upload: `upload.json` with its ``Facts``, and `body` with the bytes received so far.
/// When the upload is finished, `answer.json` with the response replaces `body`. Every call blocks.
///
/// A client learns the address of an upload only after `upload.json` is on the disk, so a directory without that file
/// can be removed. `upload.json` and `answer.json` appear complete, by a rename. Bytes are appended to `body` in order,
/// so `body` is always the beginning of the form, even if the server was killed. A power cut may turn unsynced bytes
/// into zeros. After a power cut, only the bytes that were reported to the client as stored therefore count.
struct UnfinishedDirectory: Sendable {
    struct Facts: Sendable, Codable {
        /// The Content-Type of the form, with its boundary.
        let contentType: String
        /// The digest of the idempotency key under which the form becomes a record.
        let keyDigest: String
        let created: Date
        let expires: Date
        /// The length of the form, in bytes; `nil` until a request declares it.
        var length: Int64?
        /// The number of synced bytes that were reported to the client as stored; `nil` in files of an early version.
        var promised: Int64? = 0
        /// Identifies the start of the system after which the unsynced bytes were written.
        var systemStart = SystemStart.current
        /// The digest fields of the request that created the upload.
        var reprDigest: String?
        var wantReprDigest: String?
        /// The Content-Disposition parameters that name the file, if the upload is not a form.
        var fileParameters: String?
        var client: PeerAddress?

        /// Checks that the facts are valid. Other programs may have changed them.
        func check() throws(StoreDamage) {
            let times = UnfinishedForm.possibleTimes
            guard times.contains(created), times.contains(expires), length ?? 0 >= 0, promised ?? 0 >= 0,
                UploadKey.isDigest(keyDigest)
            else { throw StoreDamage("upload.json says what cannot be true of an upload.") }
        }
    }

    let path: FilePath

    private var factsFile: JSONFile { JSONFile(path: path.appending("upload.json")) }
    private var responseFile: JSONFile { JSONFile(path: path.appending("answer.json")) }
    var body: FilePath { path.appending("body") }

    /// Makes the directory, and waits until it is on the disk.
    func make(_ facts: Facts) throws(FileError) {
        try DurableFiles.makeDirectory(path)
        do throws(FileError) {
            _ = try DurableFile(body)
            try factsFile.replace(with: facts)
            try DurableFiles.synchronizeDirectory(path.removingLastComponent())
        } catch {
            // No sync is needed: if a power cut restores the directory, no client knows its address, and it expires.
            try? FileManager.default.removeItem(atPath: path.string)
            throw error
        }
    }

    /// Reads the upload when the store is opened; `nil` if the server was killed before a client learned the address,
    /// or while it removed the upload. Throws an error that ``StoreDamage/isCause(of:)`` recognizes if the files are
    /// damaged; `FileError` otherwise.
    func load() throws -> (facts: Facts, progress: UnfinishedUploadProgress)? {
        guard var facts = try factsFile.read(Facts.self) else { return nil }
        try facts.check()
        if let response = try responseFile.read(FinalResponse.self) {
            try? FileManager.default.removeItem(atPath: body.string)
            return (facts, .finished(length: response.length, record: response.record))
        }
        guard let file = try LocalFile(body) else { return nil }
        guard file.size <= facts.length ?? Self.maximumBytes else {
            throw StoreDamage("The file body has \(file.size) bytes, more than the form.")
        }
        var size = file.size
        guard size >= facts.promised ?? 0 else {
            throw StoreDamage("The file body has \(size) bytes, fewer than the client was promised.")
        }
        if let promised = facts.promised, facts.systemStart == nil || facts.systemStart != SystemStart.current {
            size = min(size, promised)
            try AppendedFile(body).cut(to: size)
            facts.systemStart = SystemStart.current
            // If the update fails, the next start cuts the body to the promised bytes again.
            try? update(facts)
        }
        return (facts, .unfinished(offset: size))
    }

    func update(_ facts: Facts) throws(FileError) {
        try factsFile.replace(with: facts)
    }

    /// Stores the response, and removes the bytes of the upload.
    func finish(_ response: FinalResponse) throws(FileError) {
        try responseFile.replace(with: response)
        // No sync is needed: the next start also removes the bytes of an upload with a response.
        try? FileManager.default.removeItem(atPath: body.string)
    }

    func response() throws(UploadStoreError) -> FinalResponse {
        do {
            if let response = try responseFile.read(FinalResponse.self) { return response }
            throw FileError("open", responseFile.path, Errno.noSuchFileOrDirectory)
        } catch  where StoreDamage.isCause(of: error) {
            throw .damaged(responseFile.path, error)
        } catch {
            throw .unreadable("read", responseFile.path, error)
        }
    }

    /// Moves the directory to the path `doomed`, and removes it there. If the removal fails, the next start repeats it.
    func remove(by doomed: FilePath) throws(FileError) {
        do throws(FileError) {
            try DurableFiles.move(path, to: doomed)
        } catch  where error.errno == .noSuchFileOrDirectory {
            // An earlier attempt has already moved the directory.
        }
        defer { try? FileManager.default.removeItem(atPath: doomed.string) }
        try DurableFiles.synchronizeDirectory(path.removingLastComponent())
    }

    /// The maximum size of a body, in bytes: a petabyte, more than any disk holds.
    private static let maximumBytes: Int64 = 1 << 50
}

/// Identifies the last start of the operating system.
///
/// Bytes that were written but not synced survive the end of the program, but not the end of the system. After a power
/// cut, a file may contain zeros in their place, because its length may reach the disk before the bytes.
enum SystemStart {
    /// The identifier of the start; `nil` if the system does not provide it.
    static let current: String? = {
        var bytes = [UInt8](repeating: 0, count: 64)
        #if canImport(Darwin)
        var count = bytes.count
        guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
        #else
        let path: FilePath = "/proc/sys/kernel/random/boot_id"
        guard let file = try? FileDescriptor.open(path, .readOnly, options: [.closeOnExec]) else { return nil }
        defer { try? file.close() }
        let count = try? bytes.withUnsafeMutableBytes { try file.read(into: $0) }
        guard count ?? 0 > 0 else { return nil }
        #endif
        return String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
    }()
}

/// The file with the bytes of an unfinished upload, open for appending. It is closed when this object is released.
final class AppendedFile: Sendable {
    private let path: FilePath
    private let descriptor: FileDescriptor

    init(_ path: FilePath) throws(FileError) {
        self.path = path
        guard let opened = try DurableFiles.openRegularFile(path, .writeOnly) else {
            throw FileError("open", path, Errno.noSuchFileOrDirectory)
        }
        descriptor = opened
    }

    deinit {
        try? descriptor.close()
    }

    /// Appends bytes. Calls `written` with the length of each written piece, even if a later one fails.
    func append(_ bytes: RawSpan, at offset: Int64, written: (Int) -> Void) throws(FileError) {
        do {
            try bytes.withUnsafeBytes { bytes in
                var position = 0
                while position < bytes.count {
                    let count = try descriptor.write(
                        toAbsoluteOffset: offset + Int64(position), UnsafeRawBufferPointer(rebasing: bytes[position...])
                    )
                    position += count
                    written(count)
                }
            }
        } catch {
            throw FileError("write to", path, error)
        }
    }

    /// The length of the file in bytes.
    func size() throws(FileError) -> Int64 {
        try FileError.adding("look at", path) { try descriptor.stat().size }
    }

    /// Shortens the file to its first bytes.
    func cut(to length: Int64) throws(FileError) {
        try FileError.adding("shorten", path) { try descriptor.resize(to: length) }
    }

    /// Waits until the written bytes are on the disk.
    func synchronize() throws(FileError) {
        try DurableFiles.synchronize(descriptor, path)
    }
}
