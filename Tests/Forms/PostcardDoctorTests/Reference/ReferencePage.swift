import PostcardDoctor
import PostcardForm

/// The page of the documentation that lists every code, made from the codes themselves.
struct ReferencePage {
    var text: String {
        var lines = [
            "# Problems and their fixes", "",
            "Every code that an explanation can contain: the usual cause, an example, and what to write instead.", "",
            "## Overview", "",
            "An error means that most servers refuse the form, or accept it and lose or alter a part, bytes of the content "
                + "or a name. A warning means that `postcard serve` accepts the form and keeps all of its bytes, but some "
                + "other servers refuse it, replace bytes that are not UTF-8, or read something else than was meant. In the "
                + "examples, `\\r` and `\\n` are the bytes CR and LF. A receiver's own limits and rules are not listed "
                + "here: see ``PostcardForm/FormProblem/Code``.", "",
            "`make reference` writes this page from the entries in the code.", "",
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
        lines += ["Fix: \(prose(code.advice))", ""]
        if let swift = code.swift { lines += ["```swift", swift, "```", ""] }
        return lines
    }

    /// A sentence with the characters escaped that Markdown would interpret.
    private static func prose(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("*", with: "\\*").replacing("<", with: "\\<")
            .replacing("_", with: "\\_")
    }
}
