import PostcardFoundation
import SystemPackage

/// Some bytes of a file, usually all of them, and what the file was when the layout was made: enough to notice later
/// that it has changed.
struct FileSource: Sendable {
    let path: String
    private(set) var partIndex: Int
    private let stamp: FormFileStamp

    /// A file that stays open, for one that may only be reached once.
    private let held: OpenFile?

    /// Keeps a file that is removed with the last use of it.
    private var owner: OwnedFile?

    /// The offset in the file at which the bytes begin.
    let start: Int64

    /// The number of bytes.
    let length: Int64

    /// The first bytes, by which their type may be recognized.
    let firstBytes: [UInt8]

    /// What is overwritten while the file is read.
    let edits: FileEdits

    /// Looks at the file without keeping it open.
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
        // What the system makes up while it is read, such as the files of /proc, has no size to lay out.
        if firstBytes.count > length {
            throw length == 0 ? .sizeUnknown(path, partIndex: partIndex) : .grew(path, partIndex: partIndex)
        }
    }

    /// Some bytes of a file that stays open.
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

    /// Whether these are all bytes of the file, as it is on disk.
    var isWholeFile: Bool { start == 0 && length == stamp.length && edits.isEmpty }

    /// The same bytes as the content of another part.
    func moved(to partIndex: Int) -> FileSource {
        var source = self
        source.partIndex = partIndex
        return source
    }

    /// Opens the file for reading, provided it has not changed.
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
