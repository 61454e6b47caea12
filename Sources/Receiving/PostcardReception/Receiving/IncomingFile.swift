import NIOCore
import PostcardForm
import PostcardStore

/// A file whose first bytes have arrived, or all of it.
struct IncomingFile {
    private(set) var header: UploadRecord.FileHeader
    let beginning: ByteBuffer
    /// What the first bytes show of damage on the way.
    let damage: FileDamage?

    /// Whether the first bytes of a file say what it is, or no more of them are judged.
    static func canJudge(_ beginning: ByteBuffer) -> Bool {
        guard beginning.readableBytes < DamagedStart.bytesCount else { return true }
        return beginning.readableBytes >= MediaType.firstBytesCount
            && MediaType.forFirstBytes(beginning.readableBytesView.prefix(MediaType.firstBytesCount)) != nil
    }

    init(_ part: PartHeader, beginning: ByteBuffer) {
        header = UploadRecord.FileHeader(
            name: part.name, filename: part.filename ?? "", sentFilename: part.sentFilename,
            contentType: part.contentType ?? MediaType.octetStream.value)
        self.beginning = beginning
        let first = beginning.readableBytesView.prefix(MediaType.firstBytesCount)
        if let found = MediaType.forFirstBytes(first) {
            damage = nil
            if let declared = try? MediaType(header.contentType), declared.isContradicted(by: found) {
                header.detectedType = found.value
            }
        } else {
            var start = DamagedStart(contentType: part.contentType, filename: part.filename)
            beginning.withUnsafeReadableBytes { start.read($0) }
            damage = start.damage.flatMap { $0.isProven ? $0 : nil }
            header.damage = damage?.code.rawValue
        }
    }

    /// The same file with the type that its bytes show.
    var corrected: IncomingFile {
        var file = self
        file.header.contentType = header.detectedType ?? header.contentType
        file.header.detectedType = nil
        return file
    }
}
