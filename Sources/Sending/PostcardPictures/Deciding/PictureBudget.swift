/// Divides the bytes that a whole form may have among its pictures.
///
/// ```swift
/// var budget = PictureBudget(bytes: 5_000_000, among: [120_000, 3_400_000, 9_800_000])
/// for index in photos.indices {
///     let limit = PictureLimit(maximumBytes: budget.share(of: index))
///     let picture = try await fitter.fit(photos[index], to: limit)
///     budget.spend(picture.bytes, on: index)
/// }
/// ```
///
/// A larger picture gets more, but not in proportion: shares grow with the square root of the size, so that a small
/// picture among large ones is not ruined. No picture gets more than it has, as long as others lack bytes. What a
/// picture leaves over goes to those that follow.
public struct PictureBudget: Sendable, Hashable {
    private var left: Int64
    private let sizes: [Int64]
    /// The bytes that a picture needs, once that is known.
    private var spent: [Int64?]

    /// Makes a budget.
    ///
    /// - Parameters:
    ///   - bytes: The bytes for all pictures: what the form may have, without its fields, headers and delimiters.
    ///   - sizes: The bytes of each original.
    public init(bytes: Int64, among sizes: [Int64]) {
        left = max(bytes, 0)
        self.sizes = sizes.map { max($0, 1) }
        spent = Array(repeating: nil, count: sizes.count)
    }

    /// The maximum number of bytes that a picture may have: 0 if nothing is left.
    ///
    /// The shares of all pictures that are not prepared yet have together at most the bytes that are left.
    ///
    /// - Parameter index: The picture's place in the list of sizes. One that is not in it has no share.
    public func share(of index: Int) -> Int64 {
        guard sizes.indices.contains(index) else { return 0 }
        if let known = spent[index] { return known }
        var open = sizes.indices.filter { spent[$0] == nil }
        let total = open.reduce(0) { $0 + Double(sizes[$1]) }
        // There is enough for all: what is over is shared as well, because another type may need more bytes.
        if total <= Double(left) { return whole(Double(left) * Double(sizes[index]) / total) }

        var rest = Double(left)
        while true {
            let weights = open.reduce(0) { $0 + Double(sizes[$1]).squareRoot() }
            guard weights > 0 else { return 0 }
            let factor = rest / weights
            let content = Set(open.filter { Double(sizes[$0]) <= factor * Double(sizes[$0]).squareRoot() })
            if content.contains(index) { return sizes[index] }
            guard !content.isEmpty else { return whole(factor * Double(sizes[index]).squareRoot()) }
            rest -= content.reduce(0) { $0 + Double(sizes[$1]) }
            open.removeAll { content.contains($0) }
        }
    }

    /// Records the bytes that a picture needs.
    ///
    /// - Parameters:
    ///   - bytes: The bytes of the file that is sent.
    ///   - index: The picture's place in the list of sizes.
    public mutating func spend(_ bytes: Int64, on index: Int) {
        guard sizes.indices.contains(index) else { return }
        left = max(left + (spent[index] ?? 0) - bytes, 0)
        spent[index] = bytes
    }

    /// Rounds down, but not what rounding errors have made of a whole number.
    private func whole(_ bytes: Double) -> Int64 {
        // As a Double, the greatest Int64 is one more than an Int64 can have.
        Int64(exactly: (bytes + 0.001).rounded(.down)).map { min($0, left) } ?? left
    }
}
