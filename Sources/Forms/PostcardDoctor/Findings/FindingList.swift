package import PostcardForm

/// Collects findings. A finding that repeats another, or follows from another, becomes a consequence of it.
struct FindingList: Sendable {
    private(set) var roots: [Finding] = []
    private(set) var omitted = 0

    private var found: [(code: FormProblem.Code, edit: Edit)] = []
    /// The edits that are certain, in the order of discovery.
    var edits: [Edit] { found.map { $0.edit } }
    private(set) var areEditsComplete = true

    private var rootByCode: [FormProblem.Code: Int] = [:]

    /// The maximum number of root causes, which bounds the memory for a form full of problems.
    static let maximumRoots = 1000
    static let maximumEdits = 100_000

    /// Adds a finding. `cause` is the code of the finding's root cause, if any.
    mutating func add(_ finding: Finding, under cause: FormProblem.Code? = nil) {
        if let edits = finding.edits {
            if found.count + edits.count <= Self.maximumEdits {
                found += edits.map { (finding.code, $0) }
            } else {
                areEditsComplete = false
            }
        }
        // An error must not be hidden as the consequence of a warning.
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

    /// Replaces a root cause with a more serious finding, and makes the former root cause its consequence.
    private mutating func replace(_ root: Int, by finding: Finding) {
        let former = roots[root]
        roots[root] = finding
        for each in former.flattened { roots[root].append(each) }
    }

    /// Makes the findings with a code consequences of a cause that was found later.
    mutating func subordinate(_ code: FormProblem.Code, under causes: [FormProblem.Code]) {
        guard let index = rootByCode[code], let cause = causes.compactMap({ rootByCode[$0] }).first,
            !roots[index].outweighs(roots[cause])
        else { return }
        for each in roots[index].flattened { roots[cause].append(each) }
        roots.remove(at: index)
        rootByCode = Dictionary(uniqueKeysWithValues: roots.enumerated().map { ($0.element.code, $0.offset) })
    }

    /// Changes the severity of a root cause.
    mutating func weigh(_ code: FormProblem.Code, _ severity: FormProblem.Severity) {
        if let root = rootByCode[code] { roots[root] = roots[root].weighing(severity) }
    }

    /// Removes the edits of all findings with a code, because they are no longer certain.
    mutating func leave(_ code: FormProblem.Code) {
        found.removeAll { $0.code == code }
        for index in roots.indices { roots[index].leave(code) }
    }

    func holds(_ code: FormProblem.Code) -> Bool { rootByCode[code] != nil }

    /// Whether edits fix the root cause with a code, and thereby its consequences.
    func fixes(_ code: FormProblem.Code) -> Bool { rootByCode[code].map { roots[$0].edits != nil } ?? false }

    var holdsError: Bool { roots.contains { $0.severity == .error } }

    /// The findings in order: errors before warnings, the head before the body, the framing of the body before its
    /// content, and otherwise by offset.
    var sorted: [Finding] {
        roots.enumerated().sorted { left, right in
            let (one, other) = (left.element, right.element)
            if one.severity != other.severity { return one.severity == .error }
            if one.place != other.place { return one.place == .head }
            if one.isAboutFraming != other.isAboutFraming { return one.isAboutFraming }
            return one.offset == other.offset ? left.offset < right.offset : one.offset < other.offset
        }.map { $0.element }
    }
}

extension Finding {
    fileprivate func outweighs(_ other: Finding) -> Bool { severity == .error && other.severity != .error }

    /// The finding without its consequences.
    private var alone: Finding {
        var finding = self
        finding.consequences = []
        finding.consequenceCount = 0
        finding.unkept = []
        return finding
    }

    /// The finding and all its consequences, as separate findings.
    fileprivate var flattened: [Finding] { [alone] + consequences + unkept }

    /// The finding and its consequences without their edits.
    var withoutEdits: Finding {
        var finding = self
        finding.edits = nil
        finding.consequences = consequences.map { $0.withoutEdits }
        finding.unkept = unkept.map { $0.withoutEdits }
        return finding
    }

    /// Removes the edits of all findings with a code, from the finding and its consequences.
    fileprivate mutating func leave(_ code: FormProblem.Code) {
        if self.code == code { edits = nil }
        for index in consequences.indices { consequences[index].leave(code) }
        for index in unkept.indices { unkept[index].leave(code) }
    }

    /// Adds a consequence, and the number of further consequences that it counts itself.
    mutating func append(_ consequence: Finding) {
        consequenceCount += 1 + consequence.consequenceCount
        let isKept = consequences.count < Self.maximumConsequences
        if isKept { consequences.append(consequence.alone) }
        let count = consequence.consequenceCount + (isKept ? 0 : 1)
        guard count > 0 else { return }
        if let index = unkept.firstIndex(where: { $0.code == consequence.code && $0.isFixed == consequence.isFixed }) {
            unkept[index].consequenceCount += count
        } else {
            var first = consequence.alone
            first.consequenceCount = count - 1
            unkept.append(first)
        }
    }

    mutating func removeConsequences(where isRemoved: (Finding) -> Bool) {
        let all = consequences + unkept
        self = alone
        for consequence in all where !isRemoved(consequence) { append(consequence) }
    }

    /// Whether edits fix the finding, directly or through its cause.
    private var isFixed: Bool { edits != nil }

    /// The findings that are fixed, or those that are not, among this finding and its consequences. If this finding is
    /// left out, the first consequence of each code becomes a root cause.
    func findings(thatAreFixed areFixed: Bool) -> [Finding] {
        var found: [Finding] = []
        for finding in flattened where finding.isFixed == areFixed {
            let cause =
                isFixed == areFixed ? found.indices.first : found.firstIndex(where: { $0.code == finding.code })
            if let cause { found[cause].append(finding) } else { found.append(finding) }
        }
        return found
    }

    /// Whether the finding is about the chunks or the length of the body. Such a problem may cause others in the body.
    fileprivate var isAboutFraming: Bool {
        code == .contentLengthMismatch || code == .malformedChunk
    }
}

/// Findings of one kind for display: the first in full, and only the places of the others.
package struct FindingGroup: Sendable {
    /// The finding that is shown in full.
    package let finding: Finding

    /// The places at which the same problem occurs again.
    package let repetitions: Places

    /// The first consequence of each kind, and the places of all consequences of that kind.
    package let consequences: [(first: Finding, places: Places)]

    /// The number of further consequences, whose kinds are unknown.
    package let otherConsequences: Int

    /// The first places of a problem, and the number of all its places.
    package struct Places: Sendable {
        /// The first places: at most ``maximum``.
        package let first: [Place]
        /// The number of all places, including those that ``first`` leaves out.
        package let count: Int

        /// The maximum number of listed places, so that they fit on a line.
        package static let maximum = 6

        fileprivate init(_ findings: [Finding], hidden: Int = 0) {
            first = findings.prefix(Self.maximum).map { Place(offset: $0.offset, partIndex: $0.partIndex) }
            count = findings.count + hidden
        }
    }

    /// A byte in the head or body that a finding is about, and the index of its part.
    package struct Place: Sendable, Hashable {
        package let offset: Int64
        package let partIndex: Int?
    }

    /// Makes a group from a finding and others of its kind. `hidden` is the number of further findings of that kind.
    /// Consequences of the kinds in `codes` are left out.
    private init(
        _ finding: Finding, _ others: some Sequence<Finding>, hidden: Int, leavingOut codes: Set<FormProblem.Code>
    ) {
        self.finding = finding
        let kept = finding.consequences.filter { !codes.contains($0.code) }
        let unkept = finding.consequenceCount - finding.consequences.count
        // If all kept consequences repeat the finding, those that were not kept count as repetitions too.
        let isAlike = kept.allSatisfy { $0.code == finding.code }
        repetitions = Places(
            Array(others) + kept.filter { $0.code == finding.code }, hidden: hidden + (isAlike ? unkept : 0))
        consequences = Self.byKind(kept.filter { $0.code != finding.code }).map { ($0[0], Places($0)) }
        otherConsequences = isAlike ? 0 : unkept
    }

    /// Groups root causes by kind, in the order of their first occurrence. `counts` has the total number of findings of
    /// each kind, if `findings` lacks some. Root causes of the kinds in `codes` are left out, and their consequences
    /// take their place.
    package static func groups(
        of findings: [Finding], counts: [FormProblem.Code: Int] = [:], leavingOut codes: Set<FormProblem.Code> = []
    ) -> [FindingGroup] {
        let roots = findings.flatMap { codes.contains($0.code) ? $0.consequences : [$0] }
        return byKind(roots.filter { !codes.contains($0.code) }).map { group in
            let hidden = max((counts[group[0].code] ?? 0) - group.count, 0)
            return FindingGroup(group[0], group.dropFirst(), hidden: hidden, leavingOut: codes)
        }
    }

    private static func byKind(_ findings: [Finding]) -> [[Finding]] {
        var groups: [[Finding]] = []
        var places: [FormProblem.Code: Int] = [:]
        for finding in findings {
            // A server's refusals concern different settings, so they are not grouped.
            if finding.code != .refusedByServer, let place = places[finding.code] {
                groups[place].append(finding)
            } else {
                places[finding.code] = groups.count
                groups.append([finding])
            }
        }
        return groups
    }
}
