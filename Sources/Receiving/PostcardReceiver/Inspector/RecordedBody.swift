import NIOCore
import PostcardServer

/// The recorded bytes of a request's body: all bytes, or both ends and the bytes around its problems.
struct RecordedBody: Sendable {
    /// Consecutive bytes of the body, with the offset of the first.
    struct Piece: Sendable {
        let offset: Int64
        var bytes: [UInt8]

        var range: Range<Int64> { offset..<(offset + Int64(bytes.count)) }

        /// Returns the bytes of the piece that are inside a range of the body.
        func part(_ wanted: Range<Int64>) -> Piece {
            let part = wanted.clamped(to: range)
            if part == range { return self }
            return Piece(
                offset: part.lowerBound,
                bytes: Array(bytes[Int(part.lowerBound - offset)..<Int(part.upperBound - offset)]))
        }
    }

    /// The recorded pieces in the order of the body, without overlaps. The first piece is the start of the body. If
    /// there are several pieces, the last piece is the end of the body.
    private(set) var pieces: [Piece]
    /// The number of bytes that were read of the body.
    let length: Int64
    /// Whether the body was read to its end.
    let isComplete: Bool
    var hidesSecrets = false

    static let none = RecordedBody(pieces: [], length: 0, isComplete: false)

    init(pieces: [Piece], length: Int64, isComplete: Bool, hidesSecrets: Bool = false) {
        self.pieces = pieces
        self.length = length
        self.isComplete = isComplete
        self.hidesSecrets = hidesSecrets
    }

    /// Makes a recorded body from both its ends.
    init(first: [UInt8], last: [UInt8], length: Int64, isComplete: Bool) {
        let last = Piece(offset: length - Int64(last.count), bytes: last)
        self.init(pieces: [Piece(offset: 0, bytes: first), last], length: length, isComplete: isComplete)
    }

    var first: [UInt8] { pieces.first?.bytes ?? [] }

    /// The bytes of the last piece; empty if there is only one piece.
    var last: [UInt8] { pieces.count > 1 ? pieces[pieces.count - 1].bytes : [] }

    var lastOffset: Int64 { length - Int64(last.count) }

    /// The pieces, with adjacent pieces joined.
    var runs: [Piece] {
        pieces.reduce(into: []) { runs, piece in
            if let last = runs.last, last.range.upperBound == piece.offset {
                runs[runs.count - 1].bytes += piece.bytes
            } else {
                runs.append(piece)
            }
        }
    }

    /// All bytes that were read; `nil` if some were not recorded.
    var bytes: [UInt8]? {
        let runs = runs
        let isWhole = runs.count <= 1 && Int64(runs.first?.bytes.count ?? 0) == length
        return isWhole ? runs.first?.bytes ?? [] : nil
    }

    /// Changes bytes without changing their number. A line may span adjacent pieces, so they are joined first.
    mutating func changeRuns(_ change: (inout Piece) -> Void) {
        var runs = runs
        for index in runs.indices { change(&runs[index]) }
        pieces = pieces.map { piece in
            runs.first { $0.range.contains(piece.offset) }?.part(piece.range) ?? piece
        }
    }

    /// The recorded bytes around an offset of the body.
    func bytes(around offset: Int64, reach: Int) -> Piece? {
        guard offset >= 0, offset <= length else { return nil }
        let wanted = max(offset - Int64(reach), 0)..<min(offset + Int64(reach), length)
        let run = runs.first { $0.offset <= offset && offset <= $0.range.upperBound && !$0.bytes.isEmpty }
        return run?.part(wanted)
    }

    /// Returns the body reduced to its ends and the bytes around some offsets. An incomplete body is not reduced.
    func cut(toEnds maximumEndBytes: Int, around offsets: [Int64], reach: Int) -> RecordedBody {
        guard pieces.count == 1, let whole = pieces.first else { return self }
        let firstEnd = min(Int64(maximumEndBytes), length)
        let lastStart = max(firstEnd, length - Int64(maximumEndBytes))
        var windows: [Range<Int64>] = []
        for offset in offsets.sorted() {
            let window = max(offset - Int64(reach), 0)..<min(offset + Int64(reach), length)
            let middle = window.clamped(to: firstEnd..<lastStart)
            if let last = windows.last, last.upperBound >= middle.lowerBound {
                windows[windows.count - 1] = last.lowerBound..<max(last.upperBound, middle.upperBound)
            } else if !middle.isEmpty {
                windows.append(middle)
            }
        }
        var body = self
        body.pieces = ([0..<firstEnd] + windows + [lastStart..<length]).map(whole.part)
        return body
    }
}

extension RecordedBody {
    /// Records a body while it is read: the whole body if memory allows, or else both its ends.
    struct Builder {
        private var kept = Kept.whole([])
        private(set) var length: Int64 = 0

        private enum Kept {
            /// All chunks of the body that were read so far.
            case whole([ByteBuffer])
            /// Both ends of a body that is too large to be kept whole.
            case ends(Ends)
            case nothing
        }

        /// The number of bytes in memory if the whole body is kept; 0 otherwise.
        var wholeBytes: Int { if case .whole = kept { Int(length) } else { 0 } }

        /// Records the next chunk of the body. A body of at most `maximumBytes` is kept whole. Of a larger body, both
        /// ends are kept. `maximumEndBytes` is the maximum size of each end, and may shrink from chunk to chunk.
        mutating func take(_ chunk: ByteBuffer, maximumEndBytes: Int, maximumBytes: Int) {
            guard chunk.readableBytes > 0 else { return }
            length += Int64(chunk.readableBytes)
            let earlier = kept
            // `kept` is emptied first, because an array with two owners is copied when it grows.
            kept = .nothing
            switch earlier {
            case .whole(var chunks) where length <= Int64(maximumBytes):
                if chunks.isEmpty || !chunks[chunks.count - 1].appendIfSmall(chunk) { chunks.append(chunk.kept) }
                kept = .whole(chunks)
            case .whole(let chunks):
                var ends = Ends()
                for chunk in chunks + [chunk] { ends.take(chunk, maximumEndBytes: maximumEndBytes) }
                kept = .ends(ends)
            case .ends(var ends):
                ends.take(chunk, maximumEndBytes: maximumEndBytes)
                kept = .ends(ends)
            case .nothing: break
            }
        }

        /// Returns the recorded body. If the body was not kept whole, the last end has at most `maximumEndBytes`.
        func body(isComplete: Bool, maximumEndBytes: Int) -> RecordedBody {
            switch kept {
            case .nothing: return emptied(isComplete: isComplete)
            case .ends(let ends):
                return RecordedBody(
                    first: ends.first, last: ends.last(maximumEndBytes), length: length, isComplete: isComplete)
            case .whole(let chunks):
                var bytes: [UInt8] = []
                bytes.reserveCapacity(Int(length))
                for chunk in chunks { bytes.append(contentsOf: chunk.readableBytesView) }
                return RecordedBody(pieces: [Piece(offset: 0, bytes: bytes)], length: length, isComplete: isComplete)
            }
        }

        /// A copy of the builder that has released its bytes and keeps no further bytes.
        var withoutBytes: Builder {
            var builder = self
            builder.kept = .nothing
            return builder
        }

        /// Returns a recorded body that has a length, but no bytes.
        func emptied(isComplete: Bool) -> RecordedBody {
            RecordedBody(pieces: [], length: length, isComplete: isComplete)
        }
    }

    /// Both ends of a body that is being read.
    private struct Ends {
        private(set) var first: [UInt8] = []
        /// The latest chunks, which contain the bytes for the end of the body. Large chunks are kept without copying.
        private var recent = CircularBuffer<ByteBuffer>(initialCapacity: 1)
        private var recentBytes = 0
        private var length: Int64 = 0

        mutating func take(_ chunk: ByteBuffer, maximumEndBytes: Int) {
            var chunk = chunk
            // Once `first` lacks some of the bytes read so far, later bytes are not part of the beginning.
            let isBeginning = length == Int64(first.count)
            if first.count > 2 * maximumEndBytes { first = Array(first.prefix(maximumEndBytes)) }
            length += Int64(chunk.readableBytes)
            if isBeginning, first.count < maximumEndBytes {
                let count = min(maximumEndBytes - first.count, chunk.readableBytes)
                if let beginning = chunk.readSlice(length: count) {
                    first.append(contentsOf: beginning.readableBytesView)
                }
            }
            guard chunk.readableBytes > 0 else { return }
            keepEnd(of: chunk, maximumEndBytes: maximumEndBytes)
            while let oldest = recent.first, recentBytes - oldest.readableBytes >= maximumEndBytes {
                recentBytes -= oldest.readableBytes
                recent.removeFirst()
            }
            shrinkLast(to: maximumEndBytes)
        }

        private mutating func keepEnd(of chunk: ByteBuffer, maximumEndBytes: Int) {
            guard chunk.readableBytes > maximumEndBytes else {
                keep(chunk)
                recentBytes += chunk.readableBytes
                return
            }
            // Copying these bytes lets the rest of the chunk's memory be released.
            recent.removeAll()
            recent.append(ByteBuffer(bytes: chunk.readableBytesView.suffix(maximumEndBytes)))
            recentBytes = maximumEndBytes
        }

        private mutating func keep(_ chunk: ByteBuffer) {
            if var last = recent.popLast() {
                let isTaken = last.appendIfSmall(chunk)
                recent.append(last)
                if isTaken { return }
            }
            recent.append(chunk.kept)
        }

        /// Replaces a large last chunk with a copy of the bytes that are needed, so that the chunk's memory is
        /// released.
        private mutating func shrinkLast(to maximumEndBytes: Int) {
            guard recent.count == 1, let last = recent.first, last.readableBytes > 2 * maximumEndBytes else { return }
            recent[recent.startIndex] = ByteBuffer(bytes: last.readableBytesView.suffix(maximumEndBytes)).kept
            recentBytes = maximumEndBytes
        }

        /// Returns the last bytes of the body, without any bytes that are in `first`.
        func last(_ maximumEndBytes: Int) -> [UInt8] {
            let last = recent.reduce(into: [UInt8]()) { $0.append(contentsOf: $1.readableBytesView) }
            return Array(last.suffix(maximumEndBytes))
        }
    }
}
