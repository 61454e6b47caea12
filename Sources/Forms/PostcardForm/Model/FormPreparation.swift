public import PostcardFoundation

/// Changes parts of a form before it is sent, such as photos that must fit the server's limit.
///
/// Set it as ``FormPart/preparation``. Clients and queues prepare a form before they lay it out. `PostcardPictures` has
/// the preparation for pictures, `PictureFitting`.
///
/// All parts of a form whose preparations are equal are prepared in one call, so that they can share the bytes that the
/// form may have.
public protocol FormPreparation: Sendable, Hashable {
    /// Whether the result depends on the server's limits. If a server refuses the form and reports a smaller limit than
    /// was known, the form is prepared and sent again.
    var followsServerLimit: Bool { get }

    /// By what a ``PickedItemFinder`` makes the preparation again in a later run of the app, for a form with picked
    /// items in a queue. Defaults to `nil`: such a form is not completed by a later run.
    var record: Data? { get }

    /// Prepares parts.
    ///
    /// - Parameters:
    ///   - parts: The parts, in the order of the form.
    ///   - context: What is known of the rest of the form and of the server.
    /// - Returns: As many parts, in the same order.
    /// - Throws: An error that fails the upload, unchanged. `CancellationError` if the task is cancelled. If the form
    ///   is prepared again because the server has refused it, the upload fails with the refusal instead, and this error
    ///   is its underlying one.
    func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart]
}

extension FormPreparation {
    public var record: Data? { nil }
}

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

/// How large a form and its files may be for a server, as far as a client knows.
public struct FormSizeLimits: Sendable, Hashable {
    /// The maximum size of the whole body, in bytes; `nil` if unknown.
    public var maximumBodyBytes: Int64?

    /// The maximum size of any file, in bytes; `nil` if unknown.
    public var maximumFileBytes: Int64?

    /// The maximum size of all files together, in bytes; `nil` if unknown.
    public var maximumBytesOfAllFiles: Int64?

    /// The maximum size of each file, in bytes, by the name of its field.
    public var maximumBytesByName: [String: Int64]

    /// Makes limits. By default none is known.
    public init(
        maximumBodyBytes: Int64? = nil, maximumFileBytes: Int64? = nil, maximumBytesOfAllFiles: Int64? = nil,
        maximumBytesByName: [String: Int64] = [:]
    ) {
        self.maximumBodyBytes = maximumBodyBytes
        self.maximumFileBytes = maximumFileBytes
        self.maximumBytesOfAllFiles = maximumBytesOfAllFiles
        self.maximumBytesByName = maximumBytesByName
    }

    /// The maximum size of a file, in bytes, by the name of its field; `nil` if no limit is known.
    public func maximumBytes(ofFileNamed name: String) -> Int64? {
        Self.smaller(maximumBytesByName[name], maximumFileBytes)
    }

    /// Both limits at once: the smaller of each.
    package func lowered(by other: FormSizeLimits) -> FormSizeLimits {
        FormSizeLimits(
            maximumBodyBytes: Self.smaller(maximumBodyBytes, other.maximumBodyBytes),
            maximumFileBytes: Self.smaller(maximumFileBytes, other.maximumFileBytes),
            maximumBytesOfAllFiles: Self.smaller(maximumBytesOfAllFiles, other.maximumBytesOfAllFiles),
            maximumBytesByName: maximumBytesByName.merging(other.maximumBytesByName) { min($0, $1) })
    }

    private static func smaller(_ one: Int64?, _ other: Int64?) -> Int64? { [one, other].compactMap(\.self).min() }
}
