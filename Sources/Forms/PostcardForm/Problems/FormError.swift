import PostcardFoundation

/// The reason why a form cannot be made, sent or read: a mistake or failure on this side.
///
/// If reading a body fails, the error is thrown before the end of the body, so that the body never looks complete to a
/// receiver. A problem of a received form is a ``FormProblem``.
public struct FormError: PostcardError {
    /// The kind of an error; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// There is no file at the path.
        public static let fileMissing = Code(rawValue: "file-missing")
        /// The path is that of a directory, a socket or a device, not of a regular file.
        public static let fileNotRegular = Code(rawValue: "file-not-regular")
        /// The file is not readable, or reading it failed.
        public static let fileUnreadable = Code(rawValue: "file-unreadable")
        /// The file's size or modification time changed after the layout was made.
        public static let fileChanged = Code(rawValue: "file-changed")
        /// The structure of a picture or video is not understood, so its metadata cannot be removed.
        public static let metadataUnreadable = Code(rawValue: "metadata-unreadable")
        /// The URL of a file is not a file URL.
        public static let notFileURL = Code(rawValue: "not-file-url")
        /// A part has a header field that the form writes itself.
        public static let reservedHeaderField = Code(rawValue: "reserved-header-field")
        /// A part's name or filename holds a NUL, which receivers refuse.
        public static let invalidName = Code(rawValue: "invalid-name")
        /// A stream had more or fewer bytes than its announced length.
        public static let streamLength = Code(rawValue: "stream-length")
        /// A stream that can be read only once was read again.
        public static let streamConsumed = Code(rawValue: "stream-consumed")
        /// The body cannot be read from the offset: the body is shorter, or has a stream of unknown length before the
        /// offset.
        public static let offsetUnreachable = Code(rawValue: "offset-unreachable")
        /// The boundary breaks the rules of RFC 2046 §5.1.1.
        public static let invalidBoundary = Code(rawValue: "invalid-boundary")
        /// The text is not a media type.
        public static let invalidMediaType = Code(rawValue: "invalid-media-type")
        /// The boundary's delimiter occurs in a part's content.
        public static let boundaryInContent = Code(rawValue: "boundary-in-content")
        /// The body is larger than the maximum size in memory that the caller allowed.
        public static let bodyTooLarge = Code(rawValue: "body-too-large")
        /// A part with a preparation was laid out before it was prepared.
        public static let notPrepared = Code(rawValue: "not-prepared")
        /// The parts could not be prepared: there is no folder for new files, or a preparation lost a part.
        public static let preparationFailed = Code(rawValue: "preparation-failed")
        /// A received part was read after the loop over the parts had moved on.
        public static let partPassed = Code(rawValue: "part-passed")
    }

    /// The kind of the error.
    public let code: Code

    /// The error and its place, in a sentence.
    public let message: String

    /// The advice on what to do, in a sentence or two.
    public let advice: String?

    /// The path of the file; `nil` if the error is not about a file.
    public let path: String?

    /// The index of the part, from 0; `nil` if the error is not about a part.
    public let partIndex: Int?

    /// The underlying error of the operating system; `nil` if there is none.
    public let underlyingError: (any Error)?

    init(
        _ code: Code, _ message: String, advice: String?, path: String? = nil, partIndex: Int? = nil,
        underlyingError: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.advice = advice
        self.path = path
        self.partIndex = partIndex
        self.underlyingError = underlyingError
    }
}

extension FormError: PassingError {
    /// Whether the same call may succeed later, because a file becomes readable or disk space becomes free.
    package var mayPass: Bool { code == .fileUnreadable || code == .preparationFailed && path != nil }
}

extension FormError {
    static func notRegular(_ path: String, kind: String, partIndex: Int) -> FormError {
        FormError(
            .fileNotRegular, "\(path) is \(kind), not a regular file.", advice: "Choose a regular file.", path: path,
            partIndex: partIndex)
    }

    static func notFileURL(_ url: String, partIndex: Int) -> FormError {
        FormError(
            .notFileURL, "\(url) is not a file URL.", advice: "Download it first, or send it as a stream.", path: url,
            partIndex: partIndex)
    }

    static func sizeUnknown(_ path: String, partIndex: Int) -> FormError {
        FormError(
            .fileUnreadable, "The file \(path) reports a size of 0, but has bytes.", advice: "Send it as a stream.",
            path: path, partIndex: partIndex)
    }

    static func grew(_ path: String, partIndex: Int) -> FormError {
        FormError(
            .fileChanged, "The file \(path) grew while the form was laid out.", advice: "Send it once it is complete.",
            path: path, partIndex: partIndex)
    }

    static func reservedHeaderField(_ name: String, partIndex: Int) -> FormError {
        FormError(
            .reservedHeaderField, "Part \(partIndex) has its own header field \(name).",
            advice: "Set its name, filename and contentType instead.", partIndex: partIndex)
    }

    static func nulInName(_ parameter: String, partIndex: Int) -> FormError {
        FormError(
            .invalidName, "The \(parameter) of part \(partIndex) contains a NUL, which receivers refuse.",
            advice: "Remove it.", partIndex: partIndex)
    }

    static func changed(_ path: String, _ what: String, partIndex: Int) -> FormError {
        FormError(
            .fileChanged, "The file \(path) changed after the form was laid out: \(what).",
            advice: "Lay the form out again.", path: path, partIndex: partIndex)
    }

    static func streamTooLong(partIndex: Int) -> FormError {
        FormError(
            .streamLength, "The stream of part \(partIndex) announces more bytes than a body can have.",
            advice: "Check its length.", partIndex: partIndex)
    }

    static func streamLength(promised: Int64, given: Int64, partIndex: Int) -> FormError {
        let actual = given > promised ? "at least \(given)" : "only \(given)"
        return FormError(
            .streamLength, "The stream of part \(partIndex) announced \(promised) bytes, but has \(actual).",
            advice: "Pass the exact length, or nil.", partIndex: partIndex)
    }

    static func streamConsumed(partIndex: Int) -> FormError {
        FormError(
            .streamConsumed, "The stream of part \(partIndex) can be read only once, and it was read before.",
            advice: "Use FormStream(opening:) if the stream can start over.", partIndex: partIndex)
    }

    static func offsetUnreachable(_ offset: Int64, _ reason: String) -> FormError {
        FormError(
            .offsetUnreachable, "The body cannot be read from offset \(offset): \(reason).",
            advice: "Read it from the start.")
    }

    static func bodyTooLarge(maximumBytes: Int) -> FormError {
        FormError(
            .bodyTooLarge, "The form's body has more than the \(maximumBytes) bytes that may be held in memory.",
            advice: "Read it in chunks.")
    }

    static func invalidBoundary(_ value: String, reason: String) -> FormError {
        FormError(
            .invalidBoundary, "\(value.quoted) is not a valid boundary: \(reason).",
            advice: "Use 1 to 70 letters and digits.")
    }

    static func invalidMediaType(_ value: String) -> FormError {
        FormError(
            .invalidMediaType, "\(value.quoted) is not a media type.",
            advice: "Write it as type/subtype, such as image/jpeg.")
    }

    static func boundaryInContent(_ boundary: String, partIndex: Int) -> FormError {
        FormError(
            .boundaryInContent, "The content of part \(partIndex) contains the delimiter of the boundary \(boundary).",
            advice: "Use another boundary.", partIndex: partIndex)
    }

    static func notPrepared(partIndex: Int) -> FormError {
        FormError(
            .notPrepared,
            "Part \(partIndex) must be prepared before it is sent, such as a photo that must fit a limit.",
            advice: "Send the form with a client or a queue, or lay it out in withPreparedParts. To send the original, "
                + "set the part's preparation to nil.", partIndex: partIndex)
    }

    static func preparation(_ reason: String, path: String? = nil, _ error: (any Error)? = nil) -> FormError {
        FormError(
            .preparationFailed, "The form could not be prepared: \(reason).",
            advice: "Check that the temporary folder is writable and has space.", path: path, underlyingError: error)
    }

    static func partPassed(partIndex: Int) -> FormError {
        FormError(
            .partPassed, "Part \(partIndex) was read after the loop had moved on to a later part.",
            advice: "Read a part before you ask for the next.", partIndex: partIndex)
    }
}
