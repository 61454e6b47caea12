/// A file that is held to its rule.
struct FileCheck: Sendable {
    private let rule: FormRules.File?
    private let header: PartHeader
    private let contentOffset: Int64
    /// The claimed type in lower case, without parameters; `nil` if it is missing or malformed.
    private let claimed: String?
    private var length: Int64 = 0
    private var beginning: Beginning

    private enum Beginning {
        case gathering([UInt8])
        case passed
    }

    init(_ rule: FormRules.File?, _ header: PartHeader, contentOffset: Int64) {
        self.rule = rule
        self.header = header
        self.contentOffset = contentOffset
        claimed = header.contentType.flatMap { try? MediaType($0).essence }
        beginning = rule?.types == nil ? .passed : .gathering([])
    }

    func claimsAccepted(_ types: [MediaRange]) -> Bool {
        guard let claimed else { return types.contains(.any) }
        return types.contains { $0.contains(claimed) }
    }

    /// The first bytes are not checked.
    mutating func passType() {
        beginning = .passed
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
        if case .gathering(let bytes) = beginning { try judge(bytes) }
    }

    private mutating func gather(_ bytes: Slice<UnsafeRawBufferPointer>) throws(FormProblem) {
        guard case .gathering(var first) = beginning else { return }
        first.append(contentsOf: bytes.prefix(MediaType.firstBytesCount - first.count))
        if first.count == MediaType.firstBytesCount {
            beginning = .passed
            try judge(first)
        } else {
            beginning = .gathering(first)
        }
    }

    /// Whether the first bytes contradict the claim or the accepted types.
    private func judge(_ first: [UInt8]) throws(FormProblem) {
        guard let types = rule?.types, !types.contains(.any), let claimed else { return }
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
        if !isAccepted { throw .fileContentNotAccepted(header, types, found: found, at: contentOffset) }
    }
}
