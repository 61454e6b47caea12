import Crypto
import PostcardForm
import Synchronization

/// Hashes the content of each part while it is read.
///
/// A reader that begins at the start of the body, as in a retry, restarts the digests. A reader that begins at an
/// offset continues from the latest reader's last byte. Only the latest reader counts.
final class ContentDigests: Sendable {
    private let parts: [PartLayout]
    private let state = Mutex(State())

    fileprivate struct State {
        /// The number that identifies the latest reader.
        var reader = 0
        var progress = Progress.reading(Content())
        /// The size and digest of each part that was hashed to its end.
        var finished: [(size: Int64, sha256: String)] = []
    }

    /// The hash and the size so far of the part that is being hashed.
    fileprivate struct Content {
        var hash = SHA256()
        var size: Int64 = 0
    }

    fileprivate enum Progress {
        case reading(Content)
        /// The body was read to its end.
        case ended
        /// Some bytes were skipped, so the digests cannot be computed.
        case interrupted
    }

    /// Makes digests for the parts of a form.
    init(of parts: [PartLayout]) {
        self.parts = parts
    }

    /// The size and digest of each part; `nil` if the body was not read to its end.
    var sentParts: [SentPart]? {
        state.withLock { state in
            guard case .ended = state.progress else { return nil }
            return zip(parts, state.finished).enumerated().map { index, part in
                SentPart(
                    index: index, name: part.0.name, filename: part.0.filename, size: part.1.size,
                    sha256: part.1.sha256)
            }
        }
    }

    /// Records that a reader was made, and returns the number of the reader.
    ///
    /// - Parameter offset: The offset in the form of the reader's first byte.
    func beginReader(at offset: Int64) -> Int {
        state.withLock { state in
            let reader = state.reader + 1
            if offset == 0 { state = State() }
            state.reader = reader
            return reader
        }
    }

    /// Hashes bytes that a reader has read.
    ///
    /// - Parameters:
    ///   - partIndex: The index of the part that the bytes belong to, from 0.
    ///   - offset: The offset of the bytes in the part's content.
    ///   - reader: The number of the reader.
    func digest(_ bytes: UnsafeRawBufferPointer, ofPart partIndex: Int, at offset: Int64, from reader: Int) {
        state.withLock { state in
            if reader == state.reader { state.hash(bytes, ofPart: partIndex, at: offset) }
        }
    }

    /// Records that a reader has read the last byte of the form.
    func endReader(_ reader: Int) {
        state.withLock { state in
            guard reader == state.reader else { return }
            state.finishParts(before: parts.count)
            if case .reading = state.progress { state.progress = .ended }
        }
    }
}

extension ContentDigests.State {
    /// Hashes the bytes that were not hashed before. The reader may have begun at bytes that were already hashed.
    fileprivate mutating func hash(_ bytes: UnsafeRawBufferPointer, ofPart partIndex: Int, at offset: Int64) {
        guard partIndex >= finished.count else { return }
        finishParts(before: partIndex)
        guard case .reading(var content) = progress else { return }
        guard offset <= content.size else {
            progress = .interrupted
            return
        }
        let seen = Int(min(content.size - offset, Int64(bytes.count)))
        content.hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: bytes[seen...]))
        content.size += Int64(bytes.count - seen)
        progress = .reading(content)
    }

    fileprivate mutating func finishParts(before partIndex: Int) {
        while finished.count < partIndex, case .reading(let content) = progress {
            finished.append((content.size, content.hash.finalize().hexadecimal))
            progress = .reading(ContentDigests.Content())
        }
    }
}

/// The content of a part that was sent.
public struct SentPart: Sendable, Hashable {
    /// The index of the part in the form, from 0.
    public let index: Int

    /// The name of the form's field.
    public let name: String

    /// The name of the file; `nil` for a text field.
    public let filename: String?

    /// The number of bytes of the part's content.
    public let size: Int64

    /// The SHA-256 of the part's content, in lower-case hexadecimal.
    public let sha256: String

    /// Whether the part is a file rather than a text field.
    public var isFile: Bool { filename != nil }
}

extension SentPart: CustomStringConvertible {
    /// A description such as `the file "cat.jpg" (field "petImage", part 2)`. The numbers of parts begin at 1.
    public var description: String {
        let field = "field \(name.debugDescription), part \(index + 1)"
        return filename.map { "the file \($0.debugDescription) (\(field))" } ?? "the \(field)"
    }
}
