import SystemPackage

/// A regular file open for reading; closed with the object.
final class OpenFile: Sendable {
    let path: String
    let partIndex: Int
    private let descriptor: FileDescriptor
    /// What the file was when it was opened.
    let openingStatus: Stat

    convenience init(path: String, partIndex: Int) throws(FormError) {
        let descriptor: FileDescriptor
        do {
            // Without nonBlocking the open of a named pipe would wait for a writer.
            descriptor = try FileDescriptor.open(FilePath(path), .readOnly, options: [.nonBlocking, .closeOnExec])
        } catch {
            throw .file(path, error as? Errno ?? .ioError, partIndex: partIndex)
        }
        try self.init(descriptor, path: path, partIndex: partIndex)
    }

    /// Takes over an open file.
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

    /// What the file is now.
    func status() throws(FormError) -> Stat {
        do {
            return try descriptor.stat()
        } catch {
            throw .file(path, error, partIndex: partIndex)
        }
    }

    /// Reads from an offset of the file; 0 at its end.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(FormError) -> Int {
        do {
            return try descriptor.read(fromAbsoluteOffset: offset, into: buffer)
        } catch {
            throw .file(path, error as? Errno ?? .ioError, partIndex: partIndex)
        }
    }

    /// Up to `count` bytes from an offset of the file.
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
