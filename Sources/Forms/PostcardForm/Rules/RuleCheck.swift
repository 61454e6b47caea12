/// The state of checking a form against rules. After an error, the rest of the part is not checked, so a caller that
/// lists all problems can continue with the next part.
struct RuleCheck: Sendable {
    private let rules: FormRules
    private var fieldCounts: [String: Int] = [:]
    private var fileCounts: [String: Int] = [:]
    /// How many bytes all files together have had.
    private var fileBytes: Int64 = 0
    private var part: Part = .none

    private enum Part {
        case none
        /// Nothing more is checked.
        case passed
        case field(FieldCheck)
        case file(FileCheck)
        /// A file without a name, which counts only once it has a byte.
        case unfilled(PartHeader, FormRules.File?, contentOffset: Int64)
    }

    init(_ rules: FormRules) {
        self.rules = rules
    }

    mutating func partBegan(_ header: PartHeader, contentOffset: Int64) throws(FormProblem) {
        part = .passed
        // What is in it would go unchecked.
        if header.holdsFiles { throw .nestedFiles(header) }
        if header.isFile {
            let rule = rules.files[header.name]
            if rule == nil {
                if rules.fields[header.name] != nil { throw .fileInsteadOfField(header) }
                if rules.otherParts == .refused { throw .unexpectedFile(header) }
            }
            if header.filename == "" {
                part = .unfilled(header, rule, contentOffset: contentOffset)
            } else {
                try beginFile(header, rule, contentOffset: contentOffset)
            }
        } else if let rule = rules.fields[header.name] {
            let count = fieldCounts[header.name, default: 0] + 1
            fieldCounts[header.name] = count
            if count > rule.atMost { throw .tooManyFields(header, atMost: rule.atMost) }
            if rule.isAboutText { part = .field(FieldCheck(rule, header, contentOffset: contentOffset)) }
        } else if rules.files[header.name] != nil {
            throw .fieldInsteadOfFile(header)
        } else if rules.otherParts == .refused {
            throw .unexpectedField(header)
        }
    }

    private mutating func beginFile(
        _ header: PartHeader, _ rule: FormRules.File?, contentOffset: Int64
    ) throws(FormProblem) {
        let check = FileCheck(rule, header, contentOffset: contentOffset)
        guard let rule else {
            part = .file(check)
            return
        }
        let count = fileCounts[header.name, default: 0] + 1
        fileCounts[header.name] = count
        if count > rule.atMost { throw .tooManyFiles(header, atMost: rule.atMost) }
        if let types = rule.types, !check.claimsAccepted(types) { throw .fileTypeNotAccepted(header, types) }
        part = .file(check)
    }

    /// More bytes of the part's content are there.
    ///
    /// - Parameters:
    ///   - bytes: The bytes.
    ///   - further: The number of further bytes, whose content is unknown.
    mutating func bytes(_ bytes: UnsafeRawBufferPointer, further: Int64 = 0) throws(FormProblem) {
        let count = Int64(bytes.count) + further
        guard count > 0 else { return }
        if case .unfilled(let header, let rule, let contentOffset) = part {
            part = .passed
            try beginFile(header, rule, contentOffset: contentOffset)
        }
        switch part {
        case .none:
            preconditionFailure("Bytes were passed before a part began: call partBegan(_:contentOffset:) first.")
        case .passed, .unfilled:
            break
        case .field(var check):
            // What holds an array must be held once, or it is copied when it changes.
            part = .passed
            for byte in bytes { try check.append(byte) }
            part = .field(check)
        case .file(var check):
            part = .passed
            let left = rules.maximumBytesOfAllFiles.map { $0 - fileBytes }
            let (sum, overflow) = fileBytes.addingReportingOverflow(count)
            fileBytes = overflow ? .max : sum
            try check.append(bytes, count: count, ofAllFiles: left, rules.maximumBytesOfAllFiles)
            part = .file(check)
        }
    }

    mutating func partEnded() throws(FormProblem) {
        let ended = part
        part = .none
        switch ended {
        case .none, .passed, .unfilled: break
        case .field(let check): try check.end()
        case .file(let check): try check.end()
        }
    }

    /// The content cannot be seen here, but for the number of its bytes.
    mutating func contentUnseen(count: Int64?) throws(FormProblem) {
        switch part {
        case .none, .passed, .unfilled: break
        case .field:
            part = .passed
        case .file(var check):
            guard let count else {
                part = .passed
                return
            }
            check.passType()
            part = .file(check)
            try bytes(UnsafeRawBufferPointer(start: nil, count: 0), further: count)
        }
    }

    /// Whether the part is a text whose value must be checked.
    var needsText: Bool {
        if case .field = part { true } else { false }
    }

    /// What is missing: the fields by name, then the files.
    func missing(at offset: Int64) -> [FormProblem] {
        let fields = rules.fields.filter { fieldCounts[$0.key, default: 0] < $0.value.atLeast }
        let files = rules.files.filter { fileCounts[$0.key, default: 0] < $0.value.atLeast }
        return fields.sorted { $0.key < $1.key }.map {
            .missingField($0.key, came: fieldCounts[$0.key, default: 0], atLeast: $0.value.atLeast, at: offset)
        }
            + files.sorted { $0.key < $1.key }.map {
                .missingFile($0.key, came: fileCounts[$0.key, default: 0], atLeast: $0.value.atLeast, at: offset)
            }
    }
}
