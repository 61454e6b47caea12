// Provides the members of timespec.
import PostcardCLibrary
import PostcardFoundation
import SystemPackage

/// The bytes of a file to send. The state of the file when the layout was made reveals later changes.
struct FileSource: Sendable {
    let path: String
    private(set) var partIndex: Int
    private let stamp: FormFileStamp

    /// The open file, if it can be opened only once.
    private let held: OpenFile?

    /// The owner of a temporary file. The file is removed after its last use.
    private var owner: OwnedFile?

    /// The offset in the file of the first byte to send.
    let start: Int64

    /// The number of bytes to send.
    let length: Int64

    /// The first bytes of the file, for detecting its media type.
    let firstBytes: [UInt8]

    /// The bytes that are overwritten while the file is read.
    let edits: FileEdits

    /// Reads the file's size, state and first bytes, without keeping the file open.
    init(
        _ url: URL, ownedBy owner: OwnedFile? = nil, metadata: MetadataPolicy, declaredAs type: MediaType? = nil,
        partIndex: Int
    ) throws(FormError) {
        guard url.isFileURL else { throw .notFileURL(url.absoluteString, partIndex: partIndex) }
        let file = try OpenFile(path: url.path, partIndex: partIndex)
        let length = FormFileStamp(file.openingStatus).length
        let edits = try metadata.edits(
            ofLength: length, declaredAs: type, path: file.path, partIndex: partIndex
        ) {
            try file.read(at: $0, into: $1)
        }
        try self.init(file, isHeld: false, 0..<length, edits: edits, partIndex: partIndex)
        self.owner = owner
        // Generated files, such as those of /proc, have a size of 0.
        if firstBytes.count > length {
            throw length == 0 ? .sizeUnknown(path, partIndex: partIndex) : .grew(path, partIndex: partIndex)
        }
    }

    /// Makes a source from a range of a file that stays open.
    init(in file: OpenFile, _ range: Range<Int64>, partIndex: Int) throws(FormError) {
        try self.init(file, isHeld: true, range, edits: FileEdits(), partIndex: partIndex)
    }

    private init(
        _ file: OpenFile, isHeld: Bool, _ range: Range<Int64>, edits: FileEdits, partIndex: Int
    ) throws(FormError) {
        path = file.path
        self.edits = edits
        self.partIndex = partIndex
        stamp = FormFileStamp(file.openingStatus)
        held = isHeld ? file : nil
        start = range.lowerBound
        length = range.upperBound - range.lowerBound
        let count = min(Int64(DamagedStart.bytesCount), isHeld ? length : .max)
        firstBytes = try file.bytes(at: start, count: Int(clamping: count))
    }

    var isWholeFile: Bool { start == 0 && length == stamp.length && edits.isEmpty }

    func moved(to partIndex: Int) -> FileSource {
        var source = self
        source.partIndex = partIndex
        return source
    }

    /// Opens the file for reading. Throws if the file has changed.
    func open() throws(FormError) -> OpenFile {
        guard let held else {
            let file = try OpenFile(path: path, partIndex: partIndex)
            try stamp.check(file, file.openingStatus)
            return file
        }
        try check(held)
        return held
    }

    /// Throws if the file's size or modification time has changed.
    func check(_ file: OpenFile) throws(FormError) {
        try stamp.check(file, try file.status())
    }
}

/// The size and modification time of a file, which show whether it has changed.
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

    /// Throws if a newer status of the file shows a change.
    func check(_ file: OpenFile, _ status: Stat) throws(FormError) {
        let now = FormFileStamp(status)
        if now.length != length {
            throw .changed(
                file.path, "it had \(length) bytes and now has \(now.length)", partIndex: file.partIndex)
        }
        if now != self { throw .changed(file.path, "it was written to", partIndex: file.partIndex) }
    }
}

/// An open regular file. It is closed when this object is released.
final class OpenFile: Sendable {
    let path: String
    let partIndex: Int
    private let descriptor: FileDescriptor
    let openingStatus: Stat

    convenience init(path: String, partIndex: Int) throws(FormError) {
        let descriptor: FileDescriptor
        do {
            // Without nonBlocking, opening a named pipe would wait for a writer.
            descriptor = try FileDescriptor.open(FilePath(path), .readOnly, options: [.nonBlocking, .closeOnExec])
        } catch {
            throw .file(path, error as? Errno ?? .ioError, partIndex: partIndex)
        }
        try self.init(descriptor, path: path, partIndex: partIndex)
    }

    /// Takes ownership of an open file descriptor.
    init(_ descriptor: FileDescriptor, path: String, partIndex: Int) throws(FormError) {
        self.path = path
        self.partIndex = partIndex
        self.descriptor = descriptor
        do {
            openingStatus = try descriptor.stat()
        } catch {
            try? descriptor.close()
            throw .file(path, error, partIndex: partIndex)
        }
        if let kind = Self.description(ofIrregular: openingStatus.type) {
            throw .notRegular(path, kind: kind, partIndex: partIndex)
        }
    }

    deinit {
        try? descriptor.close()
    }

    func withDescriptor<Result>(_ use: (FileDescriptor) throws -> Result) rethrows -> Result { try use(descriptor) }

    func status() throws(FormError) -> Stat {
        do {
            return try descriptor.stat()
        } catch {
            throw .file(path, error, partIndex: partIndex)
        }
    }

    /// Reads bytes from an offset, and returns their number: 0 at the file's end.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(FormError) -> Int {
        do {
            return try descriptor.read(fromAbsoluteOffset: offset, into: buffer)
        } catch {
            throw .file(path, error as? Errno ?? .ioError, partIndex: partIndex)
        }
    }

    /// Up to `count` bytes from an offset in the file.
    func bytes(at offset: Int64, count: Int) throws(FormError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        do {
            let read = try bytes.withUnsafeMutableBytes { try descriptor.read(fromAbsoluteOffset: offset, into: $0) }
            return Array(bytes.prefix(read))
        } catch {
            throw .file(path, error as? Errno ?? .ioError, partIndex: partIndex)
        }
    }

    private static func description(ofIrregular type: FileType) -> String? {
        switch type {
        case .regular: nil
        case .directory: "a directory"
        case .fifo: "a pipe"
        case .socket: "a socket"
        default: "a device"
        }
    }
}

extension FormError {
    /// The error for a file that cannot be opened or read, with the system's reason.
    static func file(_ path: String, _ errno: Errno, partIndex: Int) -> FormError {
        switch errno {
        case .noSuchFileOrDirectory, .notDirectory:
            FormError(
                .fileMissing, "No such file: \(path)", advice: "Check the path.", path: path, partIndex: partIndex,
                underlyingError: errno)
        default:
            FormError(
                .fileUnreadable, "The file \(path) cannot be read: \(errno)",
                advice: "Check that the file is readable.", path: path, partIndex: partIndex, underlyingError: errno)
        }
    }
}
