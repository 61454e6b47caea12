import PostcardForm

/// Collects findings: one that repeats another, or follows from it, becomes its consequence.
struct FindingList: Sendable {
    private(set) var roots: [Finding] = []
    private(set) var omitted = 0

    /// The edits that are certain, in the order in which they were found.
    private(set) var edits: [Edit] = []
    private(set) var areEditsComplete = true

    private var rootByCode: [FormProblem.Code: Int] = [:]

    /// A form full of problems must not fill the memory with findings.
    static let maximumRoots = 1000
    static let maximumEdits = 100_000

    /// - Parameter cause: The code of the finding that causes this one, which becomes its consequence.
    mutating func add(_ finding: Finding, under cause: FormProblem.Code? = nil) {
        if let edits = finding.edits {
            if self.edits.count + edits.count <= Self.maximumEdits {
                self.edits += edits
            } else {
                areEditsComplete = false
            }
        }
        // An error does not become a warning's consequence, where it would not count as an error.
        if let root = cause.flatMap({ rootByCode[$0] }), !finding.outweighs(roots[root]) {
            return roots[root].append(finding)
        }
        if let root = rootByCode[finding.code] {
            return finding.outweighs(roots[root]) ? replace(root, by: finding) : roots[root].append(finding)
        }
        guard roots.count < Self.maximumRoots else {
            omitted += 1
            return
        }
        rootByCode[finding.code] = roots.count
        roots.append(finding)
    }

    /// Replaces a root with a more serious finding, and makes the root its consequence.
    private mutating func replace(_ root: Int, by finding: Finding) {
        var finding = finding
        var former = roots[root]
        let consequences = former.consequences
        finding.consequenceCount = former.consequenceCount + 1
        former.consequences = []
        former.consequenceCount = 0
        finding.consequences = Array(([former] + consequences).prefix(Finding.maximumConsequences))
        roots[root] = finding
    }

    /// Makes a finding the consequence of a cause that was found later.
    mutating func subordinate(_ code: FormProblem.Code, under causes: [FormProblem.Code]) {
        guard let index = rootByCode[code], let cause = causes.compactMap({ rootByCode[$0] }).first,
            !roots[index].outweighs(roots[cause])
        else { return }
        var finding = roots[index]
        let consequences = finding.consequences
        let hidden = finding.consequenceCount - consequences.count
        finding.consequences = []
        finding.consequenceCount = 0
        for each in [finding] + consequences { roots[cause].append(each) }
        roots[cause].consequenceCount += hidden
        roots.remove(at: index)
        rootByCode = Dictionary(uniqueKeysWithValues: roots.enumerated().map { ($0.element.code, $0.offset) })
    }

    func holds(_ code: FormProblem.Code) -> Bool { rootByCode[code] != nil }

    var holdsError: Bool { roots.contains { $0.severity == .error } }

    /// Errors before warnings, the head before the body, how the body was sent before its content, and otherwise in the
    /// order of the request.
    var sorted: [Finding] {
        roots.enumerated().sorted { left, right in
            let (one, other) = (left.element, right.element)
            if one.severity != other.severity { return one.severity == .error }
            if one.place != other.place { return one.place == .head }
            if one.isAboutFraming != other.isAboutFraming { return one.isAboutFraming }
            return one.offset == other.offset ? left.offset < right.offset : one.offset < other.offset
        }.map(\.element)
    }
}

extension Finding {
    fileprivate func outweighs(_ other: Finding) -> Bool { severity == .error && other.severity != .error }

    /// Adds a consequence.
    mutating func append(_ consequence: Finding) {
        consequenceCount += 1
        if consequences.count < Self.maximumConsequences { consequences.append(consequence) }
    }

    /// Whether the finding is about how the body was sent, which may be the cause of what is wrong in the body.
    fileprivate var isAboutFraming: Bool {
        code == .contentLengthMismatch || code == .malformedChunk
    }
}
