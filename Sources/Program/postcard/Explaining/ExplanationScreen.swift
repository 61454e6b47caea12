import PostcardDoctor
import PostcardForm

/// The result of `postcard explain`: facts about the input, and the findings.
struct ExplanationReport: Encodable {
    let explanation: Explanation
    /// The input's format; `nil` for a body without a request.
    let format: InputExamination.Format?
    /// Notes about parts of the request that the input lacks.
    let remarks: [String]
    /// The result of `--fix`; `nil` without the option.
    var fix: Fix?
    /// The path of the folder that `--edit` wrote; `nil` without the option.
    var editable: String?

    enum Fix {
        case written(FixedFile.Written)
        /// Nothing was written, because only the sender can fix the problems.
        case nothingCertain
        case failed(CommandFailure)
    }

    private enum CodingKeys: String, CodingKey {
        case format, remarks, fixed, curl, editable
        case left = "unfixed"
    }

    func encode(to encoder: any Encoder) throws {
        try explanation.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(format?.rawValue ?? "body", forKey: .format)
        try container.encode(remarks, forKey: .remarks)
        try container.encode(explanation.curl?.line, forKey: .curl)
        try container.encodeIfPresent(editable, forKey: .editable)
        guard let fix else { return }
        var (fixed, left) = ([Finding](), explanation.findings)
        if case .written(let file) = fix, !file.fixed.isEmpty { (fixed, left) = (file.fixed, file.left) }
        try container.encode(fixed.map(\.code.rawValue), forKey: .fixed)
        try container.encode(left.map(\.code.rawValue), forKey: .left)
    }

    func screen(columns: Int, style: TextStyle) -> [String] {
        let columns = ExplanationScreen.columns(of: columns)
        var lines = ExplanationScreen(
            explanation: explanation, remarks: remarks, columns: columns, style: style
        ).lines
        if let editable {
            lines += ["", style("Written to \(VisibleBytes.text(editable)), to be edited", .good)]
            lines.append("To send it again, run there: postcard send --metadata as-is --config \(EditableForm.name)")
        }
        return switch fix {
        case nil, .failed: lines
        case .written(let file): lines + file.lines(columns: columns, style: style)
        case .nothingCertain:
            lines + ["", style("Nothing is fixed, because only its sender can know what was meant.", .warning)]
        }
    }
}

/// An explanation for people: the verdict, a map of the body, and each problem as in a compiler.
struct ExplanationScreen {
    let explanation: Explanation
    /// Notes about parts of the request that the input lacks.
    var remarks: [String] = []
    let columns: Int
    let style: TextStyle

    /// The width of the lines in columns. Narrower lines have no space for a caret, and wider ones are hard to read.
    static func columns(of terminal: Int) -> Int { min(max(terminal, 60), 120) }

    var lines: [String] {
        var lines = verdict
        for remark in remarks { lines += WordWrap.lines(remark, columns: columns, first: "note: ", rest: "      ") }
        if explanation.boundary != nil || !explanation.parts.isEmpty { lines.append("") }
        if let boundary = explanation.boundary {
            let value = VisibleBytes.text(short: boundary)
            lines += [DisplayWidth.cut("multipart/form-data; boundary=\(value)", to: columns)]
        }
        lines +=
            PartTable(parts: explanation.parts, count: explanation.partCount, columns: columns, style: style).all
        var shown: Set<FindingLines.Spot> = []
        for group in FindingGroup.groups(of: explanation.findings) {
            let isShown = !shown.insert(FindingLines.Spot(group.finding)).inserted
            let finding = FindingLines(
                group: group, parts: explanation.parts, columns: columns, style: style, isTitled: !isVerdict)
            lines.append("")
            lines += isShown ? finding.withoutExcerpt : finding.all
        }
        if explanation.omittedFindings > 0 { lines += ["", "\(explanation.omittedFindings) more are not shown."] }
        // This line is not wrapped, so that it can be copied.
        if !explanation.isValid, let curl = explanation.curl { lines += ["", "With curl, it is: \(curl.line)"] }
        return lines
    }

    /// Whether the only finding is the verdict, because the input is not a request or contains no part of a form.
    private var isVerdict: Bool {
        guard explanation.parts.isEmpty, let finding = explanation.findings.first, explanation.findings.count == 1
        else { return false }
        return explanation.boundary == nil || finding.code == .bodyNotRecorded
    }

    private var verdict: [String] {
        if isVerdict, let finding = explanation.findings.first {
            return WordWrap.lines(VisibleBytes.text(finding.message), columns: columns, first: "✗ ", rest: "  ").map {
                style($0, .error)
            }
        }
        return [counts]
    }

    private var counts: String {
        let errors = explanation.findings.count { $0.severity == .error }
        let warnings = explanation.findings.count - errors + explanation.omittedFindings
        let counts = [Self.count(errors, "error"), Self.count(warnings, "warning")].compactMap { $0 }
            .joined(separator: " and ")
        if errors > 0 {
            let what =
                explanation.parts.isEmpty && explanation.boundary == nil
                ? "No form can be read from this" : "The form is not valid"
            return style("✗ \(what): \(counts).", .error)
        }
        if warnings > 0 { return style("✓ The form is valid, with \(counts).", .warning) }
        return style("✓ The form is valid.", .good)
    }

    static func count(_ number: Int, _ noun: String) -> String? {
        switch number {
        case 0: nil
        case 1: "1 \(noun)"
        default: "\(number) \(noun)s"
        }
    }
}

/// Shows a root cause, then other findings of its kind and its consequences.
struct FindingLines {
    /// Findings of one kind, of which the first is shown in full.
    let group: FindingGroup
    let parts: [Explanation.Part]
    let columns: Int
    let style: TextStyle
    /// Whether the finding's message is shown: `false` if the verdict already shows it.
    let isTitled: Bool

    private var finding: Finding { group.finding }

    /// An offset in a request. Its surrounding bytes are shown only once.
    struct Spot: Hashable {
        let place: Finding.Place
        let offset: Int64

        init(_ finding: Finding) {
            place = finding.place
            offset = finding.offset
        }
    }

    var all: [String] {
        lines(excerpt: ExcerptLines(finding, columns: columns, style: style)?.all ?? [])
    }

    /// The lines without the bytes, if the bytes were already shown.
    var withoutExcerpt: [String] { lines(excerpt: []) }

    private func lines(excerpt: [String]) -> [String] {
        var lines = title
        if finding.place == .body || finding.offset > 0 { lines.append("  at \(Self.place(finding))\(partName)") }
        lines += excerpt
        lines += labelled("why", finding.reason, .heading)
        lines += labelled("fix", finding.advice, .fix)
        if let swift = finding.swift { lines += code(swift) }
        lines += folded
        return lines
    }

    private var title: [String] {
        let severity = "\(finding.severity.rawValue)[\(finding.code)]" + (isTitled ? ":" : "")
        guard isTitled else { return [style(severity, finding.severity == .error ? .error : .warning)] }
        var lines = WordWrap.lines(
            VisibleBytes.text(finding.message), columns: columns, first: severity + " ", rest: "  ")
        let role = finding.severity == .error ? TextStyle.Role.error : .warning
        lines = lines.enumerated().map { index, line in
            index == 0
                ? style(severity, role) + style(String(line.dropFirst(severity.count)), .heading)
                : style(line, .heading)
        }
        return lines
    }

    private var partName: String {
        guard let index = finding.partIndex, parts.indices.contains(index) else { return "" }
        let names = [parts[index].filename ?? "", parts[index].name]
        guard let name = names.first(where: { !$0.isEmpty }) else { return "" }
        return " (" + DisplayWidth.cut(VisibleBytes.text(short: name), to: 30) + ")"
    }

    static func place(_ finding: Finding) -> String {
        let part = finding.partIndex.map { ", part \($0)" } ?? ""
        return "byte \(finding.offset) of the \(finding.place.rawValue)\(part)"
    }

    private func labelled(_ label: String, _ text: String, _ role: TextStyle.Role) -> [String] {
        let indent = String(repeating: " ", count: label.count + 4)
        var lines = WordWrap.lines(VisibleBytes.text(text), columns: columns, first: indent, rest: indent)
        lines[0] = "  " + style(label + ":", role) + " " + lines[0].dropFirst(indent.count)
        return lines
    }

    private func code(_ swift: String) -> [String] {
        let lines = swift.split(separator: "\n", omittingEmptySubsequences: false).flatMap { line in
            Self.broken(String(line), columns: columns - 4)
        }
        return ["  " + style("Swift:", .fix)] + lines.map { "    " + $0 }
    }

    /// Breaks a long line of code after commas, and moves its comment to the line before it.
    private static func broken(_ line: String, columns: Int) -> [String] {
        guard DisplayWidth.of(line) > columns else { return [line] }
        if let comment = line.firstRange(of: "  // ") {
            let words = String(line[comment.upperBound...])
            return WordWrap.lines(words, columns: columns, first: "// ", rest: "// ")
                + broken(String(line[..<comment.lowerBound]), columns: columns)
        }
        guard let comma = line.prefix(columns).ranges(of: ", ").last else { return [line] }
        return [String(line[..<comma.upperBound].dropLast()), "    " + line[comma.upperBound...]]
    }

    // MARK: - What is folded

    private var folded: [String] {
        var lines: [String] = []
        if group.repetitions.count > 0 { lines += repeated("also", group.repetitions) }
        for (first, places) in group.consequences {
            lines += repeated("then", places, first: "\(VisibleBytes.text(first.message)) [\(first.code)]")
        }
        let more = group.otherConsequences
        if more > 0 { lines.append(style("  and \(more) more that follow from it", .faint)) }
        return lines
    }

    /// Describes several findings of one kind in a sentence, with their offsets in the request.
    private func repeated(_ label: String, _ places: FindingGroup.Places, first: String? = nil) -> [String] {
        let shown = places.first
        // Of several places in a row in the same part, only the last names the part.
        let offsets = shown.indices.map { index in
            let part = shown[index].partIndex
            let isLast = index + 1 == shown.count || shown[index + 1].partIndex != part
            return String(shown[index].offset) + (isLast ? part.map { " (part \($0))" } ?? "" : "")
        }
        var words = (shown.count == 1 ? "byte " : "bytes ") + offsets.joined(separator: ", ")
        let more = places.count - shown.count
        if more > 0 { words += " and \(more) more \(more == 1 ? "place" : "places")" }
        let text = [first, "at " + words].compactMap { $0 }.joined(separator: " ")
        return labelled(label, text, .faint)
    }
}

/// The parts of a form as a table of offset, name, type, size and digest.
struct PartTable {
    let parts: [Explanation.Part]
    /// The number of parts, including those that are not described.
    let count: Int
    let columns: Int
    let style: TextStyle

    private static let maximumRows = 12
    private static let digestDigits = 12

    var all: [String] {
        if parts.isEmpty { return [] }
        let isLong = count > Self.maximumRows
        // If some parts are not described, the last parts are unknown.
        let lastRows = count == parts.count ? 3 : 0
        let heading = ["part", "offset", "name", "filename", "type", "bytes", "sha256"]
        let numbered = parts.enumerated().map { (index: $0.offset, part: $0.element) }
        let shown =
            isLong ? numbered.prefix(Self.maximumRows - 1 - lastRows) + numbered.suffix(lastRows) : numbered[...]
        let rows = [heading] + shown.map { Self.row($0.part, at: $0.index) }
        let widths = fitted(rows)
        var lines = rows.map { row in line(row, widths) }
        lines[0] = style(lines[0], .faint)
        if isLong {
            lines.insert(style("  … \(count - shown.count) more parts …", .faint), at: lines.count - lastRows)
        }
        return lines
    }

    private static func row(_ part: Explanation.Part, at index: Int) -> [String] {
        [
            String(index), String(part.offset), VisibleBytes.text(short: part.name),
            VisibleBytes.text(short: part.filename ?? ""), VisibleBytes.text(short: part.contentType ?? ""),
            String(part.size),
            String(part.sha256.prefix(digestDigits)) + "…",
        ]
    }

    /// The widths of the columns. Text columns divide the remaining width among themselves.
    private func fitted(_ rows: [[String]]) -> [Int] {
        var widths = rows[0].indices.map { column in rows.map { DisplayWidth.of($0[column]) }.max() ?? 0 }
        let texts = 2...4
        var excess = widths.reduce(0, +) + 2 * widths.count - columns
        while excess > 0, let widest = texts.max(by: { widths[$0] < widths[$1] }), widths[widest] > 8 {
            widths[widest] -= 1
            excess -= 1
        }
        return widths
    }

    private func line(_ row: [String], _ widths: [Int]) -> String {
        let numbers: Set = [0, 1, 5]
        var line = "  "
        for (column, text) in row.enumerated() {
            if column > 0 { line += "  " }
            let padding = String(repeating: " ", count: max(widths[column] - DisplayWidth.of(text), 0))
            line += numbers.contains(column) ? padding + text : DisplayWidth.fit(text, to: widths[column])
        }
        return String(line.reversed().drop { $0 == " " }.reversed())
    }
}
