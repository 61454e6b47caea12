import PostcardForm
public import PostcardFoundation
import Synchronization

/// The identifier of a stored upload: 26 lower-case letters and digits.
///
/// The first ten characters are the time of the record in milliseconds since 1970. The other sixteen are 80 random
/// bits. Both use Crockford's base 32. Identifiers sort in the order of their records, and cannot be guessed.
public struct UploadID: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
    /// The identifier as text, as in paths and records.
    public let text: String

    /// Parses an identifier from a path or a record.
    ///
    /// - Returns: `nil` if the text is not an identifier. Identifiers contain no special characters of file systems.
    public init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard bytes.count == Self.length, bytes.allSatisfy(Self.alphabet.contains) else { return nil }
        self.text = String(text)
    }

    package init(milliseconds: Int64, using generator: inout some RandomNumberGenerator) {
        var bytes: [UInt8] = []
        for shift in stride(from: Self.timeLength - 1, through: 0, by: -1) {
            bytes.append(Self.alphabet[Int((milliseconds >> (Int64(shift) * 5)) & 31)])
        }
        // Each number supplies eight characters of five bits, because the system's random numbers are slow.
        for _ in 0..<2 {
            let number = generator.next()
            for shift in stride(from: 0, to: 40, by: 5) {
                bytes.append(Self.alphabet[Int(number >> UInt64(shift) & 31)])
            }
        }
        text = String(decoding: bytes, as: UTF8.self)
    }

    /// The smallest identifier with a given time. `milliseconds` is the time in milliseconds since 1970, not negative.
    package init(earliestAt milliseconds: Int64) {
        var zeros = Zeros()
        self.init(milliseconds: milliseconds, using: &zeros)
    }

    /// The smallest identifier with a time after that of another identifier.
    package init(earliestAfter id: UploadID) {
        self.init(earliestAt: id.milliseconds + 1)
    }

    /// An identifier that is greater than all identifiers with valid times.
    package static let end = UploadID(earliestAt: UploadIDSource.latestMilliseconds + 1)

    private struct Zeros: RandomNumberGenerator {
        func next() -> UInt64 { 0 }
    }

    /// Returns an identifier with the same random bits and another time.
    package func moved(to milliseconds: Int64) -> UploadID {
        var generator = SystemRandomNumberGenerator()
        let time = UploadID(milliseconds: milliseconds, using: &generator).text.prefix(Self.timeLength)
        return UploadID(text: String(time) + randomText)
    }

    private init(text: String) {
        self.text = text
    }

    /// The random bits as sixteen characters, which are different for each upload.
    package var randomText: Substring { text.dropFirst(Self.timeLength) }

    /// Replaces each character with its opposite in the alphabet, so that later identifiers sort first. A second call
    /// restores the text.
    package static func inverted(_ text: some StringProtocol) -> String {
        let bytes = text.utf8.map { byte in
            alphabet.firstIndex(of: byte).map { alphabet[alphabet.count - 1 - $0] } ?? byte
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    package var time: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// The time of the record, in milliseconds since 1970.
    var milliseconds: Int64 {
        text.utf8.prefix(Self.timeLength).reduce(0) { time, byte in
            time << 5 | Int64(Self.alphabet.firstIndex(of: byte) ?? 0)
        }
    }

    private static let length = 26
    private static let timeLength = 10
    private static let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let id = UploadID(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "No upload's identifier")
        }
        self = id
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }

    public static func < (left: UploadID, right: UploadID) -> Bool {
        left.text < right.text
    }

    public var description: String { text }
}

/// Makes the identifiers of a store. Each is greater than the previous one, even if the clock stops or is set back.
///
/// A store of your own makes a source when it is opened, and gets an identifier from it for each commit:
///
/// ```swift
/// let identifiers = UploadIDSource(after: try await newestRecords().identifiers)
/// let (id, time) = identifiers.next()
/// ```
public final class UploadIDSource: Sendable {
    private let last: Atomic<Int64>

    /// The latest valid time in an identifier, the end of the year 9999, in milliseconds since 1970.
    fileprivate static let latestMilliseconds: Int64 = 253_402_300_799_999

    /// Makes a source.
    ///
    /// - Parameter known: All identifiers in use, or the newest of them. Identifiers with an impossible time are
    ///   ignored, because no valid identifiers could follow them.
    public init(after known: [UploadID]) {
        last = Atomic(known.lazy.map(\.milliseconds).filter { $0 <= Self.latestMilliseconds }.max() ?? 0)
    }

    /// Returns a new identifier, which is greater than all previous ones, and its time.
    public func next() -> (id: UploadID, time: Date) {
        let now = Date()
        return (next(now: Int64(now.timeIntervalSince1970 * 1000)), now)
    }

    /// - Parameter now: The current time in milliseconds since 1970.
    func next(now: Int64) -> UploadID {
        var generator = SystemRandomNumberGenerator()
        return UploadID(milliseconds: nextMilliseconds(now: now), using: &generator)
    }

    /// Returns a time, in milliseconds since 1970, that no previous identifier of this source has.
    package func nextMilliseconds(now: Int64) -> Int64 {
        var known = last.load(ordering: .relaxed)
        while true {
            let next = max(now, known + 1)
            let (isTaken, latest) = last.compareExchange(expected: known, desired: next, ordering: .relaxed)
            if isTaken { return next }
            known = latest
        }
    }
}
