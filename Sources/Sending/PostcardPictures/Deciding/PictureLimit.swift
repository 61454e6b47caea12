public import PostcardForm

/// The bytes and pixels that a picture may have.
///
/// ```swift
/// var limit = PictureLimit(maximumBytes: 1_000_000)
/// limit.acceptedTypes = [.jpeg]
/// let picture = try await PictureFitter().fit(photo, to: limit)
/// ```
///
/// A picture within the limit stays as it is, if the receiver accepts its type. Any other becomes the best JPEG that
/// fits: scaled to ``maximumEdge`` first, never up, then with a quality from 82 down to 50, then with the next smaller
/// edge, down to 640 pixels. Qualities are those of libjpeg on all platforms.
public struct PictureLimit: Sendable, Hashable, Codable {
    /// The maximum size of the file, in bytes.
    public var maximumBytes: Int64

    /// The maximum length of the longer edge, in pixels. Defaults to 2,560.
    public var maximumEdge: Int

    /// The types that the receiver accepts. A picture of another type becomes a JPEG, which is accepted always.
    /// Defaults to what every browser shows: JPEG, PNG, WebP and GIF. To send the photos of iPhones as they are, add
    /// `.heic`.
    public var acceptedTypes: Set<MediaType>

    /// The maximum number of pixels of a picture that is decoded. A file of a few bytes may claim any number, so this
    /// is checked before any memory is reserved. Defaults to 100 million.
    public var maximumPixels: Int64

    /// What happens to a picture that cannot be made to fit. Defaults to ``Failure/fail``.
    public var onFailure: Failure

    /// What happens to a picture that cannot be read or cannot be made to fit.
    public enum Failure: String, Sendable, Hashable, Codable {
        /// ``PictureFitError`` is thrown.
        case fail
        /// The original is the result, even if it exceeds the limit.
        case sendOriginal
    }

    /// Makes a limit.
    ///
    /// - Parameters:
    ///   - maximumBytes: The maximum size of the file, in bytes.
    ///   - maximumEdge: The maximum length of the longer edge, in pixels. Defaults to 2,560.
    ///   - acceptedTypes: The types that the receiver accepts. Defaults to JPEG, PNG, WebP and GIF.
    ///   - maximumPixels: The maximum number of pixels of a picture that is decoded. Defaults to 100 million.
    ///   - onFailure: What happens to a picture that cannot be made to fit. Defaults to ``Failure/fail``.
    public init(
        maximumBytes: Int64, maximumEdge: Int = 2560, acceptedTypes: Set<MediaType> = [.jpeg, .png, .webP, .gif],
        maximumPixels: Int64 = 100_000_000, onFailure: Failure = .fail
    ) {
        self.maximumBytes = maximumBytes
        self.maximumEdge = maximumEdge
        self.acceptedTypes = acceptedTypes
        self.maximumPixels = maximumPixels
        self.onFailure = onFailure
    }
}

/// The pixels of a picture.
public struct PictureSize: Sendable, Hashable, CustomStringConvertible {
    /// The pixels of a row.
    public let width: Int
    /// The number of rows.
    public let height: Int

    /// Makes a size.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The pixels of the longer edge.
    public var longerEdge: Int { max(width, height) }

    /// The number of pixels: width times height.
    public var pixels: Int64 { Int64(width).multipliedReportingOverflow(by: Int64(height)).partialValue }

    /// The size as a person writes it, such as `4032×3024`.
    public var description: String { "\(width)×\(height)" }

    /// The size with a shorter longer edge and the same shape; at least one pixel each way, and never larger.
    func scaled(toEdge edge: Int) -> PictureSize {
        guard edge < longerEdge, longerEdge > 0 else { return self }
        func scaled(_ length: Int) -> Int {
            let exact = Double(length) * Double(edge) / Double(longerEdge)
            return min(max(Int(clamping: Int64(exact.rounded())), 1), length)
        }
        return PictureSize(width: scaled(width), height: scaled(height))
    }
}

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
