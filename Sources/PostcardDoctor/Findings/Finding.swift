public import PostcardForm

/// What is wrong at one place of a request: which byte, why that matters, and what to write instead.
///
/// A finding is a root cause. What only follows from it, or repeats it elsewhere, are its ``consequences``; who
/// fixes the one is rid of the others.
public struct Finding: Sendable, Hashable {
    /// What an offset counts from.
    public enum Place: String, Sendable, Hashable, Codable {
        /// From the first byte of the request line; where there is only a Content-Type, from its value's first byte.
        case head
        /// From the first byte of the body, the lines between its chunks left out.
        case body
    }

    /// What kind of problem it is.
    public let code: FormProblem.Code

    /// Whether ``offset`` counts in the head or in the body.
    public let place: Place

    /// The byte at which it goes wrong, counted from the start of ``place``.
    public let offset: Int64

    /// How many bytes are wrong from there on; 0 where something is missing at that byte.
    public let length: Int

    /// The part in which it goes wrong, from 0; `nil` where it is none.
    public let partIndex: Int?

    /// What is wrong, in a sentence.
    public let message: String

    /// What to write instead, in a sentence.
    public let fix: String

    /// The bytes around the offset; `nil` where there are none to show.
    public internal(set) var excerpt: Excerpt?

    /// What would make it right; `nil` where only its sender can know. Empty for a consequence of what is fixed.
    public internal(set) var edits: [Edit]?

    /// What follows from it or repeats it, in the order of the body; at most ``maximumConsequences`` of them are kept.
    public internal(set) var consequences: [Finding] = []

    /// How many consequences there are, those that were not kept included.
    public internal(set) var consequenceCount = 0

    /// As many as tell what they have in common.
    public static let maximumConsequences = 20

    /// How much it weighs: what the code says, and otherwise where just this place loses more or less than most.
    public private(set) var severity: FormProblem.Severity

    /// Why servers care, in a sentence or two.
    public var reason: String { code.cause }

    /// The Swift that would have got it right, where that helps.
    public var swift: String? { code.swift }

    init(
        _ code: FormProblem.Code, in place: Place = .body, at offset: Int64, length: Int = 0,
        part partIndex: Int? = nil,
        _ message: String, fix: String? = nil, edits: [Edit]? = nil
    ) {
        self.code = code
        severity = code.severity
        self.place = place
        self.offset = offset
        self.length = length
        self.partIndex = partIndex
        self.message = message
        self.fix = fix ?? code.fix
        self.edits = edits
    }

    /// What the parser says, at the same place.
    package init(
        _ problem: FormProblem, in place: Place = .body, at offset: Int64? = nil, length: Int = 0, part: Int? = nil
    ) {
        self.init(
            problem.code, in: place, at: offset ?? problem.offset, length: length,
            part: part ?? problem.partIndex,
            problem.message, fix: problem.fix)
    }
}

extension Finding {
    /// The same in other words.
    func saying(_ message: String) -> Finding {
        Finding(code, in: place, at: offset, length: length, part: partIndex, message, fix: fix, edits: edits)
    }

    /// The same with another severity, where this place loses more or less than others of its kind.
    func weighing(_ severity: FormProblem.Severity) -> Finding {
        var finding = self
        finding.severity = severity
        return finding
    }
}

extension FormProblem.Code {
    /// Every code that an explanation can hold, in the order of the documentation's page: the head, the delimiters, the
    /// parts, the whole.
    public static var explained: [Self] {
        let all = ofParser + ofFraming + ofParts
        return Topic.allCases.flatMap { topic in all.filter { $0.topic == topic } }
    }
}

extension Finding: CustomStringConvertible {
    public var description: String {
        let part = partIndex.map { "part \($0), " } ?? ""
        return "\(severity.rawValue): \(message) (\(code), \(part)byte \(offset) of the \(place.rawValue)) \(fix)"
    }
}

/// Bytes that are to stand in the place of others, so that a request comes right.
public struct Edit: Sendable, Hashable {
    /// Whether ``offset`` counts in the head or in the body.
    public let place: Finding.Place

    /// The first byte that is replaced, counted from the start of ``place``.
    public let offset: Int64

    /// How many bytes are replaced; 0 where something is only put in.
    public let length: Int64

    /// What stands there afterwards.
    public let replacement: [UInt8]

    init(in place: Finding.Place = .body, at offset: Int64, length: Int64 = 0, _ replacement: some Sequence<UInt8>) {
        self.place = place
        self.offset = offset
        self.length = length
        self.replacement = Array(replacement)
    }
}

/// The bytes around the place of a finding, as they are: they may be binary.
public struct Excerpt: Sendable, Hashable {
    /// Where the first of the bytes stands, counted as the finding's offset is.
    public let offset: Int64

    /// At most ``maximumBytes``, from the same head or body.
    public let bytes: [UInt8]

    /// The most bytes that are kept before the place, and behind it.
    public static let reach = 96

    /// The most bytes of an excerpt.
    public static let maximumBytes = 2 * reach

    init(offset: Int64, bytes: [UInt8]) {
        self.offset = offset
        self.bytes = bytes
    }
}

extension Excerpt {
    func appending(_ new: UnsafeRawBufferPointer) -> Excerpt { Excerpt(offset: offset, bytes: bytes + new) }

    /// As much of it as is shown of a place; `nil` where the place lies outside.
    func around(_ place: Int64) -> Excerpt? {
        guard place >= offset, place <= offset + Int64(bytes.count) else { return nil }
        let index = Int(clamping: place - offset)
        let range = max(index - Self.reach, 0)..<min(index + Self.reach, bytes.count)
        return Excerpt(offset: offset + Int64(range.lowerBound), bytes: Array(bytes[range]))
    }
}
