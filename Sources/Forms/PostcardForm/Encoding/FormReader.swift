import PostcardFoundation

/// Reads the bytes of a form's body in order, into buffers of the caller's.
///
/// ```swift
/// while try await reader.prepare() {
///     let count = try reader.read(into: buffer)
///     // the first `count` bytes of `buffer` are the next of the body
/// }
/// ```
///
/// Only streams need waiting: while ``needsPreparation`` is `false`, ``read(into:)`` alone gives the next bytes, and a
/// form without streams never needs ``prepare()``. The reader holds at most one open file and one chunk of a stream. It
/// belongs to one task at a time.
public final class FormReader {
    /// The offset of the next byte, counted from the start of the body.
    public var position: Int64 { place - start }

    /// The range in the body of the content of each part that was begun so far. The last range may still grow.
    ///
    /// A reader that began at an offset includes the parts before it.
    public var contentRanges: [Range<Int64>] {
        start == 0 ? ranges : ranges.map { $0.lowerBound - start..<$0.upperBound - start }
    }

    /// The values of ``position`` and ``contentRanges``, counted from the start of the whole body if the layout is a
    /// slice.
    private var place: Int64
    private var ranges: [Range<Int64>] = []

    /// The offset in the whole body at which the layout's body begins.
    private let start: Int64
    /// The offset after the last byte to read, or `nil` to read to the end of the whole body.
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
        /// What could not be read; the reader must not go on to a body that looks whole.
        case failed(any Error)
    }

    /// A stream in progress.
    private struct Stream {
        let chunks: StreamChunks
        let partIndex: Int
        let length: Int64?
        /// How many bytes of it have been read.
        var given: Int64 = 0
        /// How many bytes of it come before the reader's first and are passed over.
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

    /// Whether the next bytes come from a stream that has none ready, so that ``read(into:)`` would give 0.
    public var needsPreparation: Bool {
        if hasReachedEnd { return false }
        return switch current {
        case .stream(let stream): stream.pending.isEmpty
        case .memory, .file: false
        case .failed(let error): !(error is FormError)
        case .none: nextSegment < segments.count && segments[nextSegment].isStream
        }
    }

    /// Whether the last byte of the body has been read, as far as that is known: the end of a stream is known only
    /// after waiting for it.
    package var isAtEnd: Bool {
        if hasReachedEnd { return true }
        if case .none = current { return nextSegment == segments.count }
        return false
    }

    /// Whether the layout is a slice, and its last byte has been read before that of the whole body.
    private var hasReachedEnd: Bool { end.map { place >= $0 } ?? false }

    /// Waits until there are bytes to read.
    ///
    /// - Returns: `false` at the end of the body.
    /// - Throws: ``FormError``, or the stream's own error unchanged; every later call throws the same error.
    public func prepare() async throws -> Bool {
        do {
            return try await advanceToBytes()
        } catch {
            current = .failed(error)
            throw error
        }
    }

    /// Waits until bytes are ready; `false` at the end of the body.
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

    /// Fills a buffer with the bytes that are ready.
    ///
    /// - Parameter buffer: The buffer that receives the bytes.
    /// - Returns: The number of bytes; 0 at the end of the body, and while ``needsPreparation`` is `true`.
    /// - Throws: ``FormError`` if a file is gone, cannot be read, or has changed since the layout was made; from then
    ///   on the same at every call.
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
            // What is left of the buffer would shift every later read off the file's pages.
            if case .file = current, buffer.count - filled < Self.pageLength { break }
        }
        return filled
    }

    /// Reads from what is current, and leaves it where it has been read to its end.
    private func readCurrent(into buffer: UnsafeMutableRawBufferPointer) throws(FormError) -> Int {
        switch current {
        case .none:
            return 0
        case .failed(let error):
            // An error of a stream's own is thrown by prepare(), which the reader then needs.
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

    /// Up to the end of a page of the file, where that is not far.
    private static func alignedCount(_ count: Int64, at offset: Int64) -> Int64 {
        let aligned = (offset + count) / Int64(pageLength) * Int64(pageLength) - offset
        return aligned > 0 ? aligned : count
    }

    /// Copies the first bytes and returns the others.
    private func take(from bytes: Data, into buffer: UnsafeMutableRawBufferPointer) -> Data {
        let count = min(bytes.count, buffer.count)
        bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        return bytes.dropFirst(count)
    }

    /// Counts bytes that were read, and moves the end of the content that they belong to.
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

    /// Makes a segment the current one, from an offset within it.
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

    /// Takes the next chunk of a stream, and holds it to the length that it promised.
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
