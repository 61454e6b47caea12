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
        // Most files begin with nothing that is known, and then their type need not be read.
        let isKnown = MediaType.forFirstBytes(first) != nil
        detectedType = isKnown ? (try? MediaType(contentType))?.contradicted(by: first)?.value : nil
    }

    /// The same file with the type that its bytes show.
    var corrected: IncomingFile {
        var file = self
        file.contentType = detectedType ?? contentType
        file.detectedType = nil
        return file
    }
}
