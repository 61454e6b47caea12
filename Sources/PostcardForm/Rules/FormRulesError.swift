#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Why rules are no rules: a key that does not exist, a value of another type, a rule that nothing can meet.
///
/// It is about whoever wrote the rules. What breaks a rule is a ``FormProblem``.
public struct FormRulesError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Where in the rules, from the outside in: `["files", "petImage", "types"]`.
    public let path: [String]

    /// What is wrong, in a sentence.
    public let message: String

    /// What to write instead, in a sentence.
    public let fix: String

    init(_ message: String, at path: [String], fix: String) {
        self.path = path
        self.message = message
        self.fix = fix
    }

    /// The same, further inside.
    func within(_ path: [String]) -> FormRulesError {
        FormRulesError(message, at: path + self.path, fix: fix)
    }

    public var description: String {
        let place = path.isEmpty ? "" : path.joined(separator: ".") + ": "
        return "\(place)\(message) \(fix)"
    }
}

extension FormRulesError: LocalizedError {
    public var errorDescription: String? { message }
    public var recoverySuggestion: String? { fix }
}
