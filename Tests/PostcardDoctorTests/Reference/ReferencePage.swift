import PostcardDoctor
import PostcardForm

/// The page of the documentation that lists every code, made from the table that the code itself uses.
struct ReferencePage {
    var text: String {
        var lines = [
            "# Problems and their fixes", "",
            "Every code that an explanation can hold: how the problem comes about, what it looks like, and what to "
                + "write instead.", "",
            "## Overview", "",
            "With an error, most servers refuse the form, or accept it and lose or alter something of it: a part, bytes of "
                + "the content, a name. With a warning, everything arrives as it was sent; some servers refuse it, or "
                + "something else may have been meant. In the examples `\\r` and `\\n` are the bytes CR and LF. The limits and rules that one receiver has "
                + "for its forms are not among these: they are told by ``PostcardForm/FormProblem/Code``.", "",
            "This page is made from the table in the code, by `make reference`.", "",
        ]
        for topic in FormProblem.Code.Topic.allCases where topic != .receiver {
            lines += ["## \(Self.title(topic))", ""]
            for code in FormProblem.Code.explained where code.topic == topic { lines += Self.section(code) }
        }
        return lines.dropLast().joined(separator: "\n") + "\n"
    }

    private static func title(_ topic: FormProblem.Code.Topic) -> String {
        switch topic {
        case .head: "The request's head"
        case .delimiters: "The delimiters"
        case .parts: "The parts"
        case .whole: "The form as a whole"
        case .receiver: "Limits and rules of a receiver"
        }
    }

    private static func section(_ code: FormProblem.Code) -> [String] {
        var lines = ["### \(code): \(code.title)", ""]
        lines += ["**\(code.severity == .error ? "Error" : "Warning").** \(prose(code.cause))", ""]
        if !code.example.isEmpty { lines += ["```", code.example, "```", ""] }
        lines += ["Fix: \(prose(code.fix))", ""]
        if let swift = code.swift { lines += ["```swift", swift, "```", ""] }
        return lines
    }

    /// A sentence whose characters Markdown must not take for its own.
    private static func prose(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("*", with: "\\*").replacing("<", with: "\\<")
            .replacing("_", with: "\\_")
    }
}
