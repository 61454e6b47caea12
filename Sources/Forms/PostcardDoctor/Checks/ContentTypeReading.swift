import PostcardForm
import PostcardFoundation

/// Reads a request's Content-Type as the sender meant it, even if the value is malformed.
struct ContentTypeReading {
    /// The boundary in the value, even if it is misspelled or badly quoted.
    private(set) var boundary: [UInt8]?
    /// The problem that the parser reports about the value.
    private(set) var problem: FormProblem?
    /// Findings about the value in addition to the parser's problem.
    private(set) var findings: [Finding] = []
    private let isMultipart: Bool

    /// Reads the bytes of the value as it was sent, which may not be UTF-8. `offset` is the offset of the value in the
    /// head.
    init(_ bytes: [UInt8], at offset: Int64) {
        let value = String(streamSafe: bytes)
        isMultipart = Self.namesForm(bytes)
        var read: String?
        do {
            read = try FormParser(contentType: value).boundary
        } catch {
            problem = error
        }
        guard let range = Self.boundary(in: bytes) else {
            noteSeveral(value, at: offset, length: bytes.count)
            return
        }
        boundary = read.map { Array($0.utf8) } ?? Array(bytes[range.value])
        noteSeveral(value, at: offset, length: bytes.count)
        guard problem == nil, let boundary else { return }
        let place = offset + Int64(range.value.lowerBound)
        let characters = bytes[range.value]
        if let index = characters.firstIndex(where: { !$0.isBoundaryCharacter }).map({ $0 - characters.startIndex }) {
            findings.append(
                Finding(
                    .boundaryCharacters, in: .head, at: place + Int64(index), length: 1,
                    "Character \(index + 1) of the boundary is not one that RFC 2046 allows."))
        } else if !range.isQuoted, let index = boundary.firstIndex(where: { !$0.isTokenCharacter }) {
            let quoted = [.quote] + boundary + [.quote]
            findings.append(
                Finding(
                    .boundaryWithoutQuotes, in: .head, at: place + Int64(index), length: 1,
                    "Character \(index + 1) of the boundary is only allowed in quotes.",
                    edits: [Edit(in: .head, at: place, length: Int64(boundary.count), quoted)]))
        }
    }

    /// Adds a finding if the field has several values, as when a program appends a value to an earlier one. The
    /// boundary is then that of the value for a form.
    private mutating func noteSeveral(_ value: String, at offset: Int64, length: Int) {
        guard problem != nil, isMultipart, value.utf8.contains(UInt8(ascii: ",")) else { return }
        let types = value.utf8.split(separator: UInt8(ascii: ",")).filter { piece in
            let trimmed = piece.drop { $0 == .space }.prefix { $0 != .semicolon && $0 != .space }
            return trimmed.contains(.slash) && (try? MediaType(String(Substring(trimmed)))) != nil
        }
        guard types.count > 1 else { return }
        findings.append(
            Finding(
                .duplicateContentType, in: .head, at: offset, length: length,
                "The Content-Type has \(types.count) values in one field: \(value.quoted)."))
        if let multipart = types.first(where: Self.namesForm).map(Array.init),
            let range = Self.boundary(in: multipart)
        {
            boundary = Array(multipart[range.value])
        }
    }

    private static func namesForm(_ bytes: some Sequence<UInt8>) -> Bool {
        bytes.map { $0.asciiLowercased }.contains("multipart/form-data".utf8)
    }

    private static func boundary(in bytes: [UInt8]) -> (value: Range<Int>, isQuoted: Bool)? {
        let lowercase = bytes.map { $0.asciiLowercased }
        guard let found = ByteSearch("boundary".utf8).firstIndex(in: lowercase, from: 0, end: bytes.count) else {
            return nil
        }
        var index = found + 8
        while index < bytes.count, bytes[index].isBlank { index += 1 }
        guard index < bytes.count, bytes[index] == .equals else { return nil }
        index += 1
        while index < bytes.count, bytes[index].isBlank { index += 1 }
        let isQuoted = index < bytes.count && bytes[index] == .quote
        if isQuoted { index += 1 }
        var end = index
        while end < bytes.count, isQuoted ? bytes[end] != .quote : bytes[end] != .semicolon && !bytes[end].isBlank {
            end += 1
        }
        return (index..<end, isQuoted)
    }
}

extension ContentTypeReading {
    /// The code for the difference between the Content-Type's boundary and the boundary that the body uses.
    static func difference(_ announced: [UInt8], _ used: [UInt8]) -> FormProblem.Code {
        func without(_ characters: String, _ text: [UInt8]) -> [UInt8] {
            text.filter { !characters.utf8.contains($0) }
        }
        func trimmed(_ text: [UInt8]) -> ArraySlice<UInt8> {
            let end = text.lastIndex { $0 != .dash } ?? -1
            return text[...end].drop { $0 == .dash }
        }
        if trimmed(announced) == trimmed(used) { return .boundaryWithDashes }
        if without("\"'", announced) == without("\"'", used) { return .boundaryQuotes }
        if without(" \t", announced) == without(" \t", used) { return .boundarySpaces }
        if announced.isEqualIgnoringCase(used) { return .boundaryCase }
        return .boundaryMismatch
    }
}
