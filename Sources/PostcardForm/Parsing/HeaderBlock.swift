/// The header of a part while it comes in: every line up to the blank one.
///
/// A line ends in CRLF and in nothing else. Where one parser takes a lone CR or LF for a line's end and another
/// does not, a header means two things, and filters are passed that way.
struct HeaderBlock: Sendable {
    /// Where the header begins, counted from the start of the body.
    let offset: Int64

    /// The lines, each with its CRLF; at the end the blank line too.
    private(set) var bytes: [UInt8] = []

    /// Whether the blank line has been read.
    private(set) var isComplete = false

    private var lineLength = 0
    private var fieldCount = 0
    private var sawCarriageReturn = false

    /// How many bytes padded the delimiter before the header; they count for its limit.
    private let padding: Int

    init(offset: Int64, padding: Int) {
        self.offset = offset
        self.padding = padding
    }

    /// Appends up to the blank line.
    ///
    /// - Returns: How many of the bytes belong to the header.
    mutating func append(
        _ new: Slice<UnsafeRawBufferPointer>, limits: FormLimits, partIndex: Int
    ) throws(FormProblem) -> Int {
        let allowed = limits.maximumHeaderBytes - padding - bytes.count
        var count = 0
        for byte in new {
            let place = offset + Int64(bytes.count + count)
            if count >= allowed { throw .headerTooLarge(limits.maximumHeaderBytes, at: place, part: partIndex) }
            if sawCarriageReturn, byte != .lineFeed { throw .bareCarriageReturn(at: place - 1, part: partIndex) }
            count += 1
            switch byte {
            case .carriageReturn:
                sawCarriageReturn = true
            case .lineFeed:
                guard sawCarriageReturn else { throw .bareLineFeed(at: place, part: partIndex) }
                if lineLength == 0 {
                    isComplete = true
                    bytes.append(contentsOf: new.prefix(count))
                    return count
                }
                sawCarriageReturn = false
                lineLength = 0
            case 0:
                throw .nulInHeader(at: place, part: partIndex)
            default:
                if lineLength == 0, !byte.isBlank {
                    fieldCount += 1
                    if fieldCount > limits.maximumHeaderFields {
                        throw .tooManyHeaderFields(limits.maximumHeaderFields, at: place, part: partIndex)
                    }
                }
                lineLength += 1
            }
        }
        bytes.append(contentsOf: new)
        return count
    }
}

/// A field of a part's header.
struct HeaderField {
    let name: String
    /// Where the field begins in the header.
    let start: Int
    /// The value in the header: without the blanks around it, and with spaces for the line breaks within, so that
    /// its indices are still the header's (RFC 9112 §5.2).
    let value: ArraySlice<UInt8>

    /// The fields of a complete header, in order.
    ///
    /// - Throws: ``FormProblem`` where a line is no field.
    static func all(in block: HeaderBlock, partIndex: Int) throws(FormProblem) -> [HeaderField] {
        var bytes = block.bytes
        var lines: [Range<Int>] = []
        var start = 0
        while bytes[start] != .carriageReturn {
            let end = unfold(&bytes, from: start)
            lines.append(start..<end)
            start = end + 2
        }
        var fields: [HeaderField] = []
        for line in lines {
            guard let colon = bytes[line].firstIndex(of: .colon), colon > line.lowerBound,
                bytes[line.lowerBound..<colon].allSatisfy(\.isTokenCharacter)
            else { throw .malformedHeaderField(at: block.offset + Int64(line.lowerBound), part: partIndex) }
            fields.append(
                HeaderField(
                    name: String(decoding: bytes[line.lowerBound..<colon], as: UTF8.self), start: line.lowerBound,
                    value: bytes[(colon + 1)..<line.upperBound].trimmingBlanks()))
        }
        return fields
    }

    /// Puts spaces in place of the line breaks within a field, and says where the field ends.
    private static func unfold(_ bytes: inout [UInt8], from start: Int) -> Int {
        var index = start
        while true {
            // The block is complete: a CRLF follows, and behind it at least one byte more.
            while bytes[index] != .carriageReturn { index += 1 }
            guard bytes[index + 2].isBlank else { return index }
            bytes[index] = .space
            bytes[index + 1] = .space
        }
    }
}

extension ArraySlice<UInt8> {
    fileprivate func trimmingBlanks() -> ArraySlice<UInt8> {
        guard let first = firstIndex(where: { !$0.isBlank }), let last = lastIndex(where: { !$0.isBlank }) else {
            return self[endIndex...]
        }
        return self[first...last]
    }
}
