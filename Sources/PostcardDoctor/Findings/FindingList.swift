import PostcardForm

/// Collects findings: what repeats a problem, or follows from another, goes under the first.
struct FindingList: Sendable {
    private(set) var roots: [Finding] = []
    private(set) var omitted = 0

    /// What mends all that is certain, in the order in which it was found.
    private(set) var edits: [Edit] = []
    private(set) var areEditsComplete = true

    private var rootByCode: [FindingCode: Int] = [:]

    /// A form made of oddities must not fill the memory with what is said about them.
    static let maximumRoots = 1000
    static let maximumEdits = 100_000

    /// - Parameter cause: The code whose problem brings this one about; it goes under that where it was found.
    mutating func add(_ finding: Finding, under cause: FindingCode? = nil) {
        if let edits = finding.edits {
            if self.edits.count + edits.count <= Self.maximumEdits {
                self.edits += edits
            } else {
                areEditsComplete = false
            }
        }
        if let root = cause.flatMap({ rootByCode[$0] }) ?? rootByCode[finding.code] {
            roots[root].consequenceCount += 1
            if roots[root].consequences.count < Finding.maximumConsequences {
                roots[root].consequences.append(finding)
            }
            return
        }
        guard roots.count < Self.maximumRoots else {
            omitted += 1
            return
        }
        rootByCode[finding.code] = roots.count
        roots.append(finding)
    }

    func holds(_ code: FindingCode) -> Bool { rootByCode[code] != nil }

    var holdsError: Bool { roots.contains { $0.severity == .error } }

    /// Errors before warnings, the head before the body, how the body was sent before what it is, and then as they
    /// stand in the request.
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
    /// Whether it is about how the body was sent: what is wrong in it may only follow.
    fileprivate var isAboutFraming: Bool {
        code == .form(.contentLengthMismatch) || code == .form(.malformedChunk)
    }
}
