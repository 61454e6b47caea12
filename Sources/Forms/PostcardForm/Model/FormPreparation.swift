public import PostcardFoundation

/// Changes parts of a form before it is sent, such as photos that must fit the server's limit.
///
/// Set it as ``FormPart/preparation``. Clients and queues prepare a form before they lay it out. `PostcardPictures` has
/// `PictureFitting`, a preparation for pictures.
///
/// Parts of a form whose preparations are equal are prepared in one call, so that they can share the available bytes.
public protocol FormPreparation: Sendable, Hashable {
    /// Whether the result depends on the server's limits. If a server refuses the form and reports a limit that is
    /// smaller than the known limit, the form is prepared and sent again.
    var followsServerLimit: Bool { get }

    /// The data from which a ``PickedItemFinder`` makes the preparation again in a later run of the app, for a form
    /// with picked items in a queue. Defaults to `nil`: a later run cannot complete such a form.
    var record: Data? { get }

    /// Prepares parts.
    ///
    /// - Parameters:
    ///   - parts: The parts, in the order of the form.
    ///   - context: The facts about the rest of the form and about the server.
    /// - Returns: The prepared parts, in the same number and order.
    /// - Throws: An error that fails the upload, unchanged. `CancellationError` if the task is cancelled. If the form
    ///   is prepared again after the server has refused it, the upload fails with the refusal instead, and the
    ///   preparation's error becomes the underlying error.
    func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart]
}

extension FormPreparation {
    public var record: Data? { nil }
}

/// The facts that a preparation needs: the size of the rest of the form, and the server's limits.
public struct FormPreparationContext: Sendable {
    /// The number of bytes of the body without the contents of the parts to prepare: delimiters, headers and all other
    /// parts. `nil` if there is a stream of unknown length.
    ///
    /// The number includes 128 bytes for each part to prepare, because its filename and type may get longer.
    public let otherBytes: Int64?

    /// The maximum number of bytes that the contents of the parts to prepare may have together, by the server's limits
    /// on the body and on all files. `nil` if no such limit is known.
    public let maximumBytes: Int64?

    /// The known limits of the server.
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

/// The size limits of a server on a form and its files, as far as a client knows them.
public struct FormSizeLimits: Sendable, Hashable {
    /// The maximum size of the whole body, in bytes; `nil` if unknown.
    public var maximumBodyBytes: Int64?

    /// The maximum size of any file, in bytes; `nil` if unknown.
    public var maximumFileBytes: Int64?

    /// The maximum size of all files together, in bytes; `nil` if unknown.
    public var maximumBytesOfAllFiles: Int64?

    /// The maximum size of each file, in bytes, by the name of its field.
    public var maximumBytesByName: [String: Int64]

    /// Makes limits. By default no limit is known.
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

    /// The limits that satisfy both sets of limits: the smaller of each pair.
    package func lowered(by other: FormSizeLimits) -> FormSizeLimits {
        FormSizeLimits(
            maximumBodyBytes: Self.smaller(maximumBodyBytes, other.maximumBodyBytes),
            maximumFileBytes: Self.smaller(maximumFileBytes, other.maximumFileBytes),
            maximumBytesOfAllFiles: Self.smaller(maximumBytesOfAllFiles, other.maximumBytesOfAllFiles),
            maximumBytesByName: maximumBytesByName.merging(other.maximumBytesByName) { min($0, $1) })
    }

    private static func smaller(_ one: Int64?, _ other: Int64?) -> Int64? { [one, other].compactMap(\.self).min() }
}
