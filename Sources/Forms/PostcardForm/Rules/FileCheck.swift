/// A file that is held to its rule.
struct FileCheck: Sendable {
    private let rule: FormRules.File?
    private let header: PartHeader
    private let contentOffset: Int64
    /// The claimed type in lower case, without parameters; `nil` if it is missing or malformed.
    private let claimed: String?
    private var length: Int64 = 0
    /// The first bytes so far; `nil` if any are accepted, they cannot be seen, or they have been judged.
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

    /// The first bytes are not checked.
    mutating func passType() {
        beginning = nil
    }

    /// - Parameters:
    ///   - bytes: The content's next bytes, as far as they can be seen.
    ///   - count: How many there are.
    ///   - left: How many more all files together may have.
    ///   - total: How many all files together may have.
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

    /// Judges the first bytes as soon as there are enough. It never looks at more, because a problem must not depend on
    /// how the bytes arrive.
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

    /// Whether the first bytes contradict the claim or the accepted types.
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
