public import HTTPTypes
public import PostcardFoundation
import Synchronization

/// An entry of a form: its name, the header fields that describe it, and its bytes or their source.
public struct FormPart: Sendable {
    /// The name of the form's field, sent in UTF-8.
    ///
    /// Quotes and line breaks are sent as browsers send them (`%22`, `%0D`, `%0A`), and a backslash as `\\`. Because
    /// browsers do not escape the percent sign, receivers cannot distinguish a name that contains `%22`, `%0D` or `%0A`
    /// from an escaped quote or line break. Every other name is read unchanged. A name with a NUL is an error when the
    /// form is laid out, because receivers refuse it.
    public var name: String

    /// The name of the file, escaped like ``name``; `nil` if the part is not a file. Receivers drop everything up to
    /// the last slash (RFC 7578 §4.2).
    public var filename: String?

    /// The media type of the content. If it is `nil`, a text is sent without a media type. For other content the type
    /// is detected from the filename's extension and the first bytes (``MediaType/forFile(named:firstBytes:)``); it is
    /// `application/octet-stream` if they are unknown.
    public var contentType: MediaType?

    /// Further header fields. `Content-Disposition` and `Content-Type` among them are an error when the form is laid
    /// out. Receivers ignore all others (RFC 7578 §4.8), so they are rarely useful.
    public var headerFields: HTTPFields

    /// The source of the part's bytes.
    public var content: Content

    /// The metadata that is removed from the content while it is sent. It applies to files and to bytes in memory.
    /// Defaults to ``MetadataPolicy/picturesWithoutLocation``.
    public var metadata: MetadataPolicy

    /// The preparation that changes the part before the form is sent, such as `PictureFitting` of `PostcardPictures`.
    /// Defaults to `nil`: the part is sent unchanged. Clients and queues prepare a form themselves. For all other uses,
    /// call ``MultipartForm/withPreparedParts(within:_:)``: ``MultipartForm/layout()`` throws if a part is not
    /// prepared.
    public var preparation: (any FormPreparation)?

    /// The file with the content, if it must be removed with the part's last copy.
    package var ownedFile: OwnedFile?

    /// Header lines that are sent instead of the other properties, each with its line break. For parts that no
    /// browser's form can have: without a name, or with a name whose bytes are not UTF-8. Defaults to `nil`.
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
        /// An item that the user has picked. The form's client or queue makes a copy of it.
        case picked(any PickedItem)
    }

    /// Makes a part.
    ///
    /// - Parameters:
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file; for a file on disk, it defaults to the last component of the path.
    ///   - contentType: The media type. Defaults to the detected one.
    ///   - headerFields: Further header fields.
    ///   - content: The bytes, or the file or stream that they are read from.
    ///   - metadata: The metadata that is removed from a picture or a video while it is sent. Defaults to where it was
    ///     taken and whose it is.
    ///   - preparation: The preparation that changes the part before the form is sent. Defaults to none.
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
/// If the length is known, the request has a Content-Length. If the stream then has more or fewer bytes, the upload
/// fails with ``FormError/Code/streamLength``; its body never looks complete.
public struct FormStream: Sendable {
    /// The number of bytes, if it is known in advance. A negative length, such as an unknown
    /// `URLResponse.expectedContentLength`, becomes `nil`.
    public let length: Int64?

    /// Whether the stream can be opened again: for a retry, after a redirect, or to resume from an offset.
    public let isReplayable: Bool

    private let source: Source

    /// Makes a stream that can be opened any number of times.
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

    /// Makes a stream that can be read only once. An upload with such a stream is not retried.
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

    /// Opens the stream. `nil` if the stream can be read only once, and was opened before.
    func open() -> StreamChunks? {
        source.open()
    }

    /// The source of a stream's bytes. It remembers whether a stream that can be read only once was opened.
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

/// The iterator over the chunks of a stream, for a sequence of any type.
final class StreamChunks {
    private let advance: () async throws -> Data?

    init<Chunks: AsyncSequence>(_ chunks: Chunks) where Chunks.Element == Data {
        var iterator = chunks.makeAsyncIterator()
        advance = { try await iterator.next(isolation: #isolation) }
    }

    /// The next chunk, which is never empty; `nil` at the end.
    func next() async throws -> Data? {
        while let chunk = try await advance() {
            if !chunk.isEmpty { return chunk }
        }
        return nil
    }
}
