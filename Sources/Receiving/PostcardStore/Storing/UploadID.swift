import PostcardForm
public import PostcardFoundation
import Synchronization

/// Identifies a stored upload: 26 lower-case letters and digits.
///
/// The first ten characters are the time of the record in milliseconds since 1970. The other sixteen are 80 random
/// bits. Both use Crockford's base 32. Identifiers of a store sort in the order of their records, and a known
/// identifier does not help to guess another.
public struct UploadID: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
    /// The identifier as text, as it is written in paths and records.
    public let text: String

    /// Reads an identifier from a path or a record.
    ///
    /// - Returns: `nil` if the text is not an identifier. Identifiers contain no characters that are special in file
    ///   systems.
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
        // Eight characters of five bits each come from one number, because the system's random numbers are slow.
        for _ in 0..<2 {
            let number = generator.next()
            for shift in stride(from: 0, to: 40, by: 5) {
                bytes.append(Self.alphabet[Int(number >> UInt64(shift) & 31)])
            }
        }
        text = String(decoding: bytes, as: UTF8.self)
    }

    /// The smallest identifier with a time. It is greater than all identifiers with an earlier time.
    ///
    /// - Parameter milliseconds: Milliseconds since 1970, not negative.
    package init(earliestAt milliseconds: Int64) {
        var zeros = Zeros()
        self.init(milliseconds: milliseconds, using: &zeros)
    }

    /// The smallest identifier with the millisecond after another identifier's time.
    package init(earliestAfter id: UploadID) {
        self.init(earliestAt: id.milliseconds + 1)
    }

    /// An upper bound, greater than all identifiers with possible times.
    package static let end = UploadID(earliestAt: UploadIDSource.latestMilliseconds + 1)

    private struct Zeros: RandomNumberGenerator {
        func next() -> UInt64 { 0 }
    }

    /// The identifier with the same random bits and another time.
    package func moved(to milliseconds: Int64) -> UploadID {
        var generator = SystemRandomNumberGenerator()
        let time = UploadID(milliseconds: milliseconds, using: &generator).text.prefix(Self.timeLength)
        return UploadID(text: String(time) + randomText)
    }

    private init(text: String) {
        self.text = text
    }

    /// The random bits as sixteen characters. No other upload has the same.
    package var randomText: Substring { text.dropFirst(Self.timeLength) }

    /// The text with each character replaced by its counterpart in the reversed alphabet, so that texts of later
    /// identifiers sort first. Inverting twice gives the original text.
    package static func inverted(_ text: some StringProtocol) -> String {
        let bytes = text.utf8.map { byte in
            alphabet.firstIndex(of: byte).map { alphabet[alphabet.count - 1 - $0] } ?? byte
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The time of the record.
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

/// Makes the identifiers of a store. Each is greater than the one before, even if the clock stops or is set back.
///
/// A store of your own makes a source when it is opened, and gets an identifier from it for each commit:
///
/// ```swift
/// let identifiers = UploadIDSource(after: try await newestRecords().identifiers)
/// let (id, time) = identifiers.next()
/// ```
public final class UploadIDSource: Sendable {
    private let last: Atomic<Int64>

    /// The latest possible time in an identifier, the end of the year 9999. The clock of a store never shows a later
    /// time.
    fileprivate static let latestMilliseconds: Int64 = 253_402_300_799_999

    /// Makes a source.
    ///
    /// - Parameter known: The identifiers that are already in use, or the newest of them. Identifiers with an
    ///   impossible time are ignored, because no identifiers would fit after them. They were not made by a store.
    public init(after known: [UploadID]) {
        last = Atomic(known.lazy.map(\.milliseconds).filter { $0 <= Self.latestMilliseconds }.max() ?? 0)
    }

    /// The next identifier, which is greater than all before it, and its time.
    public func next() -> (id: UploadID, time: Date) {
        let now = Date()
        return (next(now: Int64(now.timeIntervalSince1970 * 1000)), now)
    }

    /// - Parameter now: Milliseconds since 1970.
    func next(now: Int64) -> UploadID {
        var generator = SystemRandomNumberGenerator()
        return UploadID(milliseconds: nextMilliseconds(now: now), using: &generator)
    }

    /// A time that no identifier of this source has had.
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
