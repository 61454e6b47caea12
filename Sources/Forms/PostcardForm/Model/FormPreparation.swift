public import PostcardFoundation

/// Changes parts of a form before it is sent, such as photos that must fit the server's limit.
///
/// Set a preparation as ``FormPart/preparation``; clients and queues prepare a form before they lay it out.
/// `PostcardPictures` has `PictureFitting`, a preparation for pictures.
///
/// Parts with equal preparations are prepared in one call, so that they can divide the available bytes.
public protocol FormPreparation: Sendable, Hashable {
    /// Whether the result depends on the server's limits. If it does, and a server refuses the form with a smaller
    /// limit than expected, the form is prepared and sent again.
    var followsServerLimit: Bool { get }

    /// Data that lets a ``PickedItemFinder`` make the preparation again in a later run of the app, for queued forms
    /// with picked items. Defaults to `nil`: a later run cannot complete such a form.
    var record: Data? { get }

    /// Prepares parts.
    ///
    /// - Parameters:
    ///   - parts: The parts, in the order of the form.
    ///   - context: The facts about the rest of the form and about the server.
    /// - Returns: The prepared parts, in the same number and order.
    /// - Throws: Any error; the upload then fails with it. `CancellationError` if the task is cancelled. If the server
    ///   has refused the form as too large, the upload fails with that refusal, and your error is the underlying error.
    func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart]
}

extension FormPreparation {
    public var record: Data? { nil }
}

/// The facts that a preparation needs: the size of the rest of the form, and the server's limits.
public struct FormPreparationContext: Sendable {
    /// The number of bytes in the body without the contents of the parts to prepare: delimiters, headers and all other
    /// parts. `nil` if there is a stream of unknown length.
    ///
    /// The number includes 128 bytes for each part to prepare, because its filename and type may get longer.
    public let otherBytes: Int64?

    /// The maximum number of bytes in the contents of all parts to prepare, by the server's limits on the body and on
    /// all files. `nil` if no such limit is known.
    public let maximumBytes: Int64?

    /// The known limits of the server.
    public let limits: FormSizeLimits

    /// The folder for new files. It is removed after the upload.
    public let folder: URL

    /// Makes a context, for tests of a preparation.
    ///
    /// - Parameters:
    ///   - otherBytes: The number of bytes in the rest of the body; `nil` if unknown.
    ///   - maximumBytes: The maximum number of bytes in all parts to prepare; `nil` if no limit is known.
    ///   - limits: The limits of the server. Defaults to none.
    ///   - folder: The folder for new files. The caller removes it.
    public init(otherBytes: Int64?, maximumBytes: Int64?, limits: FormSizeLimits = FormSizeLimits(), folder: URL) {
        self.otherBytes = otherBytes
        self.maximumBytes = maximumBytes
        self.limits = limits
        self.folder = folder
    }
}

/// The size limits of a server on a form and its files, if the client knows them.
public struct FormSizeLimits: Sendable, Hashable {
    /// The maximum size of the whole body, in bytes; `nil` if unknown.
    public var maximumBodyBytes: Int64?

    /// The maximum size of any file, in bytes; `nil` if unknown.
    public var maximumFileBytes: Int64?

    /// The maximum size of all files together, in bytes; `nil` if unknown.
    public var maximumBytesOfAllFiles: Int64?

    /// The maximum size of a file, in bytes, by its field name.
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

    /// The maximum size of a file with the given field name, in bytes; `nil` if no limit is known.
    public func maximumBytes(ofFileNamed name: String) -> Int64? {
        Self.smaller(maximumBytesByName[name], maximumFileBytes)
    }

    /// Combines these limits with others. Of two limits on the same size, the smaller one applies.
    package func lowered(by other: FormSizeLimits) -> FormSizeLimits {
        FormSizeLimits(
            maximumBodyBytes: Self.smaller(maximumBodyBytes, other.maximumBodyBytes),
            maximumFileBytes: Self.smaller(maximumFileBytes, other.maximumFileBytes),
            maximumBytesOfAllFiles: Self.smaller(maximumBytesOfAllFiles, other.maximumBytesOfAllFiles),
            maximumBytesByName: maximumBytesByName.merging(other.maximumBytesByName) { min($0, $1) })
    }

    private static func smaller(_ one: Int64?, _ other: Int64?) -> Int64? { [one, other].compactMap(\.self).min() }
}
