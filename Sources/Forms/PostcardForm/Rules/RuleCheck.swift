/// The state of checking a form against rules. An error ends the check of a part, but the next part can still be
/// checked, so that a caller can list all problems.
struct RuleCheck: Sendable {
    private let rules: FormRules
    private var fieldCounts: [String: Int] = [:]
    private var fileCounts: [String: Int] = [:]
    /// The number of bytes in all files so far.
    private var fileBytes: Int64 = 0
    private var part: Part = .none

    private enum Part {
        case none
        /// A part whose remaining bytes are not checked.
        case passed
        case field(FieldCheck)
        case file(FileCheck)
        /// A file without a name. It counts as sent only once its first byte arrives.
        case unfilled(PartHeader, FormRules.File?, contentOffset: Int64)
    }

    init(_ rules: FormRules) {
        self.rules = rules
    }

    mutating func partBegan(_ header: PartHeader, contentOffset: Int64) throws(FormProblem) {
        part = .passed
        // Rules do not check the files in a nested part, so the part is refused.
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

    /// Checks the next bytes of the part's content. `further` is the number of unknown bytes after them.
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
            // Resetting the part leaves the check's array with one owner, so that it is not copied.
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

    /// Checks a part whose content is unknown. `count` is its size; `nil` if the size is unknown too.
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

    /// Whether the part is a text field whose value must be checked.
    var needsText: Bool {
        if case .field = part { true } else { false }
    }

    /// The problems of missing parts: first the fields by name, then the files.
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

/// Checks the value of a text field byte by byte, without keeping it.
struct FieldCheck: Sendable {
    private let rule: FormRules.Field
    private let header: PartHeader
    /// The offset of the next byte, counted from the start of the body.
    private var offset: Int64
    private var characters = 0
    private var decoder = UTF8Decoder()
    private var match: PatternMatch?
    private var values: AllowedValues?

    init(_ rule: FormRules.Field, _ header: PartHeader, contentOffset: Int64) {
        self.rule = rule
        self.header = header
        offset = contentOffset
        match = (rule.pattern?.program).map { PatternMatch($0) }
        values = rule.oneOf.map { AllowedValues($0) }
    }

    mutating func append(_ byte: UInt8) throws(FormProblem) {
        if values?.advance(over: byte) == false {
            throw .valueNotAllowed(header, rule.oneOf ?? [], at: offset)
        }
        switch decoder.decode(byte) {
        case .incomplete:
            break
        case .malformed(let start):
            throw .fieldNotUTF8(header, at: offset - Int64(start))
        case .scalar(let scalar, let length):
            let start = offset - Int64(length - 1)
            characters += 1
            if let maximum = rule.maximumCharacters, characters > maximum {
                throw .fieldTooLong(header, maximum, at: start)
            }
            if let program = rule.pattern?.program, match?.advance(over: scalar, in: program) == false {
                throw .patternMismatch(header, rule.pattern, at: start)
            }
        }
        offset += 1
    }

    func end() throws(FormProblem) {
        if decoder.pending > 0 { throw .fieldNotUTF8(header, at: offset - Int64(decoder.pending)) }
        if values?.isComplete == false { throw .valueNotAllowed(header, rule.oneOf ?? [], at: offset) }
        if characters < rule.minimumCharacters {
            throw .fieldTooShort(header, rule.minimumCharacters, at: offset)
        }
        if match?.isComplete == false { throw .patternMismatch(header, rule.pattern, at: offset) }
    }
}

extension FormRules.Field {
    /// Whether a rule applies to the characters of the value.
    var isAboutText: Bool {
        minimumCharacters > 0 || maximumCharacters != nil || pattern != nil || oneOf != nil
    }
}

/// The allowed values that begin with the bytes read so far.
private struct AllowedValues: Sendable {
    /// The sorted values, so that those with the same beginning are adjacent.
    private let values: [[UInt8]]
    private var left: Range<Int>
    private var position = 0

    init(_ values: [String]) {
        self.values = values.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        left = values.indices
    }

    /// Keeps the values that continue with this byte. Returns `false` if there are none.
    mutating func advance(over byte: UInt8) -> Bool {
        var lower = left.lowerBound
        var upper = left.upperBound
        while lower < upper, values[lower].count <= position || values[lower][position] < byte { lower += 1 }
        while lower < upper, values[upper - 1][position] > byte { upper -= 1 }
        left = lower..<upper
        position += 1
        return lower < upper
    }

    /// Whether the bytes read so far are one of the allowed values.
    var isComplete: Bool { !left.isEmpty && values[left.lowerBound].count == position }
}

struct FileCheck: Sendable {
    private let rule: FormRules.File?
    private let header: PartHeader
    private let contentOffset: Int64
    /// The claimed type in lower case, without parameters; `nil` if it is missing or malformed.
    private let claimed: String?
    private var length: Int64 = 0
    /// The first bytes so far; `nil` if they are unknown, already judged, or do not matter.
    private var beginning: [UInt8]?

    init(_ rule: FormRules.File?, _ header: PartHeader, contentOffset: Int64) {
        self.rule = rule
        self.header = header
        self.contentOffset = contentOffset
        claimed = header.contentType.flatMap { try? MediaType($0).essence }
        let isChecked = rule?.types.map { !$0.contains(.any) } ?? false
        beginning = isChecked ? [] : nil
    }

    func claimsAccepted(_ types: [MediaRange]) -> Bool {
        guard let claimed else { return types.contains(.any) }
        return types.contains { $0.contains(claimed) }
    }

    /// Leaves the first bytes unchecked.
    mutating func passType() {
        beginning = nil
    }

    /// Checks the next bytes of the file. `count` is their number, including unknown bytes after `bytes`. `total` is
    /// the maximum number of bytes of all files together, and `left` is how many of them are still allowed.
    mutating func append(
        _ bytes: UnsafeRawBufferPointer, count: Int64, ofAllFiles left: Int64?, _ total: Int64?
    ) throws(FormProblem) {
        let allowedHere = (rule?.maximumBytes).map { $0 - length } ?? .max
        let allowed = max(min(allowedHere, left ?? .max), 0)
        try gather(bytes.prefix(Int(min(Int64(bytes.count), allowed))))
        if count > bytes.count { beginning = nil }
        if count > allowed {
            let place = contentOffset + length + allowed
            if let maximum = rule?.maximumBytes, allowedHere <= allowed {
                throw .fileTooLarge(header, maximum, at: place)
            }
            throw .filesTooLarge(header, total ?? 0, at: place)
        }
        length += count
    }

    func end() throws(FormProblem) {
        if let minimum = rule?.minimumBytes, length < minimum {
            throw .fileTooSmall(header, minimum, at: contentOffset + length)
        }
        guard let beginning else { return }
        if beginning.count < MediaType.firstBytesCount { try checkType(beginning) }
        if let damage = damage(of: beginning), damage.isProven { try refuse(damage) }
    }

    /// Judges the first bytes once enough have arrived. The result is the same for chunks of any size.
    private mutating func gather(_ bytes: Slice<UnsafeRawBufferPointer>) throws(FormProblem) {
        guard var first = beginning else { return }
        beginning = nil
        let count = first.count
        first.append(contentsOf: bytes.prefix(DamagedStart.bytesCount - count))
        if count < MediaType.firstBytesCount, first.count >= MediaType.firstBytesCount {
            try checkType(Array(first.prefix(MediaType.firstBytesCount)))
        }
        if first.count < DamagedStart.bytesCount {
            beginning = first
        } else if let damage = damage(of: first), damage.isProven {
            try refuse(damage)
        }
    }

    /// Throws if the first bytes contradict the claimed type or the accepted types.
    private func checkType(_ first: [UInt8]) throws(FormProblem) {
        guard let types = rule?.types, let claimed else { return }
        let found = MediaType.forFirstBytes(first)
        let isAccepted: Bool
        if let found {
            isAccepted =
                types.contains { $0.contains(found.value) } || MediaFormat.mayBegin(claimed, as: found)
        } else {
            let isNamed = types.contains { $0.isExact && $0.contains(claimed) }
            isAccepted =
                !MediaFormat.isAlwaysRecognised(claimed) && (isNamed || !MediaRange.anyImage.contains(claimed))
        }
        if isAccepted { return }
        if let damage = damage(of: first) { try refuse(damage) }
        throw .fileContentNotAccepted(header, types, found: found, at: contentOffset)
    }

    private func damage(of first: [UInt8]) -> FileDamage? {
        var start = DamagedStart(contentType: header.contentType, filename: header.filename)
        first.withUnsafeBytes { start.read($0) }
        return start.damage
    }

    private func refuse(_ damage: FileDamage) throws(FormProblem) {
        throw .fileContentNotAccepted(header, rule?.types ?? [], damage: damage, at: contentOffset)
    }
}
