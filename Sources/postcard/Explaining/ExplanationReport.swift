import PostcardDoctor

/// What `postcard explain` found, and what it read.
struct ExplanationReport: Encodable {
    let explanation: Explanation
    /// What the input was; `nil` for a body alone.
    let format: RequestInput.Format?
    /// What the input cannot tell of the request.
    let remarks: [String]

    private enum CodingKeys: String, CodingKey {
        case format, remarks
    }

    func encode(to encoder: any Encoder) throws {
        try explanation.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(format?.rawValue ?? "body", forKey: .format)
        try container.encode(remarks, forKey: .remarks)
    }

    /// The screen, of standard output unless other columns are given.
    func screen(columns: Int, style: TextStyle) -> [String] {
        ExplanationScreen(
            explanation: explanation, remarks: remarks, columns: ExplanationScreen.columns(of: columns), style: style
        ).lines
    }
}
