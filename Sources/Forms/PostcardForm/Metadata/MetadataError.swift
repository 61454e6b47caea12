public import PostcardFoundation
import PostcardPictureFormats

/// Why metadata could not be removed from a file.
public struct MetadataError: Error, Sendable, CustomStringConvertible {
    /// What kind of error it is; stable across versions.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The structure of the file is damaged, or not known here.
        public static let notUnderstood = Code(rawValue: "not-understood")
        /// The file cannot be read.
        public static let fileUnreadable = Code(rawValue: "file-unreadable")

        public var description: String { rawValue }
    }

    /// What kind of error it is.
    public let code: Code

    /// The offset at which the error was found, in bytes from the start of the file.
    public let offset: Int64

    /// The error of reading the file, if that failed.
    public let underlyingError: (any Error)?

    /// What was found, as the end of a sentence.
    let reason: String

    init(_ fault: PictureFault) {
        code = fault.underlyingError == nil ? .notUnderstood : .fileUnreadable
        offset = fault.offset
        reason = fault.reason
        underlyingError = fault.underlyingError
    }

    /// What happened and where, in a sentence.
    public var message: String { "The metadata cannot be removed: \(reason)." }

    /// What to do, in a sentence.
    public var advice: String {
        "Save the picture again with another program, or send it with all its metadata: `metadata: .asIs`, or "
            + "--metadata as-is in a command."
    }

    public var description: String { "\(message) \(advice)" }
}

extension MetadataError: LocalizedError {
    public var errorDescription: String? { message }
    public var recoverySuggestion: String? { advice }
}

extension FormError {
    static func metadata(_ error: MetadataError, path: String?, partIndex: Int) -> FormError {
        FormError(
            .metadataUnreadable, "The metadata of \(path ?? "part \(partIndex)") cannot be removed: \(error.reason).",
            advice: error.advice, path: path, partIndex: partIndex, underlyingError: error)
    }

    static func metadataInStream(partIndex: Int) -> FormError {
        FormError(
            .metadataUnreadable,
            "The metadata of part \(partIndex) cannot be removed: a stream cannot be read before it is sent.",
            advice: "Write it to a file, or send it as it is.", partIndex: partIndex)
    }
}
