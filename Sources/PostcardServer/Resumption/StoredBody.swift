import NIOCore
import PostcardFiles
import SystemPackage

/// The bytes of an upload that has come whole, as a request's body.
struct StoredBody: AsyncSequence, Sendable {
    let path: FilePath

    private static let pieceBytes = 256 << 10

    struct AsyncIterator: AsyncIteratorProtocol {
        let path: FilePath
        private var file: LocalFile?
        private var offset: Int64 = 0

        fileprivate init(path: FilePath) {
            self.path = path
        }

        mutating func next() async throws -> ByteBuffer? {
            let file = try await open()
            let piece = try await file.read(at: offset, count: StoredBody.pieceBytes)
            offset += Int64(piece.readableBytes)
            return piece.readableBytes > 0 ? piece : nil
        }

        private mutating func open() async throws -> LocalFile {
            if let file { return file }
            let opened = try await onFileThread { [path] in
                guard let file = try LocalFile(path) else {
                    throw FileError("open", path, Errno.noSuchFileOrDirectory)
                }
                return file
            }
            file = opened
            return opened
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(path: path) }
}
