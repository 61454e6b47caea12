import PostcardFiles
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Where an upload lies that can be resumed: what is known of it, its bytes, and in their place at last its answer.
/// Every call blocks.
///
/// A folder whose `upload.json` cannot be read was never told of to anybody, because its address is given away only
/// once that is on the disk. Bytes are appended to `body` in their order, so that all of it is a beginning of the form,
/// also when the receiver was killed. A power cut may leave zeros where bytes were not synced: after one, only those
/// count that were promised to the sender.
struct UnfinishedFolder: Sendable {
    /// What is known of an upload from its beginning on.
    struct Facts: Sendable, Codable {
        /// The form's own type, with its boundary.
        let contentType: String
        /// Under which key the form becomes a record: the sender's, or one of the upload's own.
        let keyDigest: String
        let created: Date
        let expires: Date
        /// The bytes that the upload is to have, once its sender has said it.
        var length: Int64?
        /// How many bytes the sender was last promised, all of them synced; `nil` from a version that did not say.
        var promised: Int64? = 0
        /// When the bytes after those were written: see ``DurableFiles/systemStart``.
        var systemStart = SystemStart.current
    }

    /// What an upload has come to.
    enum Content: Sendable {
        case bytes(Int64)
        case answer(length: Int64, location: String?)
    }

    let path: FilePath

    private var factsPath: FilePath { path.appending("upload.json") }
    private var answerPath: FilePath { path.appending("answer.json") }
    var body: FilePath { path.appending("body") }

    /// Makes the folder, so that it is there after a power cut.
    func make(_ facts: Facts) throws(FileError) {
        try DurableFiles.makeDirectory(path)
        do throws(FileError) {
            try write(facts, to: factsPath)
            _ = try DurableFile(body)
            try DurableFiles.synchronizeDirectory(path)
            try DurableFiles.synchronizeDirectory(path.removingLastComponent())
        } catch {
            // Without a sync: no client knows the address of a folder that a power cut brings back, and it expires.
            try? FileManager.default.removeItem(atPath: path.string)
            throw error
        }
    }

    /// What was there when the receiver was started.
    ///
    /// - Returns: `nil` where the receiver was ended before anybody was told of the upload.
    func load() throws -> (facts: Facts, content: Content)? {
        do {
            return try loadWhole()
        } catch is DecodingError, Errno.noSuchFileOrDirectory {
            return nil
        }
    }

    private func loadWhole() throws -> (facts: Facts, content: Content) {
        var facts = try read(Facts.self, from: factsPath)
        if let answer = try? read(KeptAnswer.self, from: answerPath) {
            try? FileManager.default.removeItem(atPath: body.string)
            return (facts, .answer(length: answer.length, location: answer.location))
        }
        guard let file = try LocalFile(body) else { throw Errno.noSuchFileOrDirectory }
        var size = file.size
        if let promised = facts.promised, facts.systemStart == nil || facts.systemStart != SystemStart.current {
            size = min(size, promised)
            try AppendedFile(body).cut(to: size)
            facts.systemStart = SystemStart.current
            // If this fails, what follows counts as lost at the next start, as it does now.
            try? update(facts)
        }
        return (facts, .bytes(size))
    }

    /// Writes what was learned of the upload.
    func update(_ facts: Facts) throws(FileError) {
        try replace(factsPath, with: facts)
    }

    /// Keeps the answer, and no longer the bytes.
    func finish(_ answer: KeptAnswer) throws(FileError) {
        try replace(answerPath, with: answer)
        // Without a sync: beside an answer, the bytes are removed again at the next start.
        try? FileManager.default.removeItem(atPath: body.string)
    }

    func answer() throws(UploadStoreError) -> KeptAnswer {
        do {
            return try read(KeptAnswer.self, from: answerPath)
        } catch {
            throw .unreadable("read", answerPath, error)
        }
    }

    /// Removes everything.
    ///
    /// - Parameter doomed: Where what could not be removed is removed at the next start.
    func remove(by doomed: FilePath) throws(FileError) {
        do throws(FileError) {
            try DurableFiles.move(path, to: doomed)
        } catch  where error.errno == .noSuchFileOrDirectory {
            // An earlier try got as far as this.
        }
        defer { try? FileManager.default.removeItem(atPath: doomed.string) }
        try DurableFiles.synchronizeDirectory(path.removingLastComponent())
    }

    private func replace(_ path: FilePath, with value: some Encodable) throws(FileError) {
        let new = FilePath(path.string + ".new")
        // What a crash or a full disk left of an earlier attempt.
        try? FileManager.default.removeItem(atPath: new.string)
        try write(value, to: new)
        try DurableFiles.move(new, to: path)
        try DurableFiles.synchronizeDirectory(self.path)
    }

    private func write(_ value: some Encodable, to path: FilePath) throws(FileError) {
        do {
            let file = try DurableFile(path)
            try file.write(JSONEncoder().encode(value).bytes)
            try file.synchronize()
        } catch {
            throw error as? FileError ?? FileError("write", path, error, reason: "\(error)")
        }
    }

    private func read<Value: Decodable>(_ type: Value.Type, from path: FilePath) throws -> Value {
        guard let file = try LocalFile(path) else { throw Errno.noSuchFileOrDirectory }
        return try JSONDecoder().decode(type, from: file.data())
    }
}

/// Identifies the time since the system was started.
///
/// Bytes that were written and not synced are there for as long as it lasts, whatever happens to the program. After that
/// a file can have zeros in their place: its length may reach the disk before its bytes do.
enum SystemStart {
    /// `nil` if the system does not say.
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

/// The bytes of an upload while more are appended to them; closed when nobody holds it any more.
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

    /// Writes behind what is there.
    ///
    /// - Parameter written: Told of every piece that is in the file, also where the rest does not fit.
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

    /// Leaves the first bytes alone.
    func cut(to length: Int64) throws(FileError) {
        do {
            try descriptor.resize(to: length)
        } catch {
            throw FileError("shorten", path, error)
        }
    }

    /// Waits until the bytes are on the disk.
    func synchronize() throws(FileError) {
        try DurableFiles.synchronize(descriptor, path)
    }
}
