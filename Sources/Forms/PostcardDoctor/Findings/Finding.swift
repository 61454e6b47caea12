public import PostcardForm

/// A problem at one place of a request: the wrong bytes, the reason why they matter, and what to write instead.
///
/// A finding is a root cause. Its ``consequences`` follow from it, or repeat it elsewhere.
public struct Finding: Sendable, Hashable {
    /// The head or the body of a request. Offsets count from its start.
    public enum Place: String, Sendable, Hashable {
        /// The head. Offsets count from the start of the request line. Without a request, they count from the start of
        /// the Content-Type's value.
        case head
        /// The body. Offsets count from its first byte, without the lines between chunks.
        case body
    }

    /// The kind of problem.
    public let code: FormProblem.Code

    /// The place of the problem: the head or the body. ``offset`` counts from its start.
    public let place: Place

    /// The offset of the first wrong byte, from the start of ``place``.
    public let offset: Int64

    /// The number of wrong bytes; 0 if bytes are missing at the offset.
    public let length: Int

    /// The index of the part, from 0; `nil` if the problem is outside of all parts.
    public let partIndex: Int?

    /// The problem, in a sentence.
    public let message: String

    /// The advice on what to write instead, in a sentence.
    public internal(set) var advice: String

    /// The bytes around the offset; `nil` if there are none to show.
    public internal(set) var excerpt: Excerpt?

    /// The edits that fix the problem; `nil` if only the sender can fix it. Empty for a consequence whose cause is
    /// fixed.
    public internal(set) var edits: [Edit]?

    /// The consequences and repetitions of the problem, in the order of the body: at most ``maximumConsequences``.
    public internal(set) var consequences: [Finding] = []

    /// The number of consequences, including those left out of ``consequences``.
    public internal(set) var consequenceCount = 0

    /// Samples of the consequences left out of ``consequences``: for each code, the first with edits and the first
    /// without. The ``consequenceCount`` of a sample is the number of others like it.
    var unkept: [Finding] = []

    /// The maximum number of consequences that are kept, enough to show a pattern.
    public static let maximumConsequences = 20

    /// The severity of the problem. It differs from that of the code if the problem does more or less harm than usual.
    public private(set) var severity: FormProblem.Severity

    /// The reason why servers refuse or misread the request, in a sentence or two.
    public var reason: String { code.cause }

    /// Swift code that avoids the problem; `nil` if code does not help.
    public var swift: String? { code.swift }

    init(
        _ code: FormProblem.Code, in place: Place = .body, at offset: Int64, length: Int = 0,
        part partIndex: Int? = nil,
        _ message: String, advice: String? = nil, edits: [Edit]? = nil
    ) {
        self.code = code
        severity = code.severity
        self.place = place
        self.offset = offset
        self.length = length
        self.partIndex = partIndex
        self.message = message
        self.advice = advice ?? code.advice
        self.edits = edits
    }

    /// Makes a finding of the parser's problem, by default at the problem's offset.
    package init(
        _ problem: FormProblem, in place: Place = .body, at offset: Int64? = nil, length: Int = 0, part: Int? = nil
    ) {
        self.init(
            problem.code, in: place, at: offset ?? problem.offset, length: length,
            part: part ?? problem.partIndex,
            problem.message, advice: problem.advice)
    }
}

extension Finding {
    func advising(_ advice: String) -> Finding {
        var finding = self
        finding.advice = advice
        return finding
    }

    func saying(_ message: String) -> Finding {
        Finding(code, in: place, at: offset, length: length, part: partIndex, message, advice: advice, edits: edits)
    }

    /// A copy of the finding with another severity, for a problem that does more or less harm than usual.
    func weighing(_ severity: FormProblem.Severity) -> Finding {
        var finding = self
        finding.severity = severity
        return finding
    }
}

extension FormProblem.Code {
    /// All codes of findings in the order of the documentation's page: head, delimiters, parts, whole form.
    public static var explained: [Self] {
        let all = ofParser + ofFraming + ofParts + ofPolicies
        return Topic.allCases.flatMap { topic in all.filter { $0.topic == topic } }
    }
}

extension Finding: CustomStringConvertible {
    public var description: String {
        let part = partIndex.map { "part \($0), " } ?? ""
        return "\(severity.rawValue): \(message) (\(code), \(part)byte \(offset) of the \(place.rawValue)) \(advice)"
    }
}

/// A change that fixes a request by replacing bytes.
public struct Edit: Sendable, Hashable {
    /// The place of the change: the head or the body. ``offset`` counts from its start.
    public let place: Finding.Place

    /// The offset of the first replaced byte, from the start of ``place``.
    public let offset: Int64

    /// The number of bytes that are replaced; 0 for an insertion.
    public let length: Int64

    /// The new bytes.
    public let replacement: [UInt8]

    init(in place: Finding.Place = .body, at offset: Int64, length: Int64 = 0, _ replacement: some Sequence<UInt8>) {
        self.place = place
        self.offset = offset
        self.length = length
        self.replacement = Array(replacement)
    }
}

/// The bytes around a finding. They may be binary.
public struct Excerpt: Sendable, Hashable {
    /// The offset of the first byte, counted like the finding's offset.
    public let offset: Int64

    /// The bytes, at most ``maximumBytes``, all from the head or all from the body.
    public let bytes: [UInt8]

    /// The maximum number of bytes in the excerpt before the finding's offset, and after it.
    public static let reach = 96

    /// The maximum number of bytes in an excerpt.
    public static let maximumBytes = 2 * reach

    init(offset: Int64, bytes: [UInt8]) {
        self.offset = offset
        self.bytes = bytes
    }
}

extension Excerpt {
    func appending(_ new: UnsafeRawBufferPointer) -> Excerpt { Excerpt(offset: offset, bytes: bytes + new) }

    /// The section of the excerpt around an offset; `nil` if the offset is outside.
    func around(_ place: Int64) -> Excerpt? {
        guard place >= offset, place <= offset + Int64(bytes.count) else { return nil }
        let index = Int(clamping: place - offset)
        let range = max(index - Self.reach, 0)..<min(index + Self.reach, bytes.count)
        return Excerpt(offset: offset + Int64(range.lowerBound), bytes: Array(bytes[range]))
    }
}
