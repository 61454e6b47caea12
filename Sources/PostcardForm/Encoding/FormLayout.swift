import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Where every byte of a form's body comes from, and at which offset it stands.
///
/// ```swift
/// let layout = try form.layout()
/// let reader = try layout.reader()
/// ```
///
/// Making a layout looks at the form's files (their size, their modification time, their first bytes) and
/// copies none. From it come the exact length of the body, its bytes from any offset, as often as wanted.
/// It holds the form's texts and bytes in memory, and of a file only its path.
public struct FormLayout: Sendable {
    /// The value of the request's `Content-Type` header field.
    public private(set) var contentType: String

    /// The number of bytes of the body; `nil` where a stream's length is not known.
    public private(set) var contentLength: Int64?

    /// What is known of each part, in order.
    public let parts: [PartLayout]

    /// Whether the bytes can be read more than once: false where a stream can be read only once.
    public let isReplayable: Bool

    /// Holds back what readers made from here on hand out.
    package var pace: (any BodyPace)?

    /// Is told what readers made from here on hand out.
    package var observer: (any BodyObserver)?

    /// Which bytes of the whole body these are; all of them where it is `nil`.
    private(set) var range: Range<Int64>?

    /// The body, piece by piece; where there is a range, that from which it is cut.
    let segments: [Segment]

    /// A piece of the body that comes from one place.
    struct Segment: Sendable {
        /// Where it begins in the body; `nil` behind a stream of unknown length.
        let offset: Int64?
        /// The number of its bytes; `nil` for a stream of unknown length.
        let length: Int64?
        let source: Source

        /// Where its bytes come from. All but `framing` are the content of the part with that index.
        enum Source: Sendable {
            case framing(Data)
            case memory(Data, partIndex: Int)
            case file(FileSource)
            case stream(FormStream, partIndex: Int)
        }

        /// The part whose content it is.
        var partIndex: Int? {
            switch source {
            case .framing: nil
            case .memory(_, let partIndex), .stream(_, let partIndex): partIndex
            case .file(let file): file.partIndex
            }
        }
    }

    init(_ form: MultipartForm) throws(FormError) {
        var builder = Builder(boundary: form.boundary, lineBreaks: form.lineBreaks)
        for part in form.parts { try builder.append(part) }
        try self.init(builder, contentType: form.contentType)
    }

    private init(_ builder: Builder, contentType: String) throws(FormError) {
        var builder = builder
        try builder.close()
        self.init(
            builder.segments, parts: builder.parts, contentType: contentType, contentLength: builder.offset)
    }

    init(_ segments: [Segment], parts: [PartLayout], contentType: String, contentLength: Int64?) {
        self.contentType = contentType
        self.contentLength = contentLength
        self.parts = parts
        self.segments = segments
        isReplayable = segments.allSatisfy {
            if case .stream(let stream, _) = $0.source { stream.isReplayable } else { true }
        }
    }

    /// Makes a reader of the body's bytes.
    ///
    /// - Parameter offset: The first byte to read, counted from the start of the body.
    /// - Throws: ``FormError`` with the code ``FormError/Code/offsetUnreachable`` where the offset lies outside
    ///   the body, or behind or inside a stream of unknown length.
    public func reader(from offset: Int64 = 0) throws(FormError) -> FormReader {
        try FormReader(self, from: offset)
    }
}

// MARK: - Parts of the body

extension FormLayout {
    /// Where its first byte stands in the whole body: 0 but for a ``slice(_:contentType:)``.
    package var start: Int64 { range?.lowerBound ?? 0 }

    /// Whether it is of some of the body's bytes.
    package var isSlice: Bool { range != nil }

    /// Some bytes of the body as a body of their own, as an upload that goes on has them. Offsets in it count from its
    /// own first byte.
    ///
    /// - Parameters:
    ///   - range: Which bytes, counted from the start of the body, whose length is known and which is whole.
    ///   - contentType: What they are said to be; what the whole body is unless given.
    package func slice(_ range: Range<Int64>, contentType: String? = nil) -> FormLayout {
        var slice = self
        slice.range = range
        slice.contentLength = Int64(range.count)
        slice.contentType = contentType ?? self.contentType
        if range.isEmpty {
            slice.pace = nil
            slice.observer = nil
        }
        return slice
    }

    /// Throws where one of the form's files is no longer what it was when the form was laid out.
    package func checkFiles() throws(FormError) {
        for segment in segments {
            if case .file(let file) = segment.source { _ = try file.open() }
        }
    }
}

/// What is known of a part before it is sent.
public struct PartLayout: Sendable {
    /// The name of the form's field; empty for a part of a document.
    public let name: String
    /// The name of the file, where it is one.
    public let filename: String?
    /// The media type that its header names.
    public let contentType: MediaType?
    /// The number of bytes of its content; `nil` for a stream of unknown length.
    public let contentLength: Int64?

    package init(name: String, filename: String?, contentType: MediaType?, contentLength: Int64?) {
        self.name = name
        self.filename = filename
        self.contentType = contentType
        self.contentLength = contentLength
    }
}

extension MultipartForm {
    /// Looks at the form's files and lays out its body.
    ///
    /// - Throws: ``FormError`` where a file is missing, unreadable or no regular file, where a name holds a NUL, or where
    ///   the boundary's delimiter occurs in a part in memory.
    public func layout() throws(FormError) -> FormLayout {
        try FormLayout(self)
    }
}

extension FormLayout {
    /// The content of a part, now that its file has been looked at.
    private struct Content {
        let source: Segment.Source
        let length: Int64?
        var firstBytes: [UInt8] = []

        init(
            _ content: FormPart.Content, lineBreaks: LineBreaks, metadata: MetadataPolicy, partIndex: Int
        ) throws(FormError) {
            switch content {
            case .text(let text):
                let bytes = Data(lineBreaks.applied(to: text).utf8)
                source = .memory(bytes, partIndex: partIndex)
                length = Int64(bytes.count)
            case .bytes(let given):
                let bytes = try metadata.applied(to: given, partIndex: partIndex)
                source = .memory(bytes, partIndex: partIndex)
                length = Int64(bytes.count)
                firstBytes = Array(bytes.prefix(MediaType.firstBytesCount))
            case .file(let url):
                let file = try FileSource(url, metadata: metadata, partIndex: partIndex)
                source = .file(file)
                length = file.length
                firstBytes = file.firstBytes
            case .stream(let stream):
                guard !metadata.needsStructure else { throw .metadataInStream(partIndex: partIndex) }
                source = .stream(stream, partIndex: partIndex)
                length = stream.length
            }
        }
    }

    /// Puts the segments of a layout one behind the other.
    private struct Builder {
        let boundary: Boundary
        let lineBreaks: LineBreaks
        var segments: [Segment] = []
        var parts: [PartLayout] = []
        /// Where the next segment begins.
        var offset: Int64? = 0

        mutating func append(_ part: FormPart) throws(FormError) {
            var part = part
            part.name = lineBreaks.applied(to: part.name)
            let content = try Content(
                part.content, lineBreaks: lineBreaks, metadata: part.metadata, partIndex: parts.count)
            for name in [HTTPField.Name.contentDisposition, .contentType] where part.headerFields.contains(name) {
                throw .reservedHeaderField("\(name)", partIndex: parts.count)
            }
            for (parameter, text) in [("name", part.name), ("filename", part.filename ?? "")]
            where text.utf8.contains(0) {
                throw .nulInName(parameter, partIndex: parts.count)
            }
            let contentType = Self.contentType(of: part, firstBytes: content.firstBytes)
            let head = EncodedPartHeader(of: part, contentType: contentType, boundary: boundary, isFirst: parts.isEmpty)
            try append(
                content, behind: head,
                PartLayout(
                    name: part.name, filename: part.filename, contentType: contentType, contentLength: content.length))
        }

        private mutating func append(
            _ content: Content, behind head: EncodedPartHeader, _ layout: PartLayout
        ) throws(FormError) {
            if case .memory(let bytes, let partIndex) = content.source, holdsDelimiter(bytes) {
                throw .boundaryInContent(boundary, partIndex: partIndex)
            }
            let bytes = head.bytes
            try append(.framing(bytes), length: Int64(bytes.count))
            try append(content.source, length: content.length)
            parts.append(layout)
        }

        /// Appends the close delimiter. A form without parts is the close delimiter alone, as browsers send it.
        mutating func close() throws(FormError) {
            let bytes = Data("\(parts.isEmpty ? "" : "\r\n")--\(boundary.value)--\r\n".utf8)
            try append(.framing(bytes), length: Int64(bytes.count))
        }

        private mutating func append(_ source: Segment.Source, length: Int64?) throws(FormError) {
            segments.append(Segment(offset: offset, length: length, source: source))
            guard let begin = offset, let length else {
                offset = nil
                return
            }
            let (end, isTooFar) = begin.addingReportingOverflow(length)
            if isTooFar { throw .streamTooLong(partIndex: parts.count) }
            offset = end
        }

        /// Whether the bytes, behind the blank line that comes before them, hold the delimiter.
        private func holdsDelimiter(_ bytes: Data) -> Bool {
            let delimiter = Delimiter(boundary: boundary.value)
            return bytes.withUnsafeBytes { content in
                delimiter.isPrefixedWithoutLineBreak(content) || delimiter.firstIndex(in: content) != nil
            }
        }

        /// From the caller, else the extension, else the first bytes. A text has one only from the caller.
        private static func contentType(of part: FormPart, firstBytes: [UInt8]) -> MediaType? {
            if let contentType = part.contentType { return contentType }
            if case .text = part.content, part.filename == nil { return nil }
            return part.filename.flatMap(MediaType.forExtension(of:)) ?? MediaType.forFirstBytes(firstBytes)
                ?? .octetStream
        }
    }
}
