public import NIOCore

/// A file of a store, open for reading.
public protocol StoredFile: Sendable {
    /// The size of the file in bytes.
    var size: Int64 { get }

    /// Reads up to `count` bytes from an offset on; fewer only at the end of the file.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func read(at offset: Int64, count: Int) async throws -> ByteBuffer
}

/// Bytes in memory, read as a stored file is.
package struct BytesInMemory: StoredFile {
    let bytes: ByteBuffer

    package init(bytes: ByteBuffer) {
        self.bytes = bytes
    }

    package var size: Int64 { Int64(bytes.readableBytes) }

    package func read(at offset: Int64, count: Int) async throws -> ByteBuffer {
        let start = Int(min(max(offset, 0), size))
        return bytes.getSlice(at: bytes.readerIndex + start, length: min(count, Int(size) - start)) ?? ByteBuffer()
    }
}
