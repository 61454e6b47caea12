public import SystemPackage

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension FormLayout {
    /// The whole body in memory, for small forms and for APIs that take nothing else.
    ///
    /// ```swift
    /// request.httpBody = try await form.layout().data()
    /// ```
    ///
    /// - Parameter maximumBytes: The most bytes to hold: 16 MiB unless given.
    /// - Throws: ``FormError``, with the code ``FormError/Code/bodyTooLarge`` where there are more; a stream's own
    ///   error unchanged.
    public func data(maximumBytes: Int = 16 << 20) async throws -> Data {
        if let contentLength, contentLength > maximumBytes { throw FormError.bodyTooLarge(maximumBytes: maximumBytes) }
        var data = Data(capacity: contentLength.map(Int.init) ?? 0)
        for try await chunk in chunks() {
            guard chunk.count <= maximumBytes - data.count else {
                throw FormError.bodyTooLarge(maximumBytes: maximumBytes)
            }
            data += chunk
        }
        return data
    }

    /// The body in chunks, read while they are taken.
    ///
    /// - Parameter size: The bytes of each chunk; the last one, and those of a stream, may have fewer.
    public func chunks(of size: Int = 256 << 10) -> FormChunks {
        FormChunks(layout: self, size: max(size, 1))
    }

    /// Writes the body to a file, a pipe or a socket, from its beginning to its end.
    ///
    /// The call blocks while the descriptor does.
    ///
    /// - Returns: The number of bytes.
    /// - Throws: ``FormError``; a stream's own error unchanged; `Errno` where the descriptor cannot be written to.
    @discardableResult
    public func write(to descriptor: FileDescriptor) async throws -> Int64 {
        let reader = try reader()
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        while try await reader.prepare() {
            try buffer.withUnsafeMutableBytes { buffer in
                let count = try reader.read(into: buffer)
                _ = try descriptor.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        }
        return reader.position
    }
}

/// The body of a form as a sequence of chunks, each read when it is asked for.
public struct FormChunks: AsyncSequence, Sendable {
    let layout: FormLayout
    let size: Int

    public func makeAsyncIterator() -> Iterator {
        Iterator(layout: layout, size: size)
    }

    /// Gives one chunk after the other. It belongs to one task.
    public struct Iterator: AsyncIteratorProtocol {
        private let layout: FormLayout
        private let size: Int
        private var reader: FormReader?

        init(layout: FormLayout, size: Int) {
            self.layout = layout
            self.size = size
        }

        /// - Throws: ``FormError``; a stream's own error unchanged.
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
