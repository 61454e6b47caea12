import PostcardForm

/// What the reference says of a code: the page in the documentation is made of these.
public struct FindingReference: Sendable, Hashable {
    /// What a problem is about.
    public enum Topic: String, Sendable, Hashable, CaseIterable {
        case head, delimiters, parts, whole
    }

    /// What it is about.
    public let topic: Topic

    /// The problem in a few words.
    public let title: String

    /// How it comes about and why servers care, in a sentence or two.
    public let cause: String

    /// Bytes that have the problem; `\r`, `\n` and what is not ASCII are written as Swift writes them.
    public let example: String

    /// What to write instead, in a sentence.
    public let fix: String

    /// The Swift that gets it right, where that helps.
    public let swift: String?

    init(_ topic: Topic, _ title: String, cause: String, example: String, fix: String, swift: String? = nil) {
        self.topic = topic
        self.title = title
        self.cause = cause
        self.example = example
        self.fix = fix
        self.swift = swift
    }

    /// A code that no examination finds: a limit or a rule of one receiver.
    static func ofReceivers(_ code: FormProblem.Code) -> FindingReference {
        FindingReference(
            .whole, code.rawValue, cause: "A limit or a rule of this receiver.", example: "",
            fix: "Ask the receiver for its rules.")
    }
}
