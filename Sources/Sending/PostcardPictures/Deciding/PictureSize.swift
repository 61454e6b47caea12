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
