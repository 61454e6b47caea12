public import PostcardFoundation

/// What a preparation needs to know of the rest of the form, and of the server.
public struct FormPreparationContext: Sendable {
    /// The number of bytes of the body without the contents of the parts to prepare: delimiters, headers and all other
    /// parts. `nil` if there is a stream of unknown length.
    ///
    /// The number includes 128 bytes for each part to prepare, because its filename and type may get longer.
    public let otherBytes: Int64?

    /// The maximum number of bytes that the contents of the parts to prepare may have together, by the server's limits
    /// on the body and on all files. `nil` if no such limit is known.
    public let maximumBytes: Int64?

    /// The limits of the server, as far as they are known.
    public let limits: FormSizeLimits

    /// The folder for new files. The folder is removed when the upload is over.
    public let folder: URL

    /// Makes a context, for tests of a preparation.
    ///
    /// - Parameters:
    ///   - otherBytes: The number of bytes of the rest of the body; `nil` if unknown.
    ///   - maximumBytes: The maximum number of bytes that the parts may have together; `nil` if no limit is known.
    ///   - limits: The limits of the server. Defaults to none.
    ///   - folder: The folder for new files. The caller removes it.
    public init(otherBytes: Int64?, maximumBytes: Int64?, limits: FormSizeLimits = FormSizeLimits(), folder: URL) {
        self.otherBytes = otherBytes
        self.maximumBytes = maximumBytes
        self.limits = limits
        self.folder = folder
    }
}
