import NIOCore
import PostcardServer

/// The beginning and the end of a body that was read.
struct RecordedBody: Sendable {
    /// The first bytes.
    let first: [UInt8]
    /// The last bytes, as far as they come after the first.
    let last: [UInt8]
    /// How many bytes were read.
    let length: Int64
    /// Whether the body was read to its end.
    let isComplete: Bool
    /// Whether secrets were masked.
    var hidesSecrets = false

    static let none = RecordedBody(first: [], last: [], length: 0, isComplete: false)

    var lastOffset: Int64 { length - Int64(last.count) }

    /// All bytes that were read; `nil` if some between the beginning and the end are missing.
    var bytes: [UInt8]? { lastOffset == Int64(first.count) ? first + last : nil }

    /// The recorded bytes around an offset, with the offset of the first of them.
    func bytes(around offset: Int64, reach: Int) -> (offset: Int64, bytes: ArraySlice<UInt8>)? {
        let kept: (offset: Int64, bytes: [UInt8])
        if let bytes {
            kept = (0, bytes)
        } else if offset <= Int64(first.count) {
            kept = (0, first)
        } else if offset >= lastOffset {
            kept = (lastOffset, last)
        } else {
            return nil
        }
        guard let place = Int(exactly: offset - kept.offset), place <= kept.bytes.count else { return nil }
        let start = max(place - reach, 0)
        let around = kept.bytes[start..<min(place + reach, kept.bytes.count)]
        return around.isEmpty ? nil : (kept.offset + Int64(start), around)
    }
}

extension RecordedBody {
    /// Records both ends of a body while it is read.
    struct Builder {
        private var first: [UInt8] = []
        /// The last chunks, large ones without a copy, and no more than the end needs.
        private var recent = CircularBuffer<ByteBuffer>(initialCapacity: 1)
        private var recentBytes = 0
        private(set) var length: Int64 = 0

        /// - Parameter maximumEndBytes: How many bytes of each end may be kept; it may become less from chunk to chunk.
        mutating func take(_ chunk: ByteBuffer, maximumEndBytes: Int) {
            var chunk = chunk
            // Once bytes were left out, the next ones are not part of the beginning.
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
            // Without a copy, the bytes would keep the memory of all that were read with them.
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

        /// Shortens a last chunk that is much longer than what may be kept of it.
        private mutating func shrinkLast(to maximumEndBytes: Int) {
            guard recent.count == 1, let last = recent.first, last.readableBytes > 2 * maximumEndBytes else { return }
            recent[recent.startIndex] = ByteBuffer(bytes: last.readableBytesView.suffix(maximumEndBytes)).kept
            recentBytes = maximumEndBytes
        }

        func body(isComplete: Bool, maximumEndBytes: Int) -> RecordedBody {
            let last = recent.reduce(into: [UInt8]()) { $0.append(contentsOf: $1.readableBytesView) }
            return RecordedBody(
                first: first, last: Array(last.suffix(maximumEndBytes)), length: length, isComplete: isComplete)
        }

        /// The length alone, without content.
        func emptied(isComplete: Bool) -> RecordedBody {
            RecordedBody(first: [], last: [], length: length, isComplete: isComplete)
        }
    }
}
