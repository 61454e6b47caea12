import PostcardDoctor

/// What `postcard explain` found, and what it read.
struct ExplanationReport: Encodable {
    let explanation: Explanation
    /// What the input was; `nil` for a body alone.
    let format: RequestInput.Format?
    /// What the input cannot tell of the request.
    let remarks: [String]
    /// Where `--fix` asked for a mended request, what became of it.
    var fix: Fix?

    /// What became of a mended request.
    enum Fix {
        case written(MendedFile.Outcome)
        /// Nothing can be mended without asking the sender.
        case nothingCertain
        case failed(CommandFailure)
    }

    private enum CodingKeys: String, CodingKey {
        case format, remarks, mended, unmended
    }

    func encode(to encoder: any Encoder) throws {
        try explanation.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(format?.rawValue ?? "body", forKey: .format)
        try container.encode(remarks, forKey: .remarks)
        guard let fix else { return }
        var mended: [Finding] = []
        if case .written(let outcome) = fix { mended = outcome.mended }
        try container.encode(mended.map(\.code.rawValue), forKey: .mended)
        let left = mended.isEmpty ? explanation.findings : explanation.unmended
        try container.encode(left.map(\.code.rawValue), forKey: .unmended)
    }

    /// The screen, of standard output unless other columns are given.
    func screen(columns: Int, style: TextStyle) -> [String] {
        let columns = ExplanationScreen.columns(of: columns)
        let lines = ExplanationScreen(
            explanation: explanation, remarks: remarks, columns: columns, style: style
        ).lines
        return switch fix {
        case nil, .failed: lines
        case .written(let outcome): lines + outcome.lines(columns: columns, style: style)
        case .nothingCertain:
            lines + ["", style("Nothing is mended, because only its sender can know what was meant.", .warning)]
        }
    }
}
