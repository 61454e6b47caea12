import HTTPTypes
import PostcardForm
import PostcardFoundation

/// The head of a raw HTTP/1.1 request: its fields, what they say about the body, and the problems of the head.
struct RequestHead: Sendable {
    /// A header field and its position, counted from the start of the request.
    struct Field: Sendable {
        let name: String
        let value: String
        /// The range of the line, including its line break.
        let line: Range<Int>
        let valueStart: Int
        let valueLength: Int

        var valueRange: Range<Int> { valueStart..<(valueStart + valueLength) }
    }

    private(set) var fields: [Field] = []
    private(set) var findings: [Finding] = []

    /// The index of the blank line. New fields are inserted there.
    private(set) var end = 0

    /// The size of the head in bytes, including the blank line.
    let length: Int

    private(set) var contentLength: Int64?

    /// The method and the target of the request line.
    private(set) var method = "POST"
    private(set) var target = "/"

    /// Whether the HTTP version frames the body, so that the head needs no length: HTTP/2 and HTTP/3 (RFC 9113 §8.1).
    private(set) var isFramed = false

    var isChunked: Bool { !all("transfer-encoding").isEmpty }

    /// Whether the head says that the body is compressed.
    var isEncoded: Bool {
        all("content-encoding").contains { !$0.value.isEmpty && $0.value.lowercased() != "identity" }
    }

    /// The first Content-Type for a form, or else the first Content-Type.
    var contentType: Field? {
        let types = all("content-type")
        return types.first { $0.value.lowercased().contains("multipart/form-data") } ?? types.first
    }

    func all(_ name: String) -> [Field] { fields.filter { $0.name == name } }

    /// The index after the blank line that ends a head; `nil` if there is none yet. The first `known` bytes were
    /// already searched. Lines may end in LF alone, which is reported later.
    static func end(in bytes: [UInt8], from known: Int) -> Int? {
        var index = max(known - 2, 0)
        while let lineFeed = bytes[index...].firstIndex(of: .lineFeed) {
            let next = bytes[(lineFeed + 1)...].prefix(2)
            if next.first == .lineFeed { return lineFeed + 2 }
            if next.elementsEqual("\r\n".utf8) { return lineFeed + 3 }
            index = lineFeed + 1
        }
        return nil
    }

    /// Parses a head with its blank line. Throws ``Finding/Refusal`` if the bytes are not the head of a request at all.
    init(_ bytes: [UInt8]) throws(Finding.Refusal) {
        length = bytes.count
        var start = 0
        var isFirst = true
        while start < bytes.count {
            let lineFeed = bytes[start...].firstIndex(of: .lineFeed) ?? bytes.count
            let lineEnd = lineFeed > start && bytes[lineFeed - 1] == .carriageReturn ? lineFeed - 1 : lineFeed
            let line = start..<min(lineFeed + 1, bytes.count)
            if lineFeed < bytes.count, lineEnd == lineFeed { findings.append(.bareLineBreak(inHeadAt: lineFeed)) }
            if lineEnd == start, !isFirst {
                end = start
                break
            }
            if isFirst {
                try readRequestLine(bytes[start..<lineEnd])
            } else {
                readField(bytes, line, end: lineEnd)
            }
            isFirst = false
            start = line.upperBound
        }
        noteFields(bytes)
        noteLengths()
        noteContentTypes()
    }

    /// Adds findings about the target and fields that make receivers refuse the request at once.
    private mutating func noteFields(_ bytes: [UInt8]) {
        let target = bytes.drop { $0 != .space }.dropFirst().prefix { $0 != .space }
        if let refusal = RequestFieldGrammar.refusal(ofTarget: target) {
            note(refusal, of: "target", at: target.startIndex, length: target.count)
        }
        for field in fields {
            // Another finding reports the line breaks of a folded field.
            let value = bytes[field.valueRange].map { $0 == .carriageReturn || $0 == .lineFeed ? .space : $0 }
            guard let refusal = RequestFieldGrammar.refusal(ofField: field.name, value) else { continue }
            note(refusal, of: field.name, at: field.valueStart, length: field.valueLength)
        }
    }

    private mutating func note(_ refusal: RequestFieldGrammar.Refusal, of field: String, at start: Int, length: Int) {
        let place =
            switch refusal {
            case .tooManyMarks(let offset): (offset, 1)
            case .wrongByte(_, let offset, _): (offset, 1)
            case .tooLong: (0, length)
            }
        findings.append(
            Finding(
                refusal.code, in: .head, at: Int64(start + place.0), length: place.1, refusal.message(of: field),
                advice: refusal.advice))
    }

    /// The finding about a body for a method without one; `nil` for other methods.
    var methodWithoutContent: Finding? {
        guard ["GET", "HEAD", "DELETE", "TRACE", "CONNECT"].contains(method) else { return nil }
        return Finding(
            .methodWithoutContent, in: .head, at: 0, length: method.utf8.count,
            "The method is \(method), whose requests have no content: most servers do not read the form.")
    }

    private mutating func readRequestLine(_ line: ArraySlice<UInt8>) throws(Finding.Refusal) {
        let words = line.split(separator: .space, omittingEmptySubsequences: false)
        guard words.count == 3, !words[0].isEmpty, !words[1].isEmpty, words[2].starts(with: "HTTP/".utf8) else {
            throw Finding.Refusal(
                finding: .malformedRequest(
                    at: 0, length: min(line.count, 80),
                    line.starts(with: "--".utf8)
                        ? "The input begins with a delimiter, not with a request line: it is a body alone."
                        : "The input does not begin with a request line.",
                    advice: "Pass the request as it was sent, or only the body, with its Content-Type in "
                        + "--content-type.")
            )
        }
        method = String(streamSafe: words[0])
        target = String(streamSafe: words[1])
        isFramed = ["HTTP/2", "HTTP/3"].contains { words[2].starts(with: $0.utf8) }
    }

    private mutating func readField(_ bytes: [UInt8], _ line: Range<Int>, end: Int) {
        let start = line.lowerBound
        if bytes[start].isBlank, let last = fields.last {
            continueField(last, bytes, line, end: end)
            return
        }
        guard let colon = bytes[start..<end].firstIndex(of: .colon) else {
            noteLine(bytes, start..<end)
            return
        }
        var nameEnd = colon
        while nameEnd > start, bytes[nameEnd - 1].isBlank { nameEnd -= 1 }
        guard let name = HTTPField.Name(String(streamSafe: bytes[start..<nameEnd])) else {
            noteLine(bytes, start..<end)
            return
        }
        if nameEnd < colon {
            findings.append(
                .malformedRequest(
                    at: Int64(nameEnd), length: colon - nameEnd, "There is a blank between \(name) and its colon.",
                    advice: "Write Name: value, with no blank before the colon.",
                    edits: [Edit(in: .head, at: Int64(nameEnd), length: Int64(colon - nameEnd), [])]))
        }
        var value = colon + 1
        while value < end, bytes[value].isBlank { value += 1 }
        var last = end
        while last > value, bytes[last - 1].isBlank { last -= 1 }
        fields.append(
            Field(
                name: name.canonicalName, value: String(streamSafe: bytes[value..<last]), line: line,
                valueStart: value, valueLength: last - value))
    }

    /// Joins a line that begins with a blank to the field before the line.
    private mutating func continueField(_ field: Field, _ bytes: [UInt8], _ line: Range<Int>, end: Int) {
        let start = line.lowerBound
        var next = start
        while next < end, bytes[next].isBlank { next += 1 }
        var last = end
        while last > next, bytes[last - 1].isBlank { last -= 1 }
        let name = String(
            decoding: bytes[field.line.lowerBound...].prefix { $0 != .colon && !$0.isBlank }, as: UTF8.self)
        let folded = field.valueRange.upperBound..<next
        findings.append(
            .malformedRequest(
                at: Int64(start), length: next - start,
                "The value of \(name) is folded: its line continues on the next, which HTTP does not allow any more "
                    + "(RFC 9112 §5.2).",
                advice: "Write the field on one line.",
                edits: [Edit(in: .head, at: Int64(folded.lowerBound), length: Int64(folded.count), [.space])]))
        let text = String(streamSafe: bytes[next..<last])
        fields[fields.count - 1] = Field(
            name: field.name, value: "\(field.value) \(text)", line: field.line.lowerBound..<line.upperBound,
            valueStart: field.valueStart, valueLength: last - field.valueStart)
    }

    private mutating func noteLine(_ bytes: [UInt8], _ line: Range<Int>) {
        let text = String(streamSafe: bytes[line].prefix(80))
        findings.append(
            .malformedRequest(
                at: Int64(line.lowerBound), length: min(line.count, 80),
                "The line \(text.quoted) of the head is not a header field.",
                advice: "Write Name: value, with no blank before the colon."))
    }

    // MARK: - Lengths

    private mutating func noteLengths() {
        let lengths = all("content-length")
        let codings = all("transfer-encoding")
        if let first = lengths.first {
            let numbers = Set(lengths.map { $0.value })
            contentLength = numbers.count == 1 ? number(first) : nil
            if lengths.count > 1 {
                let last = lengths[lengths.count - 1]
                findings.append(
                    Finding(
                        .conflictingLengths, in: .head, at: Int64(last.line.lowerBound),
                        length: last.line.count, "The head has \(lengths.count) Content-Length fields.",
                        edits: numbers.count == 1 ? removal(of: Array(lengths.dropFirst())) : nil))
            }
        }
        guard let coding = codings.first else { return }
        if let length = lengths.first {
            findings.append(
                Finding(
                    .conflictingLengths, in: .head, at: Int64(later(length, coding).line.lowerBound),
                    length: later(length, coding).line.count,
                    "The head has both a Content-Length and a Transfer-Encoding.", edits: []))
            contentLength = nil
        }
        let names = codings.map { $0.value.lowercased() }.joined(separator: ",").split(separator: ",").map {
            $0.filter { $0 != " " && $0 != "\t" }
        }
        guard names != ["chunked"] else { return }
        findings.append(
            .malformedRequest(
                at: Int64(coding.valueStart), length: coding.valueLength,
                "The Transfer-Encoding is \(coding.value.quoted), not chunked.",
                advice: "Send Transfer-Encoding: chunked, or a Content-Length in its place."))
    }

    private func later(_ one: Field, _ other: Field) -> Field {
        one.line.lowerBound > other.line.lowerBound ? one : other
    }

    private func removal(of fields: [Field]) -> [Edit] {
        fields.map { Edit(in: .head, at: Int64($0.line.lowerBound), length: Int64($0.line.count), []) }
    }

    private mutating func number(_ field: Field) -> Int64? {
        if let length = Int64(field.value), length >= 0, field.value.utf8.allSatisfy({ $0.isDigit }) { return length }
        findings.append(
            .malformedRequest(
                at: Int64(field.valueStart), length: field.valueLength,
                "The Content-Length \(field.value.quoted) is not a number of bytes.",
                advice: "Write the number of the body's bytes in decimal digits.", edits: []))
        return nil
    }

    // MARK: - Types

    private mutating func noteContentTypes() {
        let types = all("content-type")
        guard types.count > 1, let kept = contentType else {
            if types.isEmpty {
                findings.append(
                    Finding(
                        .missingContentType, in: .head, at: Int64(end), "The request has no Content-Type."))
            }
            return
        }
        let last = types[types.count - 1]
        let others = types.filter { $0.line != kept.line }
        findings.append(
            Finding(
                .duplicateContentType, in: .head, at: Int64(last.line.lowerBound), length: last.line.count,
                "The head has \(types.count) Content-Type fields.", edits: removal(of: others)))
    }
}

extension Finding {
    /// The finding that ends the examination, because the bytes are not a request.
    struct Refusal: Error {
        let finding: Finding
    }

    fileprivate static func bareLineBreak(inHeadAt index: Int) -> Finding {
        Finding(
            .bareLineBreakInHead, in: .head, at: Int64(index), length: 1,
            "A line of the request's head ends in LF without CR.",
            edits: [Edit(in: .head, at: Int64(index), length: 1, "\r\n".utf8)])
    }

    static func malformedRequest(
        at offset: Int64, length: Int = 0, _ message: String, advice: String, edits: [Edit]? = nil
    ) -> Finding {
        Finding(
            .malformedRequest, in: .head, at: offset, length: length, message, advice: advice, edits: edits)
    }
}
