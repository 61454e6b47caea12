import PostcardForm

/// A part's header in well-formed lines, each byte of which knows where in the body it stands.
///
/// What is wrong with it is put right here step by step, so that the parser can say what is wrong behind it.
struct HeaderText {
    private(set) var bytes: [UInt8] = []
    /// Where each of the bytes stands in the body; one more for the end.
    private var places: [Int64] = []
    /// Where the header begins, whatever is taken out of it.
    let start: Int64

    init(_ lines: HeaderLines, in window: BodyWindow) {
        start = window.offset(of: lines.lines.first?.lowerBound ?? lines.contentStart)
        for line in lines.lines {
            bytes += window.bytes[line]
            places += line.lazy.map { window.offset(of: $0) }
            bytes += "\r\n".utf8
            places += [window.offset(of: line.upperBound), window.offset(of: line.upperBound)]
        }
        places.append(window.offset(of: lines.lines.last?.upperBound ?? lines.contentStart))
    }

    /// Where a byte stands in the body.
    func offset(of index: Int) -> Int64 { places[min(max(index, 0), places.count - 1)] }

    /// The edit of the body that ``replace(_:with:)`` stands for.
    func edit(_ range: Range<Int>, with replacement: [UInt8]) -> Edit {
        let start = offset(of: range.lowerBound)
        return Edit(at: start, length: offset(of: range.upperBound) - start, replacement)
    }

    mutating func replace(_ range: Range<Int>, with replacement: [UInt8]) {
        let place = offset(of: range.lowerBound)
        bytes.replaceSubrange(range, with: replacement)
        places.replaceSubrange(range, with: repeatElement(place, count: replacement.count))
    }

    /// The lines' fields, folded lines with the field that they go on with.
    var fields: [Field] {
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
        return name.count == lowercase.utf8.count && zip(name, lowercase.utf8).allSatisfy { $0.asciiLowercased == $1 }
    }

    /// Where the line ends that an index lies in.
    func lineEnd(from index: Int) -> Int {
        var end = index
        while end + 1 < bytes.count, bytes[end] != .carriageReturn || bytes[end + 1] != .lineFeed { end += 1 }
        return end
    }

    func text(_ range: Range<Int>) -> String {
        var bytes = self.bytes[range]
        while let last = bytes.last, last.isBlank { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// What the receiver's parser makes of the header.
    ///
    /// - Throws: ``FormProblem`` whose offset is an index of ``bytes``.
    func parsed() throws(FormProblem) -> PartHeader? {
        var parser = try FormParser(boundary: "B")
        for piece in [Array("--B\r\n".utf8)[...], bytes[...], Array("\r\n".utf8)[...]] {
            var position = 0
            let event: FormEvent?
            do {
                event = try parser.nextEvent(in: piece.span.bytes, at: &position)
            } catch {
                throw FormProblem(
                    error.code, at: error.offset - 5, part: error.partIndex, error.message, fix: error.fix,
                    limit: error.limit)
            }
            if case .partBegan(let header)? = event { return header }
        }
        return nil
    }
}
