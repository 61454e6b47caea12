import PostcardForm
import PostcardFoundation
import SystemPackage

/// The file or the memory with the bytes of a picture.
enum PictureSource: Sendable {
    case file(URL)
    case bytes(Data)

    var content: FormPart.Content {
        switch self {
        case .file(let url): .file(url)
        case .bytes(let bytes): .bytes(bytes)
        }
    }

    /// Opens the picture for reading at any offset.
    func reader() throws(PictureFitError) -> PictureBytes {
        switch self {
        case .bytes(let bytes): PictureBytes(bytes)
        case .file(let url): try PictureBytes(path: url.path)
        }
    }
}

/// The bytes of a picture, which are read into memory in ranges.
final class PictureBytes {
    let count: Int64
    private let descriptor: FileDescriptor?
    private var window: [UInt8] = []
    private var windowStart: Int64 = 0
    private let data: Data

    private static let windowBytes = 64 << 10

    init(_ data: Data) {
        self.data = data
        count = Int64(data.count)
        descriptor = nil
    }

    init(path: String) throws(PictureFitError) {
        data = Data()
        let opened: FileDescriptor
        do {
            // Without nonBlocking, opening a named pipe would wait for a writer.
            opened = try FileDescriptor.open(FilePath(path), .readOnly, options: [.nonBlocking, .closeOnExec])
        } catch {
            throw .unreadable("\(path): \(error)", underlyingError: error)
        }
        descriptor = opened
        do {
            // Directories and pipes can be opened, but not read at an offset. For them, one of these calls throws.
            let length = try opened.seek(offset: 0, from: .end)
            var first: UInt8 = 0
            _ = try withUnsafeMutableBytes(of: &first) { try opened.read(fromAbsoluteOffset: 0, into: $0) }
            count = length
        } catch {
            // `count` is not set yet, so deinit does not run, and the file is closed only here.
            try? opened.close()
            throw .unreadable("\(path): \(error)", underlyingError: error)
        }
    }

    deinit {
        try? descriptor?.close()
    }

    /// The bytes of a range; fewer if the file ends within the range.
    func bytes(at offset: Int64, count wanted: Int) throws(PictureFitError) -> ArraySlice<UInt8> {
        guard offset >= 0, offset < count, wanted > 0 else { return [] }
        let available = Int(min(Int64(wanted), count - offset))  // At most `wanted`, which is an Int.
        guard let descriptor else {
            let start = data.startIndex + Int(clamping: offset)
            return Array(data[start..<(start + available)])[...]
        }
        if offset < windowStart || offset + Int64(available) > windowStart + Int64(window.count) {
            window = [UInt8](repeating: 0, count: max(available, Self.windowBytes))
            windowStart = offset
            do {
                let read = try window.withUnsafeMutableBytes {
                    try descriptor.read(fromAbsoluteOffset: offset, into: $0)
                }
                window.removeLast(window.count - read)
            } catch {
                window = []
                throw .unreadable("\(error)", underlyingError: error)
            }
        }
        let start = Int(clamping: offset - windowStart)
        return window[start..<min(start + available, window.count)]
    }

    /// An unsigned number of up to four bytes; `nil` if the file ends before the end of the number.
    func number(at offset: Int64, bytes count: Int, isLittleEndian: Bool = false) throws(PictureFitError) -> Int64? {
        let found = try bytes(at: offset, count: count)
        guard found.count == count else { return nil }
        let ordered = isLittleEndian ? Array(found.reversed()) : Array(found)
        return ordered.reduce(0) { $0 << 8 | Int64($1) }
    }
}
