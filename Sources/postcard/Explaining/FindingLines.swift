import PostcardDoctor
import PostcardForm

/// A root cause on the screen, with the others of its kind and what follows from it folded under it.
struct FindingLines {
    private let finding: Finding
    /// Others of the same kind.
    private let others: [Finding]
    private let parts: [Explanation.Part]
    private let columns: Int
    private let style: TextStyle

    /// - Parameter group: Findings of one kind, of which the first is shown in full.
    init(_ group: [Finding], parts: [Explanation.Part], columns: Int, style: TextStyle) {
        finding = group[0]
        others = Array(group.dropFirst())
        self.parts = parts
        self.columns = columns
        self.style = style
    }

    var all: [String] {
        var lines = title
        let excerpt = ExcerptLines(finding, columns: columns, style: style)
        if finding.place == .body || finding.offset > 0 { lines.append("  at \(Self.place(finding))\(partName)") }
        lines += excerpt?.all ?? []
        lines += labelled("why", finding.reason, .heading)
        lines += labelled("fix", finding.fix, .mend)
        if let swift = finding.swift { lines += code(swift) }
        lines += folded
        return lines
    }

    private var title: [String] {
        let severity = "\(finding.severity.rawValue)[\(finding.code)]:"
        var lines = WordWrap.lines(
            Self.visible(finding.message), columns: columns, first: severity + " ", rest: "  ")
        let role = finding.severity == .error ? TextStyle.Role.error : .warning
        lines = lines.enumerated().map { index, line in
            index == 0
                ? style(severity, role) + style(String(line.dropFirst(severity.count)), .heading)
                : style(line, .heading)
        }
        return lines
    }

    private var partName: String {
        guard let index = finding.partIndex, parts.indices.contains(index), !parts[index].name.isEmpty else {
            return ""
        }
        return " (" + DisplayWidth.cut(Self.visible(parts[index].filename ?? parts[index].name), to: 30) + ")"
    }

    static func place(_ finding: Finding) -> String {
        let part = finding.partIndex.map { ", part \($0)" } ?? ""
        return "byte \(finding.offset) of the \(finding.place.rawValue)\(part)"
    }

    private func labelled(_ label: String, _ text: String, _ role: TextStyle.Role) -> [String] {
        let indent = String(repeating: " ", count: label.count + 4)
        var lines = WordWrap.lines(Self.visible(text), columns: columns, first: indent, rest: indent)
        lines[0] = "  " + style(label + ":", role) + " " + lines[0].dropFirst(indent.count)
        return lines
    }

    private func code(_ swift: String) -> [String] {
        let lines = swift.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return ["  " + style("Swift:", .mend)] + lines.map { "    " + $0 }
    }

    // MARK: - What is folded

    private var folded: [String] {
        var lines: [String] = []
        let same = others + finding.consequences.filter { $0.code == finding.code }
        if !same.isEmpty { lines += repeated("again", same) }
        var codes: [FindingCode] = []
        for consequence in finding.consequences where consequence.code != finding.code {
            if !codes.contains(consequence.code) { codes.append(consequence.code) }
        }
        for code in codes {
            let group = finding.consequences.filter { $0.code == code }
            lines += repeated("so", group, first: "\(Self.visible(group[0].message)) [\(code)]")
        }
        let hidden = finding.consequenceCount - finding.consequences.count
        if hidden > 0 { lines.append(style("  and \(hidden) more that follow from it", .faint)) }
        return lines
    }

    /// Findings of one kind as one sentence with their places.
    private func repeated(_ label: String, _ group: [Finding], first: String? = nil) -> [String] {
        let shown = group.prefix(6).map { finding in
            "byte \(finding.offset)" + (finding.partIndex.map { " (part \($0))" } ?? "")
        }
        var places = shown.joined(separator: ", ")
        if group.count > shown.count { places += " and \(group.count - shown.count) more places" }
        let text = [first, "at " + places].compactMap { $0 }.joined(separator: " ")
        return labelled(label, text, .faint)
    }

    private static func visible(_ text: String) -> String {
        VisibleBytes(Array(text.utf8)[...]).cells.map(\.text).joined()
    }
}
