import PostcardForm

/// Decodes a chunked body (RFC 9112 §7.1). The bytes arrive in pieces of any size.
struct ChunkedBody: Sendable {
    private var state = State.size(0, digits: 0)
    /// The number of bytes in the chunks read so far.
    private(set) var length: Int64 = 0
    /// The number of bytes after the last chunk.
    private(set) var excess: Int64 = 0
    /// Whether only line breaks follow the last chunk. Servers ignore them before another request (RFC 9112 §2.2).
    private(set) var isExcessBlank = true

    private enum State {
        /// Inside the digits of a chunk's size.
        case size(Int64, digits: Int)
        /// Inside the extensions after a chunk's size.
        case extensions(Int64)
        /// After the CR of the line with a chunk's size.
        case sizeEnd(Int64)
        case data(rest: Int64)
        /// After the data of a chunk, before the CR or LF of its line break.
        case dataEnd
        case dataLineFeed
        /// Inside the trailer after the last chunk.
        case trailer(lineLength: Int)
        case trailerLineFeed(lineLength: Int)
        case complete
        case failed
    }

    /// The problem of the chunks, once the body has ended; `nil` if they are complete.
    var problem: FormProblem? {
        switch state {
        case .complete:
            nil
        case .failed:
            FormProblem(
                .malformedChunk, at: length, "The body's chunks are malformed after its first \(length) bytes.",
                advice: "Write each chunk's length in hexadecimal digits and CRLF, its bytes, and CRLF.")
        default:
            FormProblem(
                .malformedChunk, at: length, "The body's last chunk is missing; \(length) bytes were received.",
                advice: "End the body with a chunk of length 0.")
        }
    }

    /// Reads bytes of the chunked body and passes on the data in its chunks.
    mutating func read(_ bytes: RawSpan, handOn: (RawSpan) -> Void) {
        var position = 0
        while position < bytes.byteCount {
            countSteps(1)
            if case .complete = state {
                excess += Int64(bytes.byteCount - position)
                if isExcessBlank { isExcessBlank = bytes.extracting(position...).isLineBreaks }
                return
            }
            if case .data(let rest) = state {
                let count = Int(min(rest, Int64(bytes.byteCount - position)))
                handOn(bytes.extracting(position..<(position + count)))
                length += Int64(count)
                position += count
                state = rest == Int64(count) ? .dataEnd : .data(rest: rest - Int64(count))
            } else {
                state = next(bytes.unsafeLoad(fromByteOffset: position, as: UInt8.self))
                position += 1
            }
        }
    }

    /// The state after a byte that is not part of a chunk's data.
    private func next(_ byte: UInt8) -> State {
        switch (state, byte) {
        case (.size(let size, let digits), _):
            if let digit = byte.hexadecimalValue {
                return digits < 15 ? .size(size << 4 | Int64(digit), digits: digits + 1) : .failed
            }
            return digits > 0 ? Self.behindDigits(byte, size) : .failed
        case (.extensions(let size), UInt8(ascii: "\r")): return .sizeEnd(size)
        case (.extensions, UInt8(ascii: "\n")): return .failed
        case (.sizeEnd(let size), UInt8(ascii: "\n")): return Self.contentState(size)
        case (.dataEnd, UInt8(ascii: "\r")): return .dataLineFeed
        case (.dataLineFeed, UInt8(ascii: "\n")): return .size(0, digits: 0)
        case (.trailer(let lineLength), UInt8(ascii: "\r")): return .trailerLineFeed(lineLength: lineLength)
        case (.trailer(let lineLength), _): return .trailer(lineLength: lineLength + 1)
        case (.trailerLineFeed(0), UInt8(ascii: "\n")): return .complete
        case (.trailerLineFeed, UInt8(ascii: "\n")): return .trailer(lineLength: 0)
        case (.extensions, _), (.complete, _): return state
        case (.sizeEnd, _), (.dataEnd, _), (.dataLineFeed, _), (.trailerLineFeed, _), (.data, _), (.failed, _):
            return .failed
        }
    }

    private static func behindDigits(_ byte: UInt8, _ size: Int64) -> State {
        switch byte {
        case UInt8(ascii: "\r"): .sizeEnd(size)
        case UInt8(ascii: ";"), UInt8(ascii: " "), UInt8(ascii: "\t"): .extensions(size)
        default: .failed
        }
    }

    private static func contentState(_ size: Int64) -> State {
        size == 0 ? .trailer(lineLength: 0) : .data(rest: size)
    }
}

extension RawSpan {
    fileprivate var isLineBreaks: Bool {
        withUnsafeBytes { $0.allSatisfy { $0 == .carriageReturn || $0 == .lineFeed } }
    }
}
