public import HTTPTypes
public import PostcardFoundation
import Synchronization

/// An entry of a form: its name, the header fields that describe it, and its bytes or their source.
public struct FormPart: Sendable {
    /// The name of the form's field, sent in UTF-8.
    ///
    /// A quote and line breaks are sent as browsers do (`%22`, `%0D`, `%0A`), and a backslash as `\\`. Because browsers
    /// do not escape the percent sign, receivers cannot distinguish a name that contains `%22`, `%0D` or `%0A` from an
    /// escaped one: they read a quote or a line break. Every other name is read unchanged. A name with a NUL is an
    /// error when the form is laid out, because receivers refuse it.
    public var name: String

    /// The name of the file, sent as ``name``; `nil` if the part is not a file. Receivers drop everything up to the
    /// last slash (RFC 7578 §4.2).
    public var filename: String?

    /// The media type of the content. If it is `nil`, a text has none. For other content it is detected from the
    /// filename's extension and the first bytes (``MediaType/forFile(named:firstBytes:)``), and otherwise
    /// `application/octet-stream`.
    public var contentType: MediaType?

    /// Header fields other than `Content-Disposition` and `Content-Type`, which are an error when the form is laid out.
    /// Receivers ignore them (RFC 7578 §4.8), so there is rarely a reason for one.
    public var headerFields: HTTPFields

    /// The source of the part's bytes.
    public var content: Content

    /// What is removed from the content while it is sent, if that is a file or bytes in memory. Defaults to
    /// ``MetadataPolicy/picturesWithoutLocation``.
    public var metadata: MetadataPolicy

    /// What changes the part before the form is sent, such as `PictureFitting` of `PostcardPictures`. Defaults to
    /// `nil`: nothing. Clients and queues prepare a form themselves; ``MultipartForm/withPreparedParts(within:_:)``
    /// does it for all other uses, and ``MultipartForm/layout()`` throws until then.
    public var preparation: (any FormPreparation)?

    /// The file of the content, if it is to be removed with the part's last copy.
    package var ownedFile: OwnedFile?

    /// The lines of the header in place of those that the other properties describe, each with its line break. For
    /// parts that no form of a browser has: without a name, or with a name whose bytes are not UTF-8. Defaults to
    /// `nil`.
    package var headerLines: Data?

    /// A source of a part's bytes.
    public enum Content: Sendable {
        /// A text, sent unchanged in UTF-8.
        case text(String)
        /// Bytes in memory.
        case bytes(Data)
        /// A file on disk, read while it is sent.
        case file(URL)
        /// Bytes that are produced while they are sent.
        case stream(FormStream)
        /// An item that the user has picked, of which the form's client or queue makes a copy.
        case picked(any PickedItem)
    }

    /// Makes a part.
    ///
    /// - Parameters:
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file; for a file on disk without one, the last component of its path.
    ///   - contentType: The media type. Defaults to the detected one.
    ///   - headerFields: Further header fields.
    ///   - content: The bytes, or the file or stream that they are read from.
    ///   - metadata: What is removed from a picture or a video while it is sent. Defaults to where it was taken and
    ///     whose it is.
    ///   - preparation: What changes the part before the form is sent. Defaults to nothing.
    public init(
        name: String, filename: String? = nil, contentType: MediaType? = nil, headerFields: HTTPFields = HTTPFields(),
        content: Content, metadata: MetadataPolicy = .picturesWithoutLocation,
        preparation: (any FormPreparation)? = nil
    ) {
        self.name = name
        self.contentType = contentType
        self.headerFields = headerFields
        self.content = content
        self.metadata = metadata
        self.preparation = preparation
        if case .file(let url) = content {
            self.filename = filename ?? url.lastPathComponent
        } else {
            self.filename = filename
        }
    }
}

/// Bytes of a part that are produced while they are sent, such as a recording, a download or a child's output.
///
/// ```swift
/// let log = FormStream(length: nil) { process.standardOutputChunks() }
/// form.append(log, named: "log", filename: "build.log")
/// ```
///
/// If the length is known, the request has a Content-Length. A stream that then has more or fewer bytes fails the
/// upload with ``FormError/Code/streamLength``; its body never looks complete.
public struct FormStream: Sendable {
    /// The number of bytes, if it is known in advance. A negative length, such as an unknown
    /// `URLResponse.expectedContentLength`, becomes `nil`.
    public let length: Int64?

    /// Whether the bytes can be produced again: for a retry, after a redirect, or from an offset.
    public let isReplayable: Bool

    private let source: Source

    /// A stream that can be opened again and again.
    ///
    /// - Parameters:
    ///   - length: The number of bytes, if it is known.
    ///   - open: Returns the same bytes from the start, each time it is called.
    public init<Chunks: AsyncSequence & SendableMetatype>(
        length: Int64? = nil, opening open: @escaping @Sendable () -> Chunks
    ) where Chunks.Element == Data {
        self.length = length.flatMap { $0 < 0 ? nil : $0 }
        isReplayable = true
        source = Source(isReplayable: true) { StreamChunks(open()) }
    }

    /// A stream that can be read once. An upload of it is not retried.
    ///
    /// - Parameters:
    ///   - chunks: The bytes, in chunks of any size.
    ///   - length: The number of bytes, if it is known.
    public init<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, length: Int64? = nil
    ) where Chunks.Element == Data {
        self.length = length.flatMap { $0 < 0 ? nil : $0 }
        isReplayable = false
        source = Source(isReplayable: false) { StreamChunks(chunks) }
    }

    /// Opens the stream; `nil` if it can be read only once and was.
    func open() -> StreamChunks? {
        source.open()
    }

    /// Remembers whether a stream that can be read once was read.
    private final class Source: Sendable {
        private let isReplayable: Bool
        private let wasOpened = Atomic(false)
        private let make: @Sendable () -> StreamChunks

        init(isReplayable: Bool, make: @escaping @Sendable () -> StreamChunks) {
            self.isReplayable = isReplayable
            self.make = make
        }

        func open() -> StreamChunks? {
            let isFirst = !wasOpened.exchange(true, ordering: .relaxed)
            return isFirst || isReplayable ? make() : nil
        }
    }
}

/// The iterator of a stream that is being read, for a sequence of any type.
final class StreamChunks {
    private let advance: () async throws -> Data?

    init<Chunks: AsyncSequence>(_ chunks: Chunks) where Chunks.Element == Data {
        var iterator = chunks.makeAsyncIterator()
        advance = { try await iterator.next(isolation: #isolation) }
    }

    /// The next bytes, never none; `nil` at the end.
    func next() async throws -> Data? {
        while let chunk = try await advance() {
            if !chunk.isEmpty { return chunk }
        }
        return nil
    }
}
