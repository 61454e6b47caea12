import NIOCore
import PostcardForm

/// A file whose first bytes have arrived, or all of it.
struct IncomingFile {
    let name: String
    let filename: String
    private(set) var contentType: String
    /// The media type that the first bytes show, if it contradicts the client's.
    private(set) var detectedType: String?
    let beginning: ByteBuffer

    init(_ header: PartHeader, beginning: ByteBuffer) {
        name = header.name
        filename = header.filename ?? ""
        contentType = header.contentType ?? MediaType.octetStream.value
        self.beginning = beginning
        let first = beginning.readableBytesView.prefix(MediaType.firstBytesCount)
        // The declared type need not be read if the first bytes show none.
        if let found = MediaType.forFirstBytes(first), let declared = try? MediaType(contentType),
            declared.isContradicted(by: found)
        {
            detectedType = found.value
        }
    }

    /// The same file with the type that its bytes show.
    var corrected: IncomingFile {
        var file = self
        file.contentType = detectedType ?? contentType
        file.detectedType = nil
        return file
    }
}
