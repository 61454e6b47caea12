import PostcardDoctor
import PostcardForm

/// A root cause on the screen, with the others of its kind and what follows from it folded under it.
struct FindingLines {
    private let group: FindingGroup
    private let parts: [Explanation.Part]
    private let columns: Int
    private let style: TextStyle
    private let isTitled: Bool

    /// - Parameters:
    ///   - group: Findings of one kind, of which the first is shown in full.
    ///   - isTitled: Whether it says what is wrong; `false` where that was said above.
    init(_ group: FindingGroup, parts: [Explanation.Part], columns: Int, style: TextStyle, isTitled: Bool = true) {
        self.group = group
        self.parts = parts
        self.columns = columns
        self.style = style
        self.isTitled = isTitled
    }

    private var finding: Finding { group.finding }

    /// A byte of a request: its bytes need to be shown only once.
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

    /// Where the bytes were shown before.
    var withoutExcerpt: [String] { lines(excerpt: []) }

    private func lines(excerpt: [String]) -> [String] {
        var lines = title
        if finding.place == .body || finding.offset > 0 { lines.append("  at \(Self.place(finding))\(partName)") }
        lines += excerpt
        lines += labelled("why", finding.reason, .heading)
        lines += labelled("fix", finding.fix, .mend)
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
        return " (" + DisplayWidth.cut(VisibleBytes.text(name), to: 30) + ")"
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
        return ["  " + style("Swift:", .mend)] + lines.map { "    " + $0 }
    }

    /// A line of code that is too long: its comment goes before it, and then it is broken behind a comma.
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

    /// Findings of one kind as one sentence with their places.
    private func repeated(_ label: String, _ places: FindingGroup.Places, first: String? = nil) -> [String] {
        let shown = places.first
        // The part is named once, behind the last of its places in a row.
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
