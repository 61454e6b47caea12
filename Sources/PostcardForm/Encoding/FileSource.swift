import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A file as it was when the layout was made: enough to notice later that it is another one.
struct FileSource: Sendable {
    let path: String
    let partIndex: Int
    private let stamp: FormFileStamp

    /// The number of the file's bytes.
    var length: Int64 { stamp.length }

    /// The file's first bytes, by which its type may be told.
    let firstBytes: [UInt8]

    /// Looks at the file without keeping it open.
    init(_ url: URL, partIndex: Int) throws(FormError) {
        guard url.isFileURL else { throw .notFileURL(url.absoluteString, partIndex: partIndex) }
        path = url.path
        self.partIndex = partIndex
        let file = try OpenFile(path: path, partIndex: partIndex)
        stamp = FormFileStamp(file.openingStatus)
        firstBytes = try file.bytes(at: 0, count: MediaType.firstBytesCount)
        // What the system makes up while it is read, such as the files of /proc, has no size to lay out.
        if firstBytes.count > stamp.length { throw .sizeUnknown(path, partIndex: partIndex) }
    }

    /// Opens the file for reading, provided it is still what it was.
    func open() throws(FormError) -> OpenFile {
        let file = try OpenFile(path: path, partIndex: partIndex)
        try stamp.check(file, file.openingStatus)
        return file
    }

    /// Throws where the file's size or modification time has changed.
    func check(_ file: OpenFile) throws(FormError) {
        try stamp.check(file, try file.status())
    }
}
