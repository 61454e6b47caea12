/// How large appends may be, as far as the fate of earlier ones shows. Proxies have limits that no response names, and
/// some pass on nothing of a request before they have all of it: then an append that is cut has been in vain.
struct AppendSize: Sendable, Hashable {
    /// The sizes of appends once one has failed for no known reason.
    let cautious: ClosedRange<Int64>

    /// The largest append to try, in bytes; `nil` if none has failed yet.
    private(set) var maximum: Int64?

    /// The size at which an append has passed after larger ones had failed, in bytes, if that says something about
    /// other uploads.
    private(set) var passed: Int64?

    /// The append that was interrupted last, until the server says what it has got of it.
    private var interrupted: Range<Int64>?

    /// The number of interruptions in a row at the same offset, of which the server got nothing.
    private var vainAttempts = 0

    /// Whether appends have failed because of their size, as far as one can tell.
    private var isLimit = false

    init(_ cautious: ClosedRange<Int64>) {
        self.cautious = cautious
    }

    /// Begins with the size that has passed in other uploads.
    mutating func begin(with known: Int64) {
        if maximum == nil { maximum = known }
    }

    /// Records that an append was refused as too large, without a limit.
    ///
    /// - Parameters:
    ///   - count: The number of bytes of the append.
    ///   - minimum: The smallest append that the server accepts.
    /// - Returns: Whether a smaller append is worth trying.
    mutating func noteRefusal(of count: Int64, minimum: Int64) -> Bool {
        isLimit = true
        return lower(from: count, minimum: minimum)
    }

    /// Records that an append was interrupted, or that a proxy got no response to it.
    mutating func noteInterruption(of range: Range<Int64>) {
        interrupted = range
    }

    /// Records how much the server has after an interruption.
    ///
    /// One append in vain is reason enough for smaller ones, so that something of the next one arrives. Below the first
    /// of the cautious sizes, only a second one at the same offset is: the network may have broken by chance.
    mutating func noteOffset(_ offset: Int64, minimum: Int64) {
        guard let range = interrupted, !range.isEmpty else { return }
        interrupted = nil
        guard offset == range.lowerBound else {
            vainAttempts = 0
            return
        }
        vainAttempts += 1
        let count = range.upperBound - range.lowerBound
        if vainAttempts > 1 { isLimit = true }
        if vainAttempts > 1 || count > cautious.upperBound { _ = lower(from: count, minimum: minimum) }
    }

    /// Records that an append was accepted.
    mutating func noteSuccess(of count: Int64) {
        interrupted = nil
        vainAttempts = 0
        if isLimit, count == maximum { passed = count }
    }

    private mutating func lower(from count: Int64, minimum: Int64) -> Bool {
        let smallest = max(cautious.lowerBound, minimum)
        guard count > smallest else { return false }
        let lower = max(count > cautious.upperBound ? cautious.upperBound : count / 2, smallest)
        guard lower < maximum ?? .max else { return false }
        maximum = lower
        return true
    }
}
