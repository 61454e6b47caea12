import Foundation

/// A change of a machine's state, by the names of the cases.
package struct StateChange: Hashable, Sendable, CustomStringConvertible {
    let before: String
    let event: String
    let after: String

    package var description: String { "\(before), \(event): \(after)" }

    /// - Parameters: Cases of enums, whose associated values are left out, or their names.
    package init(_ before: Any, _ event: Any, _ after: Any) {
        self.before = Self.name(before)
        self.event = Self.name(event)
        self.after = Self.name(after)
    }

    private static func name(_ value: Any) -> String { Mirror(reflecting: value).children.first?.label ?? "\(value)" }

    /// The changes in a table of a documentation comment: a column of states, one of events and one of the next states.
    /// A row without a state belongs to the state of the row before. Each event of a row leads to each of its states.
    package static func table(inDocumentationOf file: String) throws -> Set<StateChange> {
        let source = try String(contentsOf: Repository.url(file), encoding: .utf8)
        var state = ""
        var changes: Set<StateChange> = []
        for line in source.split(separator: "\n") where line.hasPrefix("/// |") {
            let cells = line.split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.matches(of: /`(\w+)`/).map { String($0.1) } }
            guard cells.count == 5 else { continue }
            state = cells[1].first ?? state
            for event in cells[2] { for next in cells[3] { changes.insert(StateChange(state, event, next)) } }
        }
        return changes
    }
}
