public import HTTPTypes
public import PostcardFoundation
import Synchronization

/// A part of a form: its name, the header fields that describe it, and its bytes or their source.
public struct FormPart: Sendable {
    /// The name of the form's field, sent in UTF-8.
    ///
    /// Quotes and line breaks are sent as in browsers (`%22`, `%0D`, `%0A`), and a backslash as `\\`. Browsers do not
    /// escape the percent sign, so receivers misread a name that itself contains `%22`, `%0D` or `%0A`. Laying out a
    /// form fails if a name contains a NUL, which receivers refuse.
    public var name: String

    /// The name of the file, escaped like ``name``; `nil` if the part is not a file. Receivers drop everything up to
    /// the last slash (RFC 7578 §4.2).
    public var filename: String?

    /// The media type of the content. For a text, `nil` means no Content-Type. For other content, `nil` means the type
    /// that the filename extension and the first bytes show (``MediaType/forFile(named:firstBytes:)``), or else
    /// `application/octet-stream`.
    public var contentType: MediaType?

    /// Further header fields, which receivers ignore (RFC 7578 §4.8). Laying out a form fails if `Content-Disposition`
    /// or `Content-Type` is among them.
    public var headerFields: HTTPFields

    /// The source of the part's bytes.
    public var content: Content

    /// The metadata to remove from files and bytes in memory while they are sent. Defaults to
    /// ``MetadataPolicy/picturesWithoutLocation``.
    public var metadata: MetadataPolicy

    /// The change to the part before the form is sent, such as `PictureFitting` of `PostcardPictures`. Defaults to
    /// `nil`, which changes nothing. Clients and queues prepare forms themselves. In other cases, call
    /// ``MultipartForm/withPreparedParts(within:_:)``, because ``MultipartForm/layout()`` throws for unprepared parts.
    public var preparation: (any FormPreparation)?

    /// The owner of the content's file. It removes the file when the last copy of the part is gone.
    package var ownedFile: OwnedFile?

    /// Header lines to send instead of the other properties, each with its line break. Used for parts that browsers
    /// cannot send: without a name, or with a name that is not UTF-8. Defaults to `nil`.
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
        /// An item that the user has picked. The client or queue that sends the form copies the item.
        case picked(any PickedItem)
    }

    /// Makes a part.
    ///
    /// - Parameters:
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file. Defaults to the last component of the path for a file on disk, and otherwise
    ///     to none.
    ///   - contentType: The media type. Defaults to the detected type.
    ///   - headerFields: Further header fields.
    ///   - content: The bytes, or the file or stream from which they are read.
    ///   - metadata: The metadata to remove from a picture or video while it is sent. Defaults to its location and
    ///     owner.
    ///   - preparation: The change to the part before the form is sent. Defaults to none.
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

extension FormPart {
    /// A text field, as ``MultipartForm/append(_:named:contentType:)`` appends it.
    public static func text(_ text: String, named name: String, contentType: MediaType? = nil) -> FormPart {
        FormPart(name: name, contentType: contentType, content: .text(text))
    }

    /// Bytes in memory, as ``MultipartForm/append(_:named:filename:contentType:metadata:)`` appends them.
    public static func bytes(
        _ bytes: Data, named name: String, filename: String?, contentType: MediaType? = nil,
        metadata: MetadataPolicy = .picturesWithoutLocation
    ) -> FormPart {
        FormPart(name: name, filename: filename, contentType: contentType, content: .bytes(bytes), metadata: metadata)
    }

    /// A file on disk, as ``MultipartForm/append(fileAt:named:filename:contentType:metadata:)`` appends it.
    public static func file(
        at url: URL, named name: String, filename: String? = nil, contentType: MediaType? = nil,
        metadata: MetadataPolicy = .picturesWithoutLocation
    ) -> FormPart {
        FormPart(name: name, filename: filename, contentType: contentType, content: .file(url), metadata: metadata)
    }
}

/// Bytes of a part that are produced while they are sent, such as a recording, a download or a program's output.
///
/// ```swift
/// let log = FormStream(length: nil) { process.standardOutputChunks() }
/// form.append(log, named: "log", filename: "build.log")
/// ```
///
/// A known length gives the request a Content-Length. If the stream then has more or fewer bytes, the upload fails with
/// ``FormError/Code/streamLength``, and the receiver never sees a complete body.
public struct FormStream: Sendable {
    /// The number of bytes; `nil` if unknown. A negative length, such as an unknown
    /// `URLResponse.expectedContentLength`, becomes `nil`.
    public let length: Int64?

    /// Whether the stream can be opened again: for a retry, after a redirect, or to resume from an offset.
    public let isReplayable: Bool

    private let source: Source

    /// Makes a stream that can be opened any number of times.
    ///
    /// - Parameters:
    ///   - length: The number of bytes, if it is known.
    ///   - open: Returns the same bytes from the start each time it is called.
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

    /// Opens the stream; `nil` if the stream was opened before and can be read only once.
    func open() -> StreamChunks? {
        source.open()
    }

    /// The source of a stream's bytes. It remembers whether a stream for a single reading was already opened.
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

/// An iterator over the chunks of an asynchronous sequence of any type.
final class StreamChunks {
    private let advance: () async throws -> Data?

    init<Chunks: AsyncSequence>(_ chunks: Chunks) where Chunks.Element == Data {
        var iterator = chunks.makeAsyncIterator()
        advance = { try await iterator.next(isolation: #isolation) }
    }

    /// The next chunk, which is never empty; `nil` at the end of the stream.
    func next() async throws -> Data? {
        while let chunk = try await advance() {
            if !chunk.isEmpty { return chunk }
        }
        return nil
    }
}
