import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// For the members of timespec.
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// A file as it was when the layout was made: enough to notice later that it is another one.
struct FileSource: Sendable {
    let path: String
    let partIndex: Int
    let length: Int64
    private let modified: Modification

    /// The file's first bytes, by which its type may be told.
    let firstBytes: [UInt8]

    private struct Modification: Sendable, Equatable {
        let seconds: Int64
        let nanoseconds: Int64
    }

    /// Looks at the file without keeping it open.
    init(_ url: URL, partIndex: Int) throws(FormError) {
        guard url.isFileURL else { throw .notFileURL(url.absoluteString, partIndex: partIndex) }
        path = url.path
        self.partIndex = partIndex
        let file = try OpenFile(path: path, partIndex: partIndex)
        let status = try file.status()
        length = Int64(status.size)
        modified = Self.modification(of: status)
        firstBytes = try file.bytes(at: 0, count: MediaType.firstBytesCount)
        // What the system makes up while it is read, such as the files of /proc, has no size to lay out.
        if firstBytes.count > length { throw .sizeUnknown(path, partIndex: partIndex) }
    }

    /// Opens the file for reading, provided it is still what it was.
    func open() throws(FormError) -> OpenFile {
        let file = try OpenFile(path: path, partIndex: partIndex)
        try check(file)
        return file
    }

    /// Throws where the file's size or modification time has changed.
    func check(_ file: OpenFile) throws(FormError) {
        let status = try file.status()
        if Int64(status.size) != length {
            throw .changed(path, "it had \(length) bytes and now has \(status.size)", partIndex: partIndex)
        }
        if Self.modification(of: status) != modified {
            throw .changed(path, "it was written to", partIndex: partIndex)
        }
    }

    private static func modification(of status: Stat) -> Modification {
        let time = status.st_mtim
        return Modification(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }
}
