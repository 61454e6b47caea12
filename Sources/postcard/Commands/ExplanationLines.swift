import PostcardDoctor
import PostcardForm

/// An explanation as a person reads it.
struct ExplanationLines {
    private let explanation: Explanation

    init(_ explanation: Explanation) {
        self.explanation = explanation
    }

    var all: [String] {
        var lines: [String] = []
        if let boundary = explanation.boundary { lines.append("multipart/form-data; boundary=\(boundary)") }
        lines += explanation.parts.enumerated().map { index, part in Self.line(for: part, at: index) }
        lines += explanation.problems.flatMap(Self.lines)
        lines.append(verdict)
        return lines
    }

    private static func line(for part: Explanation.Part, at index: Int) -> String {
        var words = ["part \(index):", part.name.debugDescription]
        if let filename = part.filename { words.append("file \(filename.debugDescription)") }
        if let contentType = part.contentType { words.append(contentType) }
        words.append("\(part.size) \(part.size == 1 ? "byte" : "bytes") at \(part.offset)")
        return words.joined(separator: "  ")
    }

    private static func lines(for problem: Finding) -> [String] {
        let place = problem.partIndex.map { ", part \($0)" } ?? ""
        return [
            "\(problem.severity.rawValue): \(problem.message)",
            "  at byte \(problem.offset)\(place) (\(problem.code))",
            "  fix: \(problem.fix)",
        ]
    }

    private var verdict: String {
        let errors = explanation.problems.count { $0.severity == .error }
        if errors > 0 { return "The form is not valid." }
        let warnings = explanation.problems.count
        return warnings > 0
            ? "The form is valid; \(warnings == 1 ? "one warning" : "\(warnings) warnings")." : "The form is valid."
    }
}
