/// A form's body in memory, and what a reader must find.
public struct Body: Sendable {
    /// What separates its parts.
    public let boundary: String
    /// All of it.
    public let bytes: [UInt8]
    /// How many parts it has.
    public let partCount: Int
    /// How many bytes its parts have together.
    public let contentLength: Int

    /// Lays out parts, each with the header lines of its own.
    init(boundary: String, parts: some Sequence<(header: String, content: [UInt8])>) {
        self.boundary = boundary
        var bytes: [UInt8] = []
        var partCount = 0
        var contentLength = 0
        for part in parts {
            bytes += "\(partCount == 0 ? "" : "\r\n")--\(boundary)\r\n\(part.header)\r\n\r\n".utf8
            bytes += part.content
            partCount += 1
            contentLength += part.content.count
        }
        bytes += "\r\n--\(boundary)--\r\n".utf8
        self.bytes = bytes
        self.partCount = partCount
        self.contentLength = contentLength
    }

    /// A form of one file.
    init(boundary: String = Body.usualBoundary, file content: [UInt8]) {
        self.init(boundary: boundary, parts: [(Self.fileHeader, content)])
    }

    /// As long as the boundaries that Postcard makes.
    public static let usualBoundary = "Postcard-l5Zq0X2kP8aVt7RwYdMc3NbE"

    /// The header of a part that is a file, without the blank line.
    public static let fileHeader = """
        Content-Disposition: form-data; name="petImage"; filename="choco.jpg"\r\nContent-Type: image/jpeg
        """
}
