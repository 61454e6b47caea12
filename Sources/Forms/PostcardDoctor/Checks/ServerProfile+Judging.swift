import PostcardForm
import PostcardFoundation

extension Explanation {
    /// Adds findings about the limits of the given servers in their default settings.
    ///
    /// - Parameter servers: The servers to check. Anything that one of these servers refuses is an error.
    public func judged(against servers: [ServerProfile]) -> Explanation {
        var judged = self
        judged.needs = ServerNeeds(
            fieldsFirst: servers.contains { $0.readsNoFieldsAfterFile },
            fileName: servers.lazy.compactMap { $0.onlyFileName }.first, fields: servers.compactMap { $0.neededField },
            bracketsForLists: servers.contains { $0.needsBracketsForLists })
        let found = servers.flatMap { $0.findings(in: self) }
        let common = FormProblem.Code.overCommonDefaults
        // The findings about the chosen servers replace the warning about common servers.
        judged.findings = findings.filter { servers.isEmpty || $0.code != common }
        let errors = judged.findings.prefix { $0.severity == .error }.count
        judged.findings.insert(contentsOf: found, at: errors)
        return judged
    }
}

extension ServerProfile {
    /// The findings about the parts of a form that the server refuses.
    func findings(in explanation: Explanation) -> [Finding] {
        let form = FormMeasures(
            bodySize: explanation.bodySize, partCount: explanation.partCount, parts: explanation.parts)
        var found = limits.compactMap { limit in
            form.excess(over: limit).map { place in
                let more = limit.setting == nil ? "at most \(limit.phrase)" : "\(limit.phrase) by default"
                return finding(at: place, "\(title) accepts \(more), and \(form.phrase(limit)).", advice: limit.advice)
            }
        }
        found += orderFindings(explanation.parts)
        if let neededField, !explanation.parts.isEmpty,
            !explanation.parts.contains(where: { $0.name.utf8.isEqualIgnoringCase(neededField) })
        {
            found.append(
                finding(
                    at: (0, nil), "\(title) needs the field \(neededField.debugDescription), and the form has none.",
                    advice: "Send the field \(neededField.debugDescription) before the file."))
        }
        found += typeFindings(explanation.parts)
        if needsBracketsForLists { found += listFindings(explanation.parts) }
        if renamesFields { found += nameFindings(explanation.parts) }
        return found
    }

    private func finding(at place: FormMeasures.Place, _ message: String, advice: String) -> Finding {
        Finding(.refusedByServer, at: place.offset, part: place.part, message, advice: advice)
    }

    private func orderFindings(_ parts: [Explanation.Part]) -> [Finding] {
        var found: [Finding] = []
        if readsNoFieldsAfterFile, let late = Self.fieldAfterFile(parts) {
            found.append(
                finding(
                    at: (parts[late].offset, late),
                    "\(title) reads fields up to the file, and \(parts[late].name.quoted) follows it.",
                    advice: "Let the file be the last part."))
        }
        if let onlyFileName, let other = parts.firstIndex(where: { $0.filename != nil && $0.name != onlyFileName }) {
            found.append(
                finding(
                    at: (parts[other].offset, other),
                    "\(title) accepts the file under the name \(onlyFileName.debugDescription), not "
                        + "\(parts[other].name.quoted).",
                    advice: "Name the file's part \(onlyFileName.debugDescription)."))
        }
        return found
    }

    private func typeFindings(_ parts: [Explanation.Part]) -> [Finding] {
        guard let fileTypes else { return [] }
        let accepted = fileTypes.map { $0.value }.joined(separator: ", ")
        return parts.enumerated().compactMap { index, part in
            let type = part.contentType.flatMap { try? MediaType($0) }
            let isAccepted = type.map { type in fileTypes.contains { $0.contains(type) } } ?? false
            guard part.filename != nil, !isAccepted else { return nil }
            return finding(
                at: (part.offset, index),
                "\(title) does not accept the file \(part.name.quoted), whose type is "
                    + "\(part.contentType?.quoted ?? "not named").",
                advice: "Send one of \(accepted), and name its type in the part's Content-Type.")
        }
    }

    private func listFindings(_ parts: [Explanation.Part]) -> [Finding] {
        var seen: Set<[UInt8]> = []
        for (index, part) in parts.enumerated()
        where !seen.insert(Array(part.name.utf8)).inserted && !part.name.utf8.suffix(2).elementsEqual("[]".utf8) {
            return [
                finding(
                    at: (part.offset, index),
                    "\(title) keeps only the last part named \(part.name.quoted).",
                    advice: "Name the parts \((part.name + "[]").quoted) to keep all of them.")
            ]
        }
        return []
    }

    private func nameFindings(_ parts: [Explanation.Part]) -> [Finding] {
        var seen: Set<[UInt8]> = []
        return parts.enumerated().compactMap { index, part in
            let name = Self.renamed(part.name)
            guard name != part.name, !name.isEmpty, seen.insert(Array(part.name.utf8)).inserted else { return nil }
            return finding(
                at: (part.offset, index),
                "\(title) reads the field \(part.name.quoted) under the name \(name.quoted).",
                advice: "Name it \(name.quoted), or read it under this name.")
        }
    }

    /// The field name as PHP reads it. Leading spaces are removed. Each dot and space before the first bracket becomes
    /// an underscore, and so does a bracket that is not closed.
    private static func renamed(_ name: String) -> String {
        let bytes = Array(name.utf8.drop { $0 == .space })
        let open = bytes.firstIndex(of: UInt8(ascii: "[")) ?? bytes.count
        let isClosed = open == bytes.count || bytes[open...].contains(UInt8(ascii: "]"))
        let renamed = bytes.enumerated().map { index, byte in
            let isReplaced = index < open ? byte == UInt8(ascii: ".") || byte == .space : index == open && !isClosed
            return isReplaced ? UInt8(ascii: "_") : byte
        }
        return String(streamSafe: renamed)
    }

    /// The index of the first text field after a file.
    static func fieldAfterFile(_ parts: [Explanation.Part]) -> Int? {
        guard let file = parts.firstIndex(where: { $0.filename != nil }) else { return nil }
        return parts[file...].firstIndex { $0.filename == nil }
    }

    /// A single warning about all common servers whose default limits the form exceeds.
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
            .overCommonDefaults, at: first.offset, part: first.part,
            "By default these servers accept less: \(phrases.joined(separator: "; ")).")
    }
}

/// The sizes and counts of a form that servers limit.
struct FormMeasures {
    typealias Place = (offset: Int64, part: Int?)

    let bodySize: Int64
    let partCount: Int
    let parts: [Explanation.Part]

    /// The place at which the form exceeds a limit; `nil` if the form is within the limit.
    func excess(over limit: ServerProfile.Limit) -> Place? {
        guard amount(limit.measure) > limit.maximum else { return nil }
        return switch limit.measure {
        case .bodyBytes, .textBytes, .bytesBeforeFile: (0, nil)
        case .partCount: place(ofPart: Int(clamping: limit.maximum))
        case .fileBytes: largest(isFile: true).map { place(ofPart: $0) }
        case .fieldBytes: largest(isFile: false).map { place(ofPart: $0) }
        case .partHeaderBytes: partWithLargestHeader.map { place(ofPart: $0) }
        case .fileCount: place(ofPart: indices(areFiles: true)[Int(clamping: limit.maximum)])
        case .fieldCount: place(ofPart: indices(areFiles: false)[Int(clamping: limit.maximum)])
        }
    }

    /// The form's size or count that the limit restricts, in words.
    func phrase(_ limit: ServerProfile.Limit) -> String {
        let amount = amount(limit.measure)
        // An amount is shown exactly if it would otherwise look equal to the limit.
        let size =
            Self.size(amount) == Self.size(limit.maximum) ? Self.exactSize(amount) : Self.size(amount)
        return switch limit.measure {
        case .bodyBytes: "the body has \(size)"
        case .fileBytes: "a file has \(size)"
        case .fieldBytes: "a field has \(size)"
        case .textBytes: "the fields have \(size) together"
        case .partHeaderBytes: "a part's header has \(size)"
        case .bytesBeforeFile: "\(size) come before it"
        case .partCount, .fileCount, .fieldCount: "the form has \(amount)"
        }
    }

    private func amount(_ measure: ServerProfile.Limit.Measure) -> Int64 {
        switch measure {
        case .bodyBytes: bodySize
        case .partCount: Int64(partCount)
        case .fileBytes: largest(isFile: true).map { parts[$0].size } ?? 0
        case .fieldBytes: largest(isFile: false).map { parts[$0].size } ?? 0
        case .fileCount: Int64(parts.count { $0.filename != nil })
        case .fieldCount: Int64(parts.count { $0.filename == nil })
        case .textBytes:
            parts.reduce(0) { $1.filename == nil ? $0 + $1.size + Int64($1.name.utf8.count) + 2 : $0 }
        case .partHeaderBytes: partWithLargestHeader.map { parts[$0].headerSize } ?? 0
        case .bytesBeforeFile: parts.first { $0.filename != nil }?.offset ?? 0
        }
    }

    private func indices(areFiles: Bool) -> [Int] {
        parts.indices.filter { (parts[$0].filename != nil) == areFiles }
    }

    private func largest(isFile: Bool) -> Int? {
        indices(areFiles: isFile).max { parts[$0].size < parts[$1].size }
    }

    private var partWithLargestHeader: Int? {
        parts.indices.max { parts[$0].headerSize < parts[$1].headerSize }
    }

    private func place(ofPart index: Int) -> Place {
        (parts.indices.contains(index) ? parts[index].offset : bodySize, index)
    }

    /// A number of bytes in the notation of servers' settings.
    static func size(_ bytes: Int64) -> String {
        for (unit, factor) in [("GB", Int64(1 << 30)), ("MB", 1 << 20), ("KB", 1 << 10)]
        where bytes + factor / 20 >= factor {
            let tenths = (bytes * 10 + factor / 2) / factor
            return tenths % 10 == 0 ? "\(tenths / 10) \(unit)" : "\(tenths / 10).\(tenths % 10) \(unit)"
        }
        return exactSize(bytes)
    }

    private static func exactSize(_ bytes: Int64) -> String { bytes == 1 ? "1 byte" : "\(bytes) bytes" }
}

extension Explanation.Part {
    /// The size of the part's header in bytes, including its blank line.
    fileprivate var headerSize: Int64 {
        headerFields.reduce(2) { $0 + Int64($1.name.utf8.count + ": ".utf8.count + $1.value.utf8.count + 2) }
    }
}

extension ServerProfile.Limit {
    var phrase: String {
        let size = FormMeasures.size(maximum)
        return switch measure {
        case .bodyBytes: "\(size) a body"
        case .fileBytes: "\(size) a file"
        case .fieldBytes: "\(size) a field"
        case .textBytes: "\(size) of fields together"
        case .partHeaderBytes: "\(size) a part's header"
        case .bytesBeforeFile: "\(size) before the file"
        case .fileCount: maximum == 1 ? "one file" : "\(maximum) files"
        case .fieldCount: "\(maximum) fields"
        case .partCount: "\(maximum) parts"
        }
    }
}
