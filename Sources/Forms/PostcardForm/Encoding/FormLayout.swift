import HTTPTypes
import PostcardFoundation
package import SystemPackage

/// The exact bytes of a form's body, as segments with a source and an offset.
///
/// ```swift
/// let layout = try form.layout()
/// let reader = try layout.reader()
/// ```
///
/// Making a layout reads the size, modification time and first bytes of each file, and copies no file. The layout gives
/// the exact length of the body, and its bytes from any offset, any number of times. It holds texts and bytes in
/// memory, but only the paths of files.
public struct FormLayout: Sendable {
    /// The value of the request's `Content-Type` header field.
    public private(set) var contentType: String

    /// The number of bytes of the body; `nil` if it has a stream of unknown length.
    public private(set) var contentLength: Int64?

    /// The name, type and length of each part, in order.
    public let parts: [PartLayout]

    /// Whether the bytes can be read more than once, which is `false` if a stream can be read only once.
    public let isReplayable: Bool

    /// Whether a part is a stream. The next bytes of a stream may not be available yet.
    package var hasStreams: Bool {
        segments.contains { if case .stream = $0.source { true } else { false } }
    }

    /// The range of this slice in the whole body; `nil` if the layout is the whole body.
    private(set) var range: Range<Int64>?

    /// The segments of the whole body, even if this layout is a slice of it.
    let segments: [Segment]

    /// Consecutive bytes of the body that come from one source.
    struct Segment: Sendable {
        /// The offset of the segment's first byte in the body; `nil` after a stream of unknown length.
        let offset: Int64?
        /// The number of bytes in the segment; `nil` for a stream of unknown length.
        let length: Int64?
        let source: Source

        /// The source of a segment's bytes. `framing` has delimiters and headers; all others have the content of a
        /// part.
        enum Source: Sendable {
            case framing(Data)
            case memory(Data, partIndex: Int)
            case file(FileSource)
            case stream(FormStream, partIndex: Int)
        }

        /// The index of the part with this content; `nil` for delimiters and headers.
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
        builder.reserve(form.parts.count)
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
    /// - Parameter offset: The offset of the first byte to read, from the start of the body.
    /// - Throws: ``FormError`` with the code ``FormError/Code/offsetUnreachable`` if the offset is outside the body, or
    ///   inside or after a stream of unknown length.
    public func reader(from offset: Int64 = 0) throws(FormError) -> FormReader {
        try FormReader(self, from: offset)
    }
}

// MARK: - Parts of the body

extension FormLayout {
    /// The offset of the layout's first byte in the whole body: 0 except for a ``slice(_:contentType:)``.
    package var start: Int64 { range?.lowerBound ?? 0 }

    package var isSlice: Bool { range != nil }

    package var reachesEnd: Bool { range.map { $0.upperBound == wholeLength } ?? true }

    /// The length of the whole body; `nil` if it has a stream of unknown length.
    var wholeLength: Int64? {
        segments.last.flatMap { last in last.offset.flatMap { $0 + (last.length ?? 0) } }
    }

    /// The range of each part's content in the whole body; `nil` if the body has a stream of unknown length.
    package var contentRanges: [Range<Int64>]? {
        var ranges: [Range<Int64>] = []
        for segment in segments where segment.partIndex != nil {
            guard let offset = segment.offset, let length = segment.length else { return nil }
            ranges.append(offset..<offset + length)
        }
        return ranges
    }

    /// A range of the body as a body of its own, such as the bytes that a resumed upload still has to send. Offsets in
    /// the slice count from its first byte. The body must have a known length, and must not be a slice itself. The
    /// `Content-Type` defaults to that of the whole body.
    package func slice(_ range: Range<Int64>, contentType: String? = nil) -> FormLayout {
        var slice = self
        slice.range = range
        slice.contentLength = range.upperBound - range.lowerBound
        slice.contentType = contentType ?? self.contentType
        return slice
    }

    /// A copy of the body in which the last part has the content of the part at `index` in another body. `nil` if one
    /// of the two parts does not exist.
    package func withLastContent(from other: FormLayout, part index: Int) -> FormLayout? {
        let last = parts.count - 1
        guard let place = segments.lastIndex(where: { $0.partIndex == last }),
            let content = other.segments.first(where: { $0.partIndex == index })
        else { return nil }
        let source: Segment.Source =
            switch content.source {
            case .framing(let bytes): .framing(bytes)
            case .memory(let bytes, _): .memory(bytes, partIndex: last)
            case .file(let file): .file(file.moved(to: last))
            case .stream(let stream, _): .stream(stream, partIndex: last)
            }
        var moved = Array(segments[..<place])
        var offset = segments[place].offset
        moved.append(Segment(offset: offset, length: content.length, source: source))
        for segment in segments[place...].dropFirst() {
            offset = offset.flatMap { offset in moved.last?.length.map { offset + $0 } }
            moved.append(Segment(offset: offset, length: segment.length, source: segment.source))
        }
        let length = offset.flatMap { offset in moved.last?.length.map { offset + $0 } }
        let part = parts[last]
        let described = PartLayout(
            name: part.name, filename: part.filename, contentType: part.contentType, contentLength: content.length)
        return FormLayout(
            moved, parts: parts.dropLast() + [described], contentType: contentType, contentLength: length)
    }

    /// Passes the file of a body that is one whole file, as in a presigned PUT, to a closure. The file is open for
    /// reading, and the closure can clone it instead of copying it. Returns the closure's result; `nil` if the body is
    /// not one whole file. Throws ``FormError`` if the file has changed, and errors of the closure.
    package func withWholeFile<Result>(_ use: (FileDescriptor) throws -> Result?) throws -> Result? {
        guard segments.count == 1, case .file(let source) = segments[0].source, source.isWholeFile, !isSlice else {
            return nil
        }
        let file = try source.open()
        let result = try file.withDescriptor(use)
        try source.check(file)
        return result
    }

    /// Throws if a file of the form has changed since the layout was made.
    package func checkFiles() throws(FormError) {
        for segment in segments {
            if case .file(let file) = segment.source { _ = try file.open() }
        }
    }
}

/// The name, type and length of a part before it is sent.
public struct PartLayout: Sendable {
    /// The name of the form's field.
    public let name: String
    /// The name of the file; `nil` for a part without a filename.
    public let filename: String?
    /// The media type in the part's header.
    public let contentType: MediaType?
    /// The number of bytes of the part's content; `nil` for a stream of unknown length.
    public let contentLength: Int64?

    package init(name: String, filename: String?, contentType: MediaType?, contentLength: Int64?) {
        self.name = name
        self.filename = filename
        self.contentType = contentType
        self.contentLength = contentLength
    }
}

extension MultipartForm {
    /// Checks the form's files and lays out its body.
    ///
    /// - Throws: ``FormError`` if a file is missing, unreadable or not a regular file, or its metadata cannot be
    ///   removed; if a name contains a NUL; if a part has header fields that the form sets itself; if the delimiter
    ///   occurs in a part in memory; or if a part needs preparation, see ``withPreparedParts(within:_:)``.
    public func layout() throws(FormError) -> FormLayout {
        try FormLayout(self)
    }
}

extension FormLayout {
    /// The content of a part after its file was checked.
    private struct Content {
        let source: Segment.Source
        let length: Int64?
        var firstBytes: [UInt8] = []

        init(
            of part: FormPart, lineBreaks: LineBreaks, partIndex: Int
        ) throws(FormError) {
            let metadata = part.metadata
            let type = part.contentType ?? part.filename.flatMap(MediaType.forExtension)
            switch part.content {
            case .text(let text):
                let bytes = Data(lineBreaks.applied(to: text).utf8)
                source = .memory(bytes, partIndex: partIndex)
                length = Int64(bytes.count)
            case .bytes(let given):
                let bytes = try metadata.applied(to: given, declaredAs: type, partIndex: partIndex)
                source = .memory(bytes, partIndex: partIndex)
                length = Int64(bytes.count)
                firstBytes = Array(bytes.prefix(MediaType.firstBytesCount))
            case .file(let url):
                let file = try FileSource(
                    url, ownedBy: part.ownedFile, metadata: metadata, declaredAs: type, partIndex: partIndex)
                source = .file(file)
                length = file.length
                firstBytes = file.firstBytes
            case .stream(let stream):
                guard !metadata.needsStructure else { throw .metadataInStream(partIndex: partIndex) }
                source = .stream(stream, partIndex: partIndex)
                length = stream.length
            case .picked: throw .notPrepared(partIndex: partIndex)
            }
        }
    }

    /// Collects the segments of a layout in order.
    private struct Builder {
        private let boundary: Boundary
        private let delimiter: Delimiter
        private let lineBreaks: LineBreaks
        var segments: [Segment] = []
        var parts: [PartLayout] = []
        /// The offset at which the next segment begins; `nil` after a stream of unknown length.
        var offset: Int64? = 0

        init(boundary: Boundary, lineBreaks: LineBreaks) {
            self.boundary = boundary
            delimiter = Delimiter(boundary: boundary.value)
            self.lineBreaks = lineBreaks
        }

        /// Reserves memory for all parts at once.
        mutating func reserve(_ count: Int) {
            segments.reserveCapacity(2 * count + 1)
            parts.reserveCapacity(count)
        }

        mutating func append(_ part: FormPart) throws(FormError) {
            if part.preparation != nil { throw .notPrepared(partIndex: parts.count) }
            var part = part
            part.name = lineBreaks.applied(to: part.name)
            let content = try Content(of: part, lineBreaks: lineBreaks, partIndex: parts.count)
            for field in part.headerFields where field.name == .contentDisposition || field.name == .contentType {
                throw .reservedHeaderField("\(field.name)", partIndex: parts.count)
            }
            if part.name.utf8.contains(0) { throw .nulInName("name", partIndex: parts.count) }
            if part.filename?.utf8.contains(0) ?? false { throw .nulInName("filename", partIndex: parts.count) }
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
                throw .boundaryInContent(boundary.value, partIndex: partIndex)
            }
            let bytes = head.bytes
            try append(.framing(bytes), length: Int64(bytes.count))
            try append(content.source, length: content.length)
            parts.append(layout)
        }

        /// Appends the close delimiter. Like in browsers, a form without parts consists only of the close delimiter.
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

        /// Whether a content contains the delimiter. The delimiter may begin with the line break before the content.
        private func holdsDelimiter(_ bytes: Data) -> Bool {
            bytes.withUnsafeBytes { content in
                delimiter.isPrefixedWithoutLineBreak(content) || delimiter.firstIndex(in: content) != nil
            }
        }

        /// The media type that the caller chose, or the type of the filename extension and the first bytes. A text has
        /// only a chosen type.
        static func contentType(of part: FormPart, firstBytes: [UInt8]) -> MediaType? {
            if let contentType = part.contentType { return contentType }
            if case .text = part.content, part.filename == nil { return nil }
            return MediaType.forFile(named: part.filename, firstBytes: firstBytes) ?? .octetStream
        }
    }

    /// Makes the layout of a body that is the content of a part, without a form around it. Throws ``FormError`` as
    /// ``MultipartForm/layout()``.
    package init(contentOf part: FormPart) throws(FormError) {
        if part.preparation != nil { throw .notPrepared(partIndex: 0) }
        let content = try Content(of: part, lineBreaks: .asGiven, partIndex: 0)
        let type = Builder.contentType(of: part, firstBytes: content.firstBytes) ?? .octetStream
        let layout = PartLayout(
            name: part.name, filename: part.filename, contentType: type, contentLength: content.length)
        self.init(
            [Segment(offset: 0, length: content.length, source: content.source)], parts: [layout],
            contentType: type.value, contentLength: content.length)
    }
}
