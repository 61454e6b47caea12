import PostcardForm

extension Explanation {
    /// The same explanation with what these servers would say, by their default settings.
    ///
    /// - Parameter servers: Whose rules to judge by; what they refuse are errors.
    public func judged(against servers: [ServerProfile]) -> Explanation {
        var judged = self
        let found = servers.flatMap { $0.findings(in: self) }
        let common = FindingCode.doctor(.overCommonDefaults)
        // Who asks about certain servers does not ask about the others.
        judged.findings = findings.filter { servers.isEmpty || $0.code != common }
        let errors = judged.findings.prefix { $0.severity == .error }.count
        judged.findings.insert(contentsOf: found, at: errors)
        return judged
    }
}

extension ServerProfile {
    /// What the server has against a form.
    func findings(in explanation: Explanation) -> [Finding] {
        let form = FormMeasures(
            bodySize: explanation.bodySize, partCount: explanation.partCount, parts: explanation.parts)
        var found = limits.compactMap { limit in
            form.excess(over: limit).map { place in
                let more = limit.setting == nil ? "at most \(limit.phrase)" : "\(limit.phrase) unless told otherwise"
                return finding(at: place, "\(title) takes \(more), and \(form.phrase(limit)).", fix: limit.fix)
            }
        }
        found += orderFindings(explanation.parts)
        if needsBracketsForLists { found += listFindings(explanation.parts) }
        return found
    }

    private func finding(at place: FormMeasures.Place, _ message: String, fix: String) -> Finding {
        Finding(.doctor(.refusedByServer), at: place.offset, part: place.part, message, fix: fix)
    }

    private func orderFindings(_ parts: [Explanation.Part]) -> [Finding] {
        var found: [Finding] = []
        if readsNoFieldsAfterFile, let late = Self.fieldAfterFile(parts) {
            found.append(
                finding(
                    at: (parts[late].offset, late),
                    "\(title) reads fields up to the file, and \(parts[late].name.debugDescription) follows it.",
                    fix: "Let the file be the last part."))
        }
        if let onlyFileName, let other = parts.firstIndex(where: { $0.filename != nil && $0.name != onlyFileName }) {
            found.append(
                finding(
                    at: (parts[other].offset, other),
                    "\(title) takes the file under the name \(onlyFileName.debugDescription), not "
                        + "\(parts[other].name.debugDescription).",
                    fix: "Name the file's part \(onlyFileName.debugDescription)."))
        }
        return found
    }

    private func listFindings(_ parts: [Explanation.Part]) -> [Finding] {
        var seen: Set<String> = []
        for (index, part) in parts.enumerated() where !seen.insert(part.name).inserted && !part.name.hasSuffix("[]") {
            return [
                finding(
                    at: (part.offset, index),
                    "\(title) keeps the last part named \(part.name.debugDescription) alone.",
                    fix: "Name the parts \((part.name + "[]").debugDescription) where all of them are wanted.")
            ]
        }
        return []
    }

    /// The first field that comes behind a file.
    static func fieldAfterFile(_ parts: [Explanation.Part]) -> Int? {
        guard let file = parts.firstIndex(where: { $0.filename != nil }) else { return nil }
        return parts[file...].firstIndex { $0.filename == nil }
    }

    /// One warning for all common servers whose defaults a form goes over.
    static func commonDefaults(bodySize: Int64, partCount: Int, parts: [Explanation.Part]) -> Finding? {
        let form = FormMeasures(bodySize: bodySize, partCount: partCount, parts: parts)
        var phrases: [String] = []
        var first: FormMeasures.Place?
        for profile in [php, nginx, spring, tomcat, multer, rails] {
            for limit in profile.limits {
                guard let place = form.excess(over: limit) else { continue }
                first = first ?? place
                let setting = limit.setting.map { " (\($0))" } ?? ""
                phrases.append("\(profile.title) \(limit.phrase)\(setting)")
            }
        }
        guard let first else { return nil }
        return Finding(
            .doctor(.overCommonDefaults), at: first.offset, part: first.part,
            "Unless told otherwise these servers take less: \(phrases.joined(separator: "; ")).")
    }
}
