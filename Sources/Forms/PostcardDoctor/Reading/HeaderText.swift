import PostcardForm
import PostcardFoundation

/// A part's header as well-formed lines, with the offset of each byte in the body.
///
/// Each fix changes this text, so that the parser gets to the next problem.
struct HeaderText {
    private(set) var bytes: [UInt8] = []
    /// The offset of each byte in the body, and finally the offset of the header's end.
    private var places: [Int64] = []
    /// The offset of the header in the body. It stays the same if bytes are removed from the header.
    let start: Int64

    init(_ lines: HeaderLines, in buffer: BodyBuffer) {
        start = buffer.offset(of: lines.lines.first?.lowerBound ?? lines.contentStart)
        for line in lines.lines {
            bytes += buffer.bytes[line]
            places += line.lazy.map { buffer.offset(of: $0) }
            bytes += "\r\n".utf8
            places += [buffer.offset(of: line.upperBound), buffer.offset(of: line.upperBound)]
        }
        places.append(buffer.offset(of: lines.lines.last?.upperBound ?? lines.contentStart))
    }

    func offset(of index: Int) -> Int64 { places[min(max(index, 0), places.count - 1)] }

    /// The edit of the body that corresponds to ``replace(_:with:)``.
    func edit(_ range: Range<Int>, with replacement: [UInt8]) -> Edit {
        let start = offset(of: range.lowerBound)
        return Edit(at: start, length: offset(of: range.upperBound) - start, replacement)
    }

    mutating func replace(_ range: Range<Int>, with replacement: [UInt8]) {
        let place = offset(of: range.lowerBound)
        countSteps(bytes.count)
        bytes.replaceSubrange(range, with: replacement)
        places.replaceSubrange(range, with: repeatElement(place, count: replacement.count))
    }

    /// Inserts separators into long sequences of combining marks. Returns `false` if no sequence is too long.
    mutating func separateCombiningMarks() -> Bool {
        countSteps(bytes.count)
        let excesses = CombiningMarks.excesses(in: bytes)
        var separated: [UInt8] = []
        var separatedPlaces: [Int64] = []
        var start = 0
        for end in excesses + [bytes.count] {
            separated += bytes[start..<end]
            separatedPlaces += places[start..<end]
            guard end < bytes.count else { break }
            separated += CombiningMarks.separator
            separatedPlaces += repeatElement(places[end], count: CombiningMarks.separator.count)
            start = end
        }
        bytes = separated
        places = separatedPlaces + [places[places.count - 1]]
        return !excesses.isEmpty
    }

    /// The fields of the header, each including its folded lines.
    var fields: [Field] {
        countSteps(bytes.count)
        var fields: [Field] = []
        var start = 0
        while start < bytes.count {
            let end = lineEnd(from: start)
            defer { start = end + 2 }
            if bytes[start].isBlank, !fields.isEmpty {
                fields[fields.count - 1].value = fields[fields.count - 1].value.lowerBound..<end
                continue
            }
            guard let colon = bytes[start..<end].firstIndex(of: .colon) else {
                fields.append(Field(line: start, name: start..<start, value: start..<end))
                continue
            }
            var value = colon + 1
            while value < end, bytes[value].isBlank { value += 1 }
            fields.append(Field(line: start, name: start..<colon, value: value..<end))
        }
        return fields
    }

    /// The start indices of the folded lines, which begin with a blank and continue the field before them.
    var foldedLines: [Int] {
        countSteps(bytes.count)
        var folded: [Int] = []
        var start = lineEnd(from: 0) + 2
        while start < bytes.count {
            if bytes[start].isBlank { folded.append(start) }
            start = lineEnd(from: start) + 2
        }
        return folded
    }

    /// The bytes with folded lines joined. Two spaces replace each line break, so all other bytes keep their indices.
    var unfoldedBytes: [UInt8] {
        var unfolded = bytes
        for line in foldedLines { unfolded.replaceSubrange((line - 2)..<line, with: [.space, .space]) }
        return unfolded
    }

    struct Field {
        let line: Int
        let name: Range<Int>
        var value: Range<Int>
    }

    func field(_ lowercase: String) -> Field? {
        fields.first { isNamed($0, lowercase) }
    }

    func isNamed(_ field: Field, _ lowercase: String) -> Bool {
        var name = bytes[field.name]
        while let last = name.last, last.isBlank { name.removeLast() }
        return name.isEqualIgnoringCase(lowercase)
    }

    func lineEnd(from index: Int) -> Int {
        var end = index
        while end + 1 < bytes.count, bytes[end] != .carriageReturn || bytes[end + 1] != .lineFeed { end += 1 }
        return end
    }

    func text(_ range: Range<Int>) -> String {
        var bytes = self.bytes[range]
        while let last = bytes.last, last.isBlank { bytes.removeLast() }
        return String(streamSafe: bytes)
    }

    /// Parses the header with the receiver's parser. Throws ``FormProblem`` whose offset is an index of ``bytes``.
    func parsed() throws(FormProblem) -> PartHeader? {
        countSteps(bytes.count)
        return try Self.parsed(bytes)
    }

    /// Parses the lines of a header with the receiver's parser. Throws ``FormProblem`` whose offset is an index of
    /// `lines`.
    static func parsed(_ lines: [UInt8]) throws(FormProblem) -> PartHeader? {
        var parser = try FormParser(boundary: "B")
        for piece in [Array("--B\r\n".utf8)[...], lines[...], Array("\r\n".utf8)[...]] {
            var position = 0
            let event: FormEvent?
            do {
                event = try parser.nextEvent(in: piece.span.bytes, at: &position)
            } catch {
                throw FormProblem(
                    error.code, at: error.offset - 5, part: error.partIndex, error.message, advice: error.advice,
                    limit: error.limit)
            }
            if case .partBegan(let header)? = event { return header }
        }
        return nil
    }
}
