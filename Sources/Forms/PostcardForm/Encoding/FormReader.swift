import PostcardFoundation

/// Reads the bytes of a form's body in order, into the caller's buffers.
///
/// ```swift
/// while try await reader.prepare() {
///     let count = try reader.read(into: buffer)
///     // the first `count` bytes of `buffer` are the next of the body
/// }
/// ```
///
/// Only streams require waiting: ``read(into:)`` returns the next bytes while ``needsPreparation`` is `false`, and a
/// form without streams never needs ``prepare()``. The reader holds at most one open file and one chunk of a stream. It
/// belongs to one task at a time.
public final class FormReader {
    /// The offset of the next byte, counted from the start of the body.
    public var position: Int64 { place - start }

    /// The range of each part's content in the body, up to the part that is being read. The last range may still grow.
    ///
    /// If reading began at an offset, the parts before the offset are included.
    public var contentRanges: [Range<Int64>] {
        start == 0 ? ranges : ranges.map { $0.lowerBound - start..<$0.upperBound - start }
    }

    /// The ``position`` in the whole body, even if the layout is a slice. `ranges` are the ``contentRanges`` in the
    /// whole body.
    private var place: Int64
    private var ranges: [Range<Int64>] = []

    /// The offset of the layout's first byte in the whole body.
    private let start: Int64
    /// The offset in the whole body after the last byte to read; `nil` to read all bytes.
    private let end: Int64?

    private let segments: [FormLayout.Segment]
    private var nextSegment: Int
    private var current: Current = .none

    /// The source of the next bytes.
    private enum Current {
        case none
        case memory(Data)
        case file(OpenFile, FileSource, offset: Int64)
        case stream(Stream)
        /// A segment that cannot be read. Reading must not continue, because the body would look complete.
        case failed(any Error)
    }

    private struct Stream {
        let chunks: StreamChunks
        let partIndex: Int
        let length: Int64?
        /// The number of bytes read from the stream.
        var given: Int64 = 0
        /// The number of bytes to skip at the start of the stream, because reading began at an offset.
        var toSkip: Int64
        var pending = Data()
    }

    init(_ layout: FormLayout, from offset: Int64) throws(FormError) {
        segments = layout.segments
        start = layout.start
        end = layout.reachesEnd ? nil : layout.range?.upperBound
        place = start
        nextSegment = 0
        guard offset >= 0, offset <= layout.contentLength ?? .max else {
            throw .offsetUnreachable(offset, "the body has \(layout.contentLength ?? 0) bytes")
        }
        let offset = start + offset
        place = offset
        for segment in segments {
            guard let begin = segment.offset, let length = segment.length else {
                if offset == segment.offset { break }
                throw .offsetUnreachable(offset, "a stream of unknown length comes before it")
            }
            if begin + length > offset {
                try enter(segment, skipping: offset - begin)
                break
            }
            beginContent(of: segment, at: begin, length: length)
            nextSegment += 1
        }
    }

    /// Whether the next bytes come from a stream that has none available, so that ``read(into:)`` would return 0.
    public var needsPreparation: Bool {
        if hasReachedEnd { return false }
        return switch current {
        case .stream(let stream): stream.pending.isEmpty
        case .memory, .file: false
        case .failed(let error): !(error is FormError)
        case .none: nextSegment < segments.count && segments[nextSegment].isStream
        }
    }

    /// Whether the last byte of the body is known to have been read. The end of a stream is known only after waiting.
    package var isAtEnd: Bool {
        if hasReachedEnd { return true }
        if case .none = current { return nextSegment == segments.count }
        return false
    }

    /// Whether all bytes of a slice have been read.
    private var hasReachedEnd: Bool { end.map { place >= $0 } ?? false }

    /// Waits until there are bytes to read.
    ///
    /// - Returns: `false` at the end of the body.
    /// - Throws: ``FormError``, or the stream's own error, unchanged. Every later call throws the same error.
    public func prepare() async throws -> Bool {
        do {
            return try await advanceToBytes()
        } catch {
            current = .failed(error)
            throw error
        }
    }

    /// Waits until bytes are available. Returns `false` at the end of the body.
    private func advanceToBytes() async throws -> Bool {
        while !hasReachedEnd {
            switch current {
            case .memory, .file:
                return true
            case .stream(let stream):
                if !stream.pending.isEmpty { return true }
                try await advance(stream)
            case .failed(let error):
                throw error
            case .none:
                guard nextSegment < segments.count else { return false }
                try enterNextSegment()
            }
        }
        return false
    }

    /// Fills a buffer with the available bytes.
    ///
    /// - Parameter buffer: The buffer that receives the bytes.
    /// - Returns: The number of bytes; 0 at the end of the body, and while ``needsPreparation`` is `true`.
    /// - Throws: ``FormError`` if a file is missing, unreadable or changed since the layout was made. Later calls throw
    ///   the same error.
    public func read(into buffer: UnsafeMutableRawBufferPointer) throws(FormError) -> Int {
        do throws(FormError) {
            return try fill(buffer)
        } catch {
            current = .failed(error)
            throw error
        }
    }

    private func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(FormError) -> Int {
        let rest = end.map { Int(clamping: max($0 - place, 0)) } ?? .max
        let buffer = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(rest))
        var filled = 0
        while filled < buffer.count, !needsPreparation {
            if case .none = current {
                guard nextSegment < segments.count else { break }
                try enterNextSegment()
                continue
            }
            let count = try readCurrent(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
            filled += count
            advancePosition(by: count)
            // Less than a page of the buffer is left. Stopping here keeps later reads aligned with the file's pages.
            if case .file = current, buffer.count - filled < Self.pageLength { break }
        }
        return filled
    }

    /// Reads from the current source. Leaves the source once all its bytes were read.
    private func readCurrent(into buffer: UnsafeMutableRawBufferPointer) throws(FormError) -> Int {
        switch current {
        case .none:
            return 0
        case .failed(let error):
            // Errors of a stream are thrown by prepare(), which the caller must call next.
            if let error = error as? FormError { throw error }
            return 0
        case .memory(let bytes):
            let rest = take(from: bytes, into: buffer)
            current = rest.isEmpty ? .none : .memory(rest)
            return bytes.count - rest.count
        case .stream(var stream):
            let rest = take(from: stream.pending, into: buffer)
            let count = stream.pending.count - rest.count
            stream.pending = rest
            current = .stream(stream)
            return count
        case .file(let file, let source, let offset):
            let place = source.start + offset
            let count = Self.alignedCount(min(Int64(buffer.count), source.length - offset), at: place)
            let read = try file.read(
                at: place, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(clamping: count)]))
            if !source.edits.isEmpty {
                source.edits.apply(to: UnsafeMutableRawBufferPointer(rebasing: buffer[..<read]), at: place)
            }
            let end = offset + Int64(read)
            if read == 0 || end == source.length {
                try source.check(file)
                guard end == source.length else {
                    throw .changed(source.path, "it ends after \(end) bytes", partIndex: source.partIndex)
                }
                current = .none
            } else {
                current = .file(file, source, offset: end)
            }
            return read
        }
    }

    private static let pageLength = 4096

    /// The number of bytes to read, reduced so that reading ends at a page of the file if possible.
    private static func alignedCount(_ count: Int64, at offset: Int64) -> Int64 {
        let aligned = (offset + count) / Int64(pageLength) * Int64(pageLength) - offset
        return aligned > 0 ? aligned : count
    }

    /// Copies the first bytes into a buffer and returns the rest.
    private func take(from bytes: Data, into buffer: UnsafeMutableRawBufferPointer) -> Data {
        let count = min(bytes.count, buffer.count)
        bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        return bytes.dropFirst(count)
    }

    /// Advances the position. In a stream of unknown length, the range of the content grows too.
    private func advancePosition(by count: Int) {
        place += Int64(count)
        guard let partIndex = segments[nextSegment - 1].partIndex, segments[nextSegment - 1].length == nil else {
            return
        }
        ranges[partIndex] = ranges[partIndex].lowerBound..<place
    }
}

// MARK: - From segment to segment

extension FormReader {
    private func enterNextSegment() throws(FormError) {
        let segment = segments[nextSegment]
        try enter(segment, skipping: 0)
    }

    /// Makes a segment the current source, from an offset within the segment.
    private func enter(_ segment: FormLayout.Segment, skipping skipped: Int64) throws(FormError) {
        beginContent(of: segment, at: place - skipped, length: segment.length ?? 0)
        nextSegment += 1
        switch segment.source {
        case .framing(let bytes), .memory(let bytes, _):
            current = bytes.isEmpty ? .none : .memory(bytes.dropFirst(Int(clamping: skipped)))
        case .file(let source):
            let file = try source.open()
            current = source.length == 0 ? .none : .file(file, source, offset: skipped)
        case .stream(let stream, let partIndex):
            current = .stream(try Self.open(stream, partIndex: partIndex, skipping: skipped))
        }
    }

    private func beginContent(of segment: FormLayout.Segment, at offset: Int64, length: Int64) {
        if segment.partIndex != nil { ranges.append(offset..<(offset + length)) }
    }

    private static func open(
        _ stream: FormStream, partIndex: Int, skipping skipped: Int64
    ) throws(FormError) -> Stream {
        guard let chunks = stream.open() else { throw .streamConsumed(partIndex: partIndex) }
        return Stream(chunks: chunks, partIndex: partIndex, length: stream.length, toSkip: skipped)
    }

    /// Waits for the next chunk of a stream. Throws if the stream breaks its promised length.
    private func advance(_ stream: Stream) async throws {
        var stream = stream
        guard let chunk = try await stream.chunks.next() else {
            if let length = stream.length, stream.given != length {
                throw FormError.streamLength(promised: length, given: stream.given, partIndex: stream.partIndex)
            }
            current = .none
            return
        }
        stream.given += Int64(chunk.count)
        if let length = stream.length, stream.given > length {
            throw FormError.streamLength(promised: length, given: stream.given, partIndex: stream.partIndex)
        }
        let skipped = min(stream.toSkip, Int64(chunk.count))
        stream.toSkip -= skipped
        stream.pending = chunk.dropFirst(Int(clamping: skipped))
        current = .stream(stream)
    }
}

extension FormLayout.Segment {
    fileprivate var isStream: Bool {
        if case .stream = source { true } else { false }
    }
}
