public import SystemPackage

/// A file that was received whole, before its form becomes a record.
public struct FinishedFile: Sendable {
    /// The name of the form's field.
    public let name: String
    /// The sender's name for the file. It is data from a stranger: never use it as a path.
    public let filename: String
    /// The media type that the sender gave.
    public let contentType: String
    /// The SHA-256 of the content, in lower-case hexadecimal.
    public let sha256: String
    /// The content.
    public let content: any StoredFile
    /// Where the content lies; `nil` where the store keeps it elsewhere than in the file system, or it is empty.
    public let path: FilePath?

    /// For stores of one's own.
    public init(
        name: String, filename: String, contentType: String, sha256: String, content: any StoredFile, path: FilePath?
    ) {
        self.name = name
        self.filename = filename
        self.contentType = contentType
        self.sha256 = sha256
        self.content = content
        self.path = path
    }
}

/// What a screening says of a file.
public enum ScreeningVerdict: Sendable, Hashable {
    /// The file may be kept.
    case accepted
    /// The form is refused, and its sender is told why in a sentence.
    case refused(reason: String)
}
