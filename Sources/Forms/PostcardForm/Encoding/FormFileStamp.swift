// For the members of timespec.
import PostcardCLibrary
import SystemPackage

/// By which a file is known to be the one that it was: its size and the time of its last change.
struct FormFileStamp: Sendable, Hashable {
    /// The number of the file's bytes.
    let length: Int64

    private let seconds: Int64
    private let nanoseconds: Int64

    init(_ status: Stat) {
        length = Int64(status.size)
        let time = status.st_mtim
        seconds = Int64(time.tv_sec)
        nanoseconds = Int64(time.tv_nsec)
    }

    /// Throws where a status of the file says that it has changed.
    func check(_ file: OpenFile, _ status: Stat) throws(FormError) {
        let now = FormFileStamp(status)
        if now.length != length {
            throw .changed(
                file.path, "it had \(length) bytes and now has \(now.length)", partIndex: file.partIndex)
        }
        if now != self { throw .changed(file.path, "it was written to", partIndex: file.partIndex) }
    }
}
