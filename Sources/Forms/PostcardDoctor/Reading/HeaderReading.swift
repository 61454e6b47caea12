import PostcardForm
import PostcardFoundation

/// The readable contents of a part's header, and the findings about the header.
struct HeaderReading {
    let name: String
    let filename: String?
    let contentType: String?
    let fields: [(name: String, value: String)]
    private(set) var findings: [Finding] = []

    let offset: Int64
    let contentTypeField: Located?
    let nameValue: Located?
    let filenameValue: Located?

    /// Some bytes of the header, with their offset.
    struct Located {
        let offset: Int64
        let bytes: [UInt8]
        /// Whether the bytes are exactly those of the body. Only then is ``offset`` plus an index a byte's offset.
        var isExact = true

        /// The media type in the bytes, without its parameters.
        var essence: ArraySlice<UInt8> { bytes.prefix { $0 != .semicolon && !$0.isBlank } }
    }

    var isFile: Bool { filename != nil }

    init(_ text: HeaderText, partIndex: Int, offset: Int64) {
        var fixer = HeaderFixer(text: text, partIndex: partIndex)
        let header = fixer.read()
        let fixed = fixer.text
        self.offset = offset
        findings = fixer.findings + [text.foldedLine(partIndex)].compactMap { $0 }
        contentTypeField = fixed.field("content-type").map { fixed.unfolded($0.value) }
        let disposition = fixed.field("content-disposition").map {
            DispositionReading(fixed.unfoldedBytes, in: $0.value)
        }
        let original =
            fixed.bytes == text.bytes
            ? disposition
            : text.field("content-disposition").map { DispositionReading(text.unfoldedBytes, in: $0.value) }
        let locate: (String) -> Located? = { name in
            if let parameter = original?.parameter(name), parameter.mistake == nil, parameter.foreignQuotes == nil {
                let value = parameter.value
                return Located(offset: text.offset(of: value.lowerBound), bytes: Array(text.bytes[value]))
            }
            return disposition?.parameter(name).map {
                Located(
                    offset: fixed.offset(of: $0.value.lowerBound), bytes: Array(fixed.bytes[$0.value]),
                    isExact: false)
            }
        }
        nameValue = locate("name")
        filenameValue = locate("filename")
        if let header {
            name = header.name
            filename = header.filename
            contentType = header.contentType
            fields = header.fields
            // .NET sends the filename twice, as `filename` and `filename*`. Receivers agree on the name, unless
            // `filename` is an encoded word.
            let plain = disposition?.parameter("filename").map { fixed.bytes[$0.value] }
            let isRepeated = plain.map { !$0.starts(with: "=?".utf8) } ?? false
            findings += header.warnings.filter {
                $0.code != .foldedHeaderLine && ($0.code != .extendedFilename || !isRepeated)
            }.map {
                var finding = Finding($0, at: fixed.offset(of: Int(clamping: $0.offset) - 5), part: partIndex)
                if $0.code == .unescapedBackslash { finding.edits = disposition?.backslashEdits(in: fixed) }
                return finding
            }
            findings += ["name", "filename"].compactMap { name in
                disposition?.parameter(name)?.quotesInName(in: fixed, partIndex)
            }
        } else {
            name = disposition?.decoded("name", in: fixed) ?? ""
            filename = disposition?.decoded("filename", in: fixed)
            contentType = contentTypeField.map { String(streamSafe: $0.bytes) }
            fields = fixed.fields.map { (fixed.text($0.name), fixed.text($0.value)) }
        }
    }
}

extension HeaderText {
    private func blanks(at index: Int) -> Int { bytes[index...].prefix { $0.isBlank }.count }

    private func beginsField(at index: Int) -> Bool {
        let name = bytes[index...].prefix { $0.isTokenCharacter }
        return !name.isEmpty && bytes[name.endIndex...].drop { $0.isBlank }.first == .colon
    }

    /// The value of a field on one line. Spaces replace its line breaks; blanks before the value are left out.
    fileprivate func unfolded(_ value: Range<Int>) -> HeaderReading.Located {
        let line = unfoldedBytes[value]
        let blanks = line.prefix { $0.isBlank }.count
        return HeaderReading.Located(
            offset: offset(of: value.lowerBound + blanks), bytes: Array(line.dropFirst(blanks)))
    }

    /// The finding about folded lines. Its edits put each field on one line.
    fileprivate func foldedLine(_ partIndex: Int) -> Finding? {
        let lines = foldedLines
        guard let first = lines.first else { return nil }
        return Finding(
            .foldedHeaderLine, at: offset(of: first), length: blanks(at: first), part: partIndex,
            lines.count == 1
                ? "A line of the part's header begins with a blank, and continues the field before it."
                : "\(lines.count) lines of the part's header begin with a blank, and continue the field before them.",
            // A line that is a field does not continue another field, even with a blank before its name.
            edits: lines.contains { beginsField(at: $0 + blanks(at: $0)) }
                ? nil : lines.map { edit(($0 - 2)..<($0 + blanks(at: $0)), with: [.space]) })
    }
}

extension DispositionReading {
    /// The decoded value of a parameter in a header that the parser refuses as a whole.
    fileprivate func decoded(_ name: String, in text: HeaderText) -> String? {
        guard let parameter = parameter(name) else { return nil }
        let value = Array(text.unfoldedBytes[parameter.value])
        let quote: [UInt8] = parameter.isQuoted ? [.quote] : []
        // The parser refuses a filename without a name, so a name is added.
        let start = "Content-Disposition: form-data; \(name == "name" ? "" : "name=a; ")\(name)="
        let line = Array(start.utf8) + quote + value + quote + Array("\r\n".utf8)
        countSteps(line.count)
        guard let header = try? HeaderText.parsed(line) else { return String(streamSafe: value) }
        return name == "name" ? header.name : header.filename
    }

    /// The edits that double the backslashes in quoted values, except those before a quote.
    fileprivate func backslashEdits(in text: HeaderText) -> [Edit] {
        parameters.filter { $0.isQuoted }.compactMap { parameter in
            let value = text.bytes[parameter.value]
            let escaped = Self.escapingBackslashes(in: value)
            return escaped.elementsEqual(value) ? nil : text.edit(parameter.value, with: escaped)
        }
    }

    private static func escapingBackslashes(in value: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        for index in value.indices {
            result.append(value[index])
            let isEscape = index + 1 < value.endIndex && value[index + 1] == .quote
            if value[index] == .backslash, !isEscape { result.append(.backslash) }
        }
        return result
    }
}

extension DispositionReading.Parameter {
    /// Finds single or typographic quotes around a value. Every receiver reads them as part of the value.
    fileprivate func quotesInName(in text: HeaderText, _ partIndex: Int) -> Finding? {
        foreignQuotes.map { range in
            Finding(
                .quotesInName, at: text.offset(of: range.lowerBound), length: range.count, part: partIndex,
                "The quotes around the \(name) are not double quotes, and are read as part of it.",
                edits: hasCertainExtent(in: text.bytes)
                    ? [text.edit(range, with: DispositionReading.quoted(text.bytes[value]))] : nil)
        }
    }
}

/// Parses a header repeatedly, and fixes one problem after each attempt.
struct HeaderFixer {
    private(set) var text: HeaderText
    let partIndex: Int
    private(set) var findings: [Finding] = []

    /// The maximum number of problems to fix, more than any real header has.
    private static let maximumSteps = 8

    /// Fixes problems until the header can be parsed. Returns `nil` if it cannot be parsed to its end.
    mutating func read() -> PartHeader? {
        for _ in 0..<Self.maximumSteps {
            do throws(FormProblem) {
                return try text.parsed()
            } catch {
                guard fix(error) else { return nil }
            }
        }
        return nil
    }

    /// Records a problem and fixes it, so that the next attempt gets further.
    private mutating func fix(_ problem: FormProblem) -> Bool {
        let index = Int(clamping: problem.offset)
        switch problem.code {
        case .malformedHeaderField: return fixField(at: index, problem)
        case .malformedParameter: return fixDisposition(problem, isCertain: true)
        case .dispositionNotFormData:
            guard let field = text.field("content-disposition"),
                DispositionReading(text.bytes, in: field.value).parameter("name") != nil
            else { return note(problem) }
            return fixDisposition(problem, isCertain: true)
        case .duplicateParameter: return fixDisposition(problem, isCertain: false)
        case .nulInHeader, .bareLineBreak:
            note(problem)
            guard text.bytes.indices.contains(index) else { return false }
            text.replace(index..<(index + 1), with: [.space])
            return true
        case .duplicateContentDisposition:
            let line = index..<min(text.lineEnd(from: index) + 2, text.bytes.count)
            note(problem)
            text.replace(line, with: [])
            return true
        case .duplicatePartContentType: return removeContentType(at: index, problem)
        case .tooManyCombiningMarks where CombiningMarks.firstExcess(in: text.bytes) != nil:
            note(problem)
            return text.separateCombiningMarks()
        case .contradictingFilenames, .tooManyCombiningMarks:
            note(problem)
            let end = text.lineEnd(from: index)
            let last = text.bytes[index..<end].firstIndex(of: .semicolon) ?? end
            text.replace(index..<last, with: [])
            return true
        default: return note(problem)
        }
    }

    @discardableResult
    private mutating func note(_ problem: FormProblem) -> Bool {
        let isMissing = problem.code == .missingContentDisposition
        let place = isMissing ? text.start : text.offset(of: Int(clamping: problem.offset))
        findings.append(Finding(problem, at: place, part: partIndex))
        return false
    }

    /// Removes a second Content-Type, with a finding that quotes the first. Only the sender knows which of two types is
    /// right.
    private mutating func removeContentType(at index: Int, _ problem: FormProblem) -> Bool {
        guard let first = text.field("content-type"),
            let second = text.fields.first(where: { $0.line == index }), second.line > first.line
        else { return note(problem) }
        let areEqual = text.text(first.value).utf8.isEqualIgnoringCase(text.text(second.value).utf8)
        // The range includes the line break before the line, because the last line of the header has none here.
        let line = (second.line - 2)..<second.value.upperBound
        findings.append(
            Finding(
                .duplicatePartContentType, at: text.offset(of: second.line),
                length: second.value.upperBound - second.line, part: partIndex,
                "The part has two Content-Types: \(quoted(first)) and \(quoted(second)).",
                edits: areEqual ? [text.edit(line, with: [])] : nil))
        text.replace(line, with: [])
        return true
    }

    /// The line of a field, quoted and shortened for a message.
    private func quoted(_ field: HeaderText.Field) -> String {
        text.text(field.line..<field.value.upperBound).quoted
    }

    /// Fixes a malformed field: a blank before its colon, or another mistake.
    private mutating func fixField(at start: Int, _ problem: FormProblem) -> Bool {
        var index = start
        while index < text.bytes.count, text.bytes[index].isTokenCharacter { index += 1 }
        var colon = index
        while colon < text.bytes.count, text.bytes[colon].isBlank { colon += 1 }
        let end = min(text.lineEnd(from: start) + 2, text.bytes.count)
        guard index > start, colon > index, colon < text.bytes.count, text.bytes[colon] == .colon else {
            if let blank = missingColon(from: start, to: index) {
                findings.append(
                    Finding(
                        .malformedHeaderField, at: text.offset(of: blank), part: partIndex,
                        "The header field \(text.text(start..<blank)) has no colon.", advice: problem.advice,
                        edits: [text.edit(blank..<blank, with: [.colon])]))
                text.replace(blank..<blank, with: [.colon])
                return true
            }
            note(problem)
            guard start < end else { return false }
            text.replace(start..<end, with: [])
            return true
        }
        findings.append(
            Finding(
                .blankBeforeColon, at: text.offset(of: index), length: colon - index, part: partIndex,
                "There is a blank between \(text.text(start..<index)) and its colon.",
                edits: [text.edit(index..<colon, with: [])]))
        text.replace(index..<colon, with: [])
        return true
    }

    /// The index at which the colon of a well-known field is missing; `nil` if the line begins with no such field.
    private func missingColon(from start: Int, to end: Int) -> Int? {
        let name = text.bytes[start..<end].map { $0.asciiLowercased }
        let isKnown = ["content-disposition", "content-type"].contains { name.elementsEqual($0.utf8) }
        return isKnown && end < text.bytes.count && text.bytes[end].isBlank ? end : nil
    }

    /// Replaces the Content-Disposition by its corrected value.
    private mutating func fixDisposition(_ problem: FormProblem, isCertain: Bool) -> Bool {
        guard let field = text.field("content-disposition") else { return note(problem) }
        let bytes = text.unfoldedBytes
        let reading = DispositionReading(bytes, in: field.value)
        let fixed = reading.corrected(bytes)
        guard !reading.parameters.isEmpty, !fixed.elementsEqual(text.bytes[field.value]) else { return note(problem) }
        let isCertain = isCertain && reading.parameter("name") != nil && reading.isCertain(bytes)
        let edits = isCertain ? [text.edit(field.value, with: fixed)] : nil
        findings.append(finding(problem, reading, edits))
        text.replace(field.value, with: fixed)
        return true
    }

    private func finding(_ problem: FormProblem, _ reading: DispositionReading, _ edits: [Edit]?) -> Finding {
        let faulty = reading.parameters.first { $0.mistake != nil }
        let lacksSemicolon = faulty?.mistake == .comma || faulty?.mistake == .noSemicolon
        let isAboutParameters =
            problem.code == .malformedParameter || (problem.code == .dispositionNotFormData && lacksSemicolon)
        if isAboutParameters, let faulty, let mistake = faulty.mistake {
            let names = reading.parameters.filter { $0.mistake == mistake }.map { $0.name }
            let (code, message, advice): (FormProblem.Code, String, String?) =
                switch mistake {
                case .unescapedQuote:
                    (.unescapedQuote, "The value of \(faulty.name) holds a quote that ends it too early.", nil)
                case .unquoted:
                    (
                        .unquotedValue,
                        "The value of \(faulty.name) has blanks or quotes in it, and no quotes around it.", nil
                    )
                case .unclosed:
                    (.malformedParameter, "The quoted value of \(faulty.name) is not closed.", problem.advice)
                case .blanksAroundEquals:
                    (
                        .malformedParameter,
                        "There are blanks around the equals sign of \(names.joined(separator: " and of ")), which RFC "
                            + "9110 §5.6.6 does not allow.",
                        "Write \(faulty.name)=\"…\", with no blank before or after the equals sign."
                    )
                case .colon:
                    (
                        .malformedParameter, "\(faulty.name) is followed by a colon instead of an equals sign.",
                        "Write \(faulty.name)=\"…\"."
                    )
                case .comma:
                    (
                        .malformedParameter, "There is a comma before \(faulty.name) instead of a semicolon.",
                        "Write a semicolon before \(faulty.name)."
                    )
                case .noSemicolon:
                    (
                        .malformedParameter, "The semicolon before \(faulty.name) is missing.",
                        "Write a semicolon before \(faulty.name)."
                    )
                }
            return Finding(
                code, at: text.offset(of: faulty.mark.lowerBound), length: faulty.mark.count, part: partIndex, message,
                advice: advice, edits: edits)
        }
        return Finding(
            problem.code, at: text.offset(of: Int(clamping: problem.offset)), part: partIndex, problem.message,
            advice: problem.advice, edits: edits)
    }
}
