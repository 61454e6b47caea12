import PostcardDoctor
import PostcardForm

/// An explanation as a person reads it: the verdict, a map of the body, and each problem as a compiler shows one.
struct ExplanationScreen {
    let explanation: Explanation
    /// What the input cannot tell of the request.
    var remarks: [String] = []
    let columns: Int
    let style: TextStyle

    /// Where the lines end; what is narrower has no room for a caret, and what is wider is hard to read.
    static func columns(of terminal: Int) -> Int { min(max(terminal, 60), 120) }

    var lines: [String] {
        var lines = verdict
        for remark in remarks { lines += WordWrap.lines(remark, columns: columns, first: "note: ", rest: "      ") }
        if explanation.boundary != nil || !explanation.parts.isEmpty { lines.append("") }
        if let boundary = explanation.boundary {
            let value = VisibleBytes.text(boundary)
            lines += [DisplayWidth.cut("multipart/form-data; boundary=\(value)", to: columns)]
        }
        lines +=
            PartTable(
                explanation.parts, count: explanation.partCount, columns: columns, style: style
            ).all
        var shown: Set<FindingLines.Spot> = []
        for group in FindingGroup.groups(of: explanation.findings) {
            let isShown = !shown.insert(FindingLines.Spot(group.finding)).inserted
            let finding = FindingLines(
                group, parts: explanation.parts, columns: columns, style: style, isTitled: !isVerdict)
            lines.append("")
            lines += isShown ? finding.withoutExcerpt : finding.all
        }
        if explanation.omittedFindings > 0 { lines += ["", "\(explanation.omittedFindings) more are not shown."] }
        return lines
    }

    /// Whether the one thing to say is all there is: the input is no request, or nothing of a form.
    private var isVerdict: Bool {
        guard explanation.parts.isEmpty, let finding = explanation.findings.first, explanation.findings.count == 1
        else { return false }
        return explanation.boundary == nil || finding.code == .doctor(.bodyNotRecorded)
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
