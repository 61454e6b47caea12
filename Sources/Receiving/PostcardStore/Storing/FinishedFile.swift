public import SystemPackage

/// A complete file of a form that is not yet a record.
public struct FinishedFile: Sendable {
    /// The name of the form's field.
    public let name: String
    /// The client's name for the file. Anyone can choose it: never use it as a path.
    public let filename: String
    /// The media type that the client sent.
    public let contentType: String
    /// The SHA-256 of the content, in lower-case hexadecimal.
    public let sha256: String
    /// The content.
    public let content: any StoredFile
    /// The path of the content; `nil` if the file is empty, or the store does not use the file system.
    public let path: FilePath?

    /// Describes a file, for your own store.
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
