public import PostcardFoundation
public import SystemPackage

extension FormLayout {
    /// The whole body in memory, for small forms and for APIs that need all bytes at once.
    ///
    /// ```swift
    /// request.httpBody = try await form.layout().data()
    /// ```
    ///
    /// - Parameter maximumBytes: The maximum size of the body, in bytes. Defaults to 16 MiB.
    /// - Throws: ``FormError``, with code ``FormError/Code/bodyTooLarge`` if the body is larger; a stream's error,
    ///   unchanged.
    @concurrent public func data(maximumBytes: Int = 16 << 20) async throws -> Data {
        if let contentLength, contentLength > maximumBytes { throw FormError.bodyTooLarge(maximumBytes: maximumBytes) }
        var data = Data(capacity: contentLength.map { Int(clamping: $0) } ?? 0)
        for try await chunk in chunks() {
            guard chunk.count <= maximumBytes - data.count else {
                throw FormError.bodyTooLarge(maximumBytes: maximumBytes)
            }
            data += chunk
        }
        return data
    }

    /// The body in chunks. The task that requests a chunk also reads it, so do not iterate on the main actor.
    ///
    /// - Parameter size: The size of each chunk, in bytes. The last chunk and chunks of a stream may be smaller.
    public func chunks(of size: Int = 256 << 10) -> Chunks {
        Chunks(layout: self, size: max(size, 1))
    }

    /// Writes the whole body to a file, a pipe or a socket.
    ///
    /// Waiting for the descriptor does not block the caller's actor.
    ///
    /// - Returns: The number of bytes.
    /// - Throws: ``FormError``; a stream's own error, unchanged; `Errno` if the descriptor cannot be written to;
    ///   `CancellationError` if the task is cancelled.
    @discardableResult
    public func write(to descriptor: FileDescriptor) async throws -> Int64 {
        try await writeBody(to: descriptor).length
    }

    /// Writes the body, and returns its length and the range of each part's content.
    @concurrent package func writeBody(
        to descriptor: FileDescriptor
    ) async throws -> (length: Int64, contentRanges: [Range<Int64>]) {
        let reader = try reader()
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        while try await reader.prepare() {
            try Task.checkCancellation()
            _ = try reader.write(to: descriptor, through: &buffer)
        }
        return (reader.position, reader.contentRanges)
    }
}

extension FormReader {
    /// Reads the next available bytes of the body into a buffer, and writes them to a file. Returns their number, which
    /// is 0 at the end of the body, and while ``needsPreparation`` is `true`.
    fileprivate func write(to descriptor: FileDescriptor, through buffer: inout [UInt8]) throws -> Int {
        try buffer.withUnsafeMutableBytes { buffer in
            let count = try read(into: buffer)
            _ = try descriptor.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            return count
        }
    }
}

extension FormLayout {
    /// Makes the layout of a body that is already in an open file. The file is closed when the layout is released. The
    /// path is only for messages. `parts` has the name, filename and type of each part, and the range of its content in
    /// the file. Throws ``FormError`` if the file cannot be read or does not have the expected parts.
    package init(
        written descriptor: FileDescriptor, path: String, contentType: String,
        parts: [(part: PartLayout, content: Range<Int64>)]
    ) throws(FormError) {
        let file = try OpenFile(descriptor, path: path, partIndex: 0)
        let length = FormFileStamp(file.openingStatus).length
        var segments: [Segment] = []
        var offset: Int64 = 0
        func appendFraming(upTo end: Int64, partIndex: Int) throws(FormError) {
            guard offset <= end, end <= length, end - offset <= Self.maximumFramingBytes else {
                throw .changed(path, "its parts are not where they were", partIndex: partIndex)
            }
            let bytes = try file.bytes(at: offset, count: Int(clamping: end - offset))
            segments.append(Segment(offset: offset, length: Int64(bytes.count), source: .framing(Data(bytes))))
            offset = end
        }
        for (index, part) in parts.enumerated() {
            try appendFraming(upTo: part.content.lowerBound, partIndex: index)
            guard part.content.upperBound <= length else {
                throw .changed(path, "it ends after \(length) bytes", partIndex: index)
            }
            let source = try FileSource(in: file, part.content, partIndex: index)
            segments.append(Segment(offset: offset, length: source.length, source: .file(source)))
            offset = part.content.upperBound
        }
        try appendFraming(upTo: length, partIndex: max(parts.count - 1, 0))
        self.init(segments, parts: parts.map(\.part), contentType: contentType, contentLength: length)
    }

    /// The maximum number of bytes between two contents. These bytes are held in memory.
    private static let maximumFramingBytes: Int64 = 1 << 20

    /// The body of a form as a sequence of chunks. Each chunk is read when it is requested.
    public struct Chunks: AsyncSequence, Sendable {
        let layout: FormLayout
        let size: Int

        public func makeAsyncIterator() -> Iterator { Iterator(layout: layout, size: size) }

        /// An iterator over the chunks. It belongs to one task.
        public struct Iterator: AsyncIteratorProtocol {
            private let layout: FormLayout
            private let size: Int
            private var reader: FormReader?

            init(layout: FormLayout, size: Int) {
                self.layout = layout
                self.size = size
            }

            /// The next chunk; `nil` at the end of the body.
            ///
            /// - Throws: ``FormError``; a stream's own error, unchanged.
            public mutating func next() async throws -> Data? {
                let reader = try reader ?? layout.reader()
                self.reader = reader
                while try await reader.prepare() {
                    var chunk = Data(count: size)
                    let count = try chunk.withUnsafeMutableBytes { try reader.read(into: $0) }
                    if count > 0 { return chunk.prefix(count) }
                }
                return nil
            }
        }
    }
}
