public import PostcardForm

/// The maximum size of a picture, in bytes and pixels.
///
/// ```swift
/// var limit = PictureLimit(maximumBytes: 1_000_000)
/// limit.acceptedTypes = [.jpeg]
/// let picture = try await PictureFitter().fit(photo, to: limit)
/// ```
///
/// A picture within the limit stays unchanged if the server accepts its type. Any other picture becomes the best JPEG
/// that fits. It is first scaled down to ``maximumEdge``. Then qualities from 82 down to 50 are tried, and then the
/// next smaller edge, down to 640 pixels. Qualities are those of libjpeg on all platforms.
public struct PictureLimit: Sendable, Hashable, Codable {
    /// The maximum size of the file, in bytes.
    public var maximumBytes: Int64

    /// The maximum length of the longer edge, in pixels. Defaults to 2,560.
    public var maximumEdge: Int

    /// The types that the server accepts. A picture of another type becomes a JPEG, which is always accepted. Defaults
    /// to the types that every browser shows: JPEG, PNG, WebP and GIF. Add `.heic` to send the photos of iPhones
    /// unchanged.
    public var acceptedTypes: Set<MediaType>

    /// The maximum number of pixels of a picture to decode, which is checked before memory is reserved. A small file
    /// can announce any number of pixels. Defaults to 100 million.
    public var maximumPixels: Int64

    /// The handling of a picture that cannot be read or made to fit. Defaults to ``Failure/fail``.
    public var onFailure: Failure

    /// The handling of a picture that cannot be read or made to fit.
    public enum Failure: String, Sendable, Hashable, Codable {
        /// ``PictureFitError`` is thrown.
        case fail
        /// The original is used, even if it exceeds the limit.
        case sendOriginal
    }

    /// Makes a limit.
    ///
    /// - Parameters:
    ///   - maximumBytes: The maximum size of the file, in bytes.
    ///   - maximumEdge: The maximum length of the longer edge, in pixels. Defaults to 2,560.
    ///   - acceptedTypes: The types that the server accepts. Defaults to JPEG, PNG, WebP and GIF.
    ///   - maximumPixels: The maximum number of pixels of a picture to decode. Defaults to 100 million.
    ///   - onFailure: The handling of a picture that cannot be made to fit. Defaults to ``Failure/fail``.
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

/// The size of a picture, in pixels.
public struct PictureSize: Sendable, Hashable, CustomStringConvertible {
    /// The number of pixels in a row.
    public let width: Int
    /// The number of rows.
    public let height: Int

    /// Makes a size.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The length of the longer edge, in pixels.
    public var longerEdge: Int { max(width, height) }

    /// The number of pixels.
    public var pixels: Int64 { Int64(width).multipliedReportingOverflow(by: Int64(height)).partialValue }

    /// The size as text, such as `4032×3024`.
    public var description: String { "\(width)×\(height)" }

    /// The size scaled down to a longer edge, with the same aspect ratio and at least one pixel in each direction. It
    /// is never larger than this size.
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
/// A larger picture gets more bytes, but only in proportion to the square root of its size. So a small picture among
/// large ones gets enough. No picture gets more bytes than its original has while other pictures need them. Bytes that
/// a picture does not use go to later pictures.
public struct PictureBudget: Sendable, Hashable {
    private var left: Int64
    private let sizes: [Int64]
    /// The number of bytes that each picture needs; `nil` if that is not known yet.
    private var spent: [Int64?]

    /// Makes a budget.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes for all pictures, which excludes the form's fields, headers and delimiters.
    ///   - sizes: The size of each original, in bytes.
    public init(bytes: Int64, among sizes: [Int64]) {
        left = max(bytes, 0)
        self.sizes = sizes.map { max($0, 1) }
        spent = Array(repeating: nil, count: sizes.count)
    }

    /// The maximum number of bytes for a picture; 0 if no bytes are left. The shares of all pictures that are not
    /// prepared yet add up to at most the remaining bytes.
    ///
    /// - Parameter index: The index of the picture in the list of sizes. The share for an index outside the list is 0.
    public func share(of index: Int) -> Int64 {
        guard sizes.indices.contains(index) else { return 0 }
        if let known = spent[index] { return known }
        var open = sizes.indices.filter { spent[$0] == nil }
        let total = open.reduce(0) { $0 + Double(sizes[$1]) }
        // All originals fit. The bytes that remain are divided too, because a picture may become larger as a JPEG.
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
    ///   - bytes: The size of the file to send, in bytes.
    ///   - index: The index of the picture in the list of sizes.
    public mutating func spend(_ bytes: Int64, on index: Int) {
        guard sizes.indices.contains(index) else { return }
        left = max(left + (spent[index] ?? 0) - bytes, 0)
        spent[index] = bytes
    }

    /// Rounds down to a whole number. A number that is slightly too small because of rounding errors is rounded up.
    private func whole(_ bytes: Double) -> Int64 {
        // The greatest Int64 becomes a Double that is one greater, and so does not fit into an Int64.
        Int64(exactly: (bytes + 0.001).rounded(.down)).map { min($0, left) } ?? left
    }
}
