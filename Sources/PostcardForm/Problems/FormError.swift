import SystemPackage

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Why a form cannot be made or sent: something on the sender's own side, found before its bytes reach anyone
/// as a body that looks whole.
///
/// What is wrong with a form that was received is a ``FormProblem``.
public struct FormError: Error, Sendable, CustomStringConvertible {
    /// What kind of error it is; stable across versions.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// There is no file at the path.
        public static let fileMissing = Code(rawValue: "file-missing")
        /// There is something at the path, but no regular file: a directory, a socket, a device.
        public static let fileNotRegular = Code(rawValue: "file-not-regular")
        /// The file may not be read, or reading it failed.
        public static let fileUnreadable = Code(rawValue: "file-unreadable")
        /// The file's size or modification time is no longer what it was when the layout was made.
        public static let fileChanged = Code(rawValue: "file-changed")
        /// The structure of a picture or video is not understood, so its metadata cannot be removed.
        public static let metadataUnreadable = Code(rawValue: "metadata-unreadable")
        /// The URL of a file is another than a file URL.
        public static let notFileURL = Code(rawValue: "not-file-url")
        /// A part's own header fields hold one that the form writes itself.
        public static let reservedHeaderField = Code(rawValue: "reserved-header-field")
        /// A part's name or filename holds a NUL, which receivers refuse.
        public static let invalidName = Code(rawValue: "invalid-name")
        /// A stream gave more or fewer bytes than it had promised.
        public static let streamLength = Code(rawValue: "stream-length")
        /// A stream that can be read only once was to be read again.
        public static let streamConsumed = Code(rawValue: "stream-consumed")
        /// The bytes from an offset were asked for that cannot be reached without what comes before.
        public static let offsetUnreachable = Code(rawValue: "offset-unreachable")
        /// The boundary breaks the rules of RFC 2046 §5.1.1.
        public static let invalidBoundary = Code(rawValue: "invalid-boundary")
        /// The text is no media type.
        public static let invalidMediaType = Code(rawValue: "invalid-media-type")
        /// The boundary's delimiter occurs in a part's content.
        public static let boundaryInContent = Code(rawValue: "boundary-in-content")
        /// The body has more bytes than were to be held in memory.
        public static let bodyTooLarge = Code(rawValue: "body-too-large")

        public var description: String { rawValue }
    }

    /// What kind of error it is.
    public let code: Code

    /// What happened, where, and what to do, in a sentence or two.
    public let message: String

    /// The path of the file, where the error has to do with one.
    public let path: String?

    /// The part that the error has to do with, from 0.
    public let partIndex: Int?

    /// What the operating system said, where it was asked.
    public let underlying: (any Error)?

    private init(
        _ code: Code, _ message: String, path: String? = nil, partIndex: Int? = nil, underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.path = path
        self.partIndex = partIndex
        self.underlying = underlying
    }

    public var description: String { message }
}

extension FormError: LocalizedError {
    public var errorDescription: String? { message }
}

extension FormError {
    /// The file cannot be opened or read, for the reason that the system gave.
    static func file(_ path: String, _ errno: Errno, partIndex: Int) -> FormError {
        switch errno {
        case .noSuchFileOrDirectory, .notDirectory:
            FormError(.fileMissing, "No such file: \(path)", path: path, partIndex: partIndex, underlying: errno)
        default:
            FormError(
                .fileUnreadable, "The file \(path) cannot be read: \(errno)", path: path, partIndex: partIndex,
                underlying: errno)
        }
    }

    static func notRegular(_ path: String, kind: String, partIndex: Int) -> FormError {
        FormError(
            .fileNotRegular, "\(path) is \(kind), and only a regular file can be sent", path: path,
            partIndex: partIndex)
    }

    static func notFileURL(_ url: String, partIndex: Int) -> FormError {
        FormError(
            .notFileURL, "\(url) is no file URL. Download what it names, or send it as a stream.", path: url,
            partIndex: partIndex)
    }

    static func sizeUnknown(_ path: String, partIndex: Int) -> FormError {
        FormError(
            .fileUnreadable, "The file \(path) has bytes and says that it has none. Send it as a stream.", path: path,
            partIndex: partIndex)
    }

    static func reservedHeaderField(_ name: String, partIndex: Int) -> FormError {
        FormError(
            .reservedHeaderField,
            "Part \(partIndex) has a header field \(name) of its own. Set its name, filename and contentType instead.",
            partIndex: partIndex)
    }

    static func nulInName(_ parameter: String, partIndex: Int) -> FormError {
        FormError(
            .invalidName, "The \(parameter) of part \(partIndex) holds a NUL, which receivers refuse. Take it out.",
            partIndex: partIndex)
    }

    static func changed(_ path: String, _ what: String, partIndex: Int) -> FormError {
        FormError(
            .fileChanged, "The file \(path) changed after the form was laid out: \(what). Lay the form out again.",
            path: path, partIndex: partIndex)
    }

    static func metadata(_ error: MetadataError, path: String?, partIndex: Int) -> FormError {
        FormError(
            .metadataUnreadable,
            "The metadata of \(path ?? "part \(partIndex)") cannot be removed: \(error). Save the picture again with "
                + "another program, or send it with all its metadata, as it is.",
            path: path, partIndex: partIndex, underlying: error)
    }

    static func metadataInStream(partIndex: Int) -> FormError {
        FormError(
            .metadataUnreadable,
            "The metadata of part \(partIndex) cannot be removed: it is a stream, which cannot be read before it is "
                + "sent. Write it to a file, or send it as it is.",
            partIndex: partIndex)
    }

    static func streamTooLong(partIndex: Int) -> FormError {
        FormError(
            .streamLength, "The stream of part \(partIndex) promises more bytes than a body can have",
            partIndex: partIndex)
    }

    static func streamLength(promised: Int64, given: Int64, partIndex: Int) -> FormError {
        let relation = given > promised ? "at least \(given)" : "only \(given)"
        return FormError(
            .streamLength, "The stream of part \(partIndex) promised \(promised) bytes and gave \(relation)",
            partIndex: partIndex)
    }

    static func streamConsumed(partIndex: Int) -> FormError {
        FormError(
            .streamConsumed,
            "The stream of part \(partIndex) can be read only once and has been. Give it as FormStream(opening:) "
                + "where it can begin anew.",
            partIndex: partIndex)
    }

    static func offsetUnreachable(_ offset: Int64, _ reason: String) -> FormError {
        FormError(.offsetUnreachable, "The body cannot be read from offset \(offset): \(reason)")
    }

    static func bodyTooLarge(maximumBytes: Int) -> FormError {
        FormError(
            .bodyTooLarge,
            "The form's body has more than \(maximumBytes) bytes, which were to be held in memory. Read it in chunks.")
    }

    static func invalidBoundary(_ value: String, reason: String) -> FormError {
        FormError(.invalidBoundary, "\(value.debugDescription) is no boundary: \(reason)")
    }

    static func invalidMediaType(_ value: String) -> FormError {
        FormError(
            .invalidMediaType,
            "\(value.debugDescription) is no media type. Write it as type/subtype, such as image/jpeg.")
    }

    static func boundaryInContent(_ boundary: Boundary, partIndex: Int) -> FormError {
        FormError(
            .boundaryInContent,
            "The content of part \(partIndex) holds the delimiter of the boundary \(boundary). Use another boundary.",
            partIndex: partIndex)
    }
}
