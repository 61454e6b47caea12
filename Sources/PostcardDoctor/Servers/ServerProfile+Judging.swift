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
                finding(
                    at: place, "\(title) takes \(limit.phrase) unless told otherwise, and \(form.phrase(limit)).",
                    fix: "Set \(limit.setting), or send less.")
            }
        }
        found += orderFindings(explanation.parts)
        if needsContentLength, explanation.head?.isChunked == true {
            found.append(
                finding(
                    at: (0, nil), "\(title) needs a Content-Length, and the request is chunked.",
                    fix: "Send the body from data or a file, whose length is known."))
        }
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
                phrases.append("\(profile.title) \(limit.phrase) (\(limit.setting))")
            }
        }
        guard let first else { return nil }
        return Finding(
            .doctor(.overCommonDefaults), at: first.offset, part: first.part,
            "Unless told otherwise these servers take less: \(phrases.joined(separator: "; ")).")
    }
}

/// How much of everything a form has.
struct FormMeasures {
    typealias Place = (offset: Int64, part: Int?)

    let bodySize: Int64
    let partCount: Int
    let parts: [Explanation.Part]

    /// Where the form goes over a limit; `nil` where it does not.
    func excess(over limit: ServerProfile.Limit) -> Place? {
        switch limit.measure {
        case .bodyBytes: bodySize > limit.maximum ? (0, nil) : nil
        case .partCount: partCount > limit.maximum ? part(Int(limit.maximum)) : nil
        case .fileBytes: largest { $0.filename != nil }.flatMap { parts[$0].size > limit.maximum ? part($0) : nil }
        case .fieldBytes: largest { $0.filename == nil }.flatMap { parts[$0].size > limit.maximum ? part($0) : nil }
        case .fileCount: excess(over: limit.maximum) { $0.filename != nil }
        case .fieldCount: excess(over: limit.maximum) { $0.filename == nil }
        }
    }

    /// How much there is of what a limit counts, in words.
    func phrase(_ limit: ServerProfile.Limit) -> String {
        switch limit.measure {
        case .bodyBytes: "the body has \(Self.size(bodySize))"
        case .partCount: "the form has \(partCount)"
        case .fileBytes: "a file has \(Self.size(parts.filter { $0.filename != nil }.map(\.size).max() ?? 0))"
        case .fieldBytes: "a field has \(Self.size(parts.filter { $0.filename == nil }.map(\.size).max() ?? 0))"
        case .fileCount: "the form has \(parts.count { $0.filename != nil })"
        case .fieldCount: "the form has \(parts.count { $0.filename == nil })"
        }
    }

    private func largest(_ belongs: (Explanation.Part) -> Bool) -> Int? {
        parts.indices.filter { belongs(parts[$0]) }.max { parts[$0].size < parts[$1].size }
    }

    private func excess(over maximum: Int64, _ belongs: (Explanation.Part) -> Bool) -> Place? {
        let found = parts.indices.filter { belongs(parts[$0]) }
        return Int64(found.count) > maximum ? part(found[Int(maximum)]) : nil
    }

    private func part(_ index: Int) -> Place {
        (parts.indices.contains(index) ? parts[index].offset : bodySize, index)
    }

    /// A number of bytes as settings have it.
    static func size(_ bytes: Int64) -> String {
        for (unit, factor) in [("GB", Int64(1 << 30)), ("MB", 1 << 20), ("KB", 1 << 10)] where bytes >= factor {
            let tenths = (bytes * 10 + factor / 2) / factor
            return tenths % 10 == 0 ? "\(tenths / 10) \(unit)" : "\(tenths / 10).\(tenths % 10) \(unit)"
        }
        return bytes == 1 ? "1 byte" : "\(bytes) bytes"
    }
}

extension ServerProfile.Limit {
    /// The limit in words.
    fileprivate var phrase: String {
        switch measure {
        case .bodyBytes: "\(FormMeasures.size(maximum)) a body"
        case .fileBytes: "\(FormMeasures.size(maximum)) a file"
        case .fieldBytes: "\(FormMeasures.size(maximum)) a field"
        case .fileCount: maximum == 1 ? "one file" : "\(maximum) files"
        case .fieldCount: "\(maximum) fields"
        case .partCount: "\(maximum) parts"
        }
    }
}
