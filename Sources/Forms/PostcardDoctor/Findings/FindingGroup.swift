package import PostcardForm

/// Findings of one kind as they are shown: the first in full, and the places of the others.
package struct FindingGroup: Sendable {
    /// The finding that is shown in full.
    package let finding: Finding

    /// The places at which the same problem is found again.
    package let repetitions: Places

    /// The consequences of the finding: the first of each kind, with the places of all.
    package let consequences: [(first: Finding, places: Places)]

    /// The number of further consequences, of kinds that were not kept.
    package let otherConsequences: Int

    /// The first places of a problem, and their total number.
    package struct Places: Sendable {
        /// The first places: at most ``maximum``.
        package let first: [Place]
        /// The number of all places, including those that ``first`` leaves out.
        package let count: Int

        /// The maximum number of places that are listed: they fit on a line.
        package static let maximum = 6

        fileprivate init(_ findings: [Finding], hidden: Int = 0) {
            first = findings.prefix(Self.maximum).map { Place(offset: $0.offset, partIndex: $0.partIndex) }
            count = findings.count + hidden
        }
    }

    /// A byte of the head or body that the finding is about, and the part that it is in.
    package struct Place: Sendable, Hashable {
        package let offset: Int64
        package let partIndex: Int?
    }

    /// - Parameters:
    ///   - others: Findings of the same kind.
    ///   - hidden: How many more of the kind there are.
    ///   - codes: The consequences that are left out.
    private init(
        _ finding: Finding, _ others: some Sequence<Finding>, hidden: Int, leavingOut codes: Set<FormProblem.Code>
    ) {
        self.finding = finding
        let kept = finding.consequences.filter { !codes.contains($0.code) }
        let unkept = finding.consequenceCount - finding.consequences.count
        // Where all that was kept repeats the finding, so does the rest.
        let isAlike = kept.allSatisfy { $0.code == finding.code }
        repetitions = Places(
            Array(others) + kept.filter { $0.code == finding.code }, hidden: hidden + (isAlike ? unkept : 0))
        consequences = Self.byKind(kept.filter { $0.code != finding.code }).map { ($0[0], Places($0)) }
        otherConsequences = isAlike ? 0 : unkept
    }

    /// Groups findings by kind, in the order in which each kind is first found.
    ///
    /// - Parameters:
    ///   - findings: Root causes.
    ///   - counts: How many there are of a kind, where `findings` does not hold all of them.
    ///   - codes: Kinds to leave out. What follows from one of them is shown in its place.
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
            // What servers refuse is about as many settings.
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
