import PostcardForm
public import PostcardFoundation

/// Why a picture or a file could not be made into a part of a form.
public struct PictureError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure; stable across versions.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The kind as a word, such as `not-loadable`, for logs and for programs that read them.
        public let rawValue: String

        /// Makes a code from its raw value, which need not be a known one.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The picture in memory has no pixels, or too many for its format.
        public static let notEncodable = Code(rawValue: "not-encodable")
        /// The item offers no file: it is a link or a folder, for example.
        public static let noFile = Code(rawValue: "no-file")
        /// Loading the item's file failed; ``PictureError/underlyingError`` is the system's error.
        public static let notLoadable = Code(rawValue: "not-loadable")
        /// The item of the photo library has no file of the version and component that were asked for.
        public static let noSuchVersion = Code(rawValue: "no-such-version")

        /// The copy needs more bytes than are free. ``PictureError/neededBytes`` and ``PictureError/freeBytes`` say how
        /// many.
        public static let full = Code(rawValue: "full")
        /// The system suspends the app, so that the item was not loaded.
        public static let suspended = Code(rawValue: "suspended")

        public var description: String { rawValue }
    }

    /// The kind of failure.
    public let code: Code

    /// What happened.
    public let message: String

    /// What to do.
    public let advice: String

    /// The system's error, if there is one.
    public let underlyingError: (any Error)?

    /// How many bytes the copy needs, if there are too few.
    public private(set) var neededBytes: Int64?

    /// How many bytes were free, if they are too few.
    public private(set) var freeBytes: Int64?

    public var description: String { "\(message) \(advice)" }

    private init(_ code: Code, _ message: String, advice: String, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.advice = advice
        self.underlyingError = underlyingError
    }

    static func notEncodable(_ encoding: PictureEncoding) -> PictureError {
        PictureError(
            .notEncodable,
            "The picture cannot be encoded as \(encoding.contentType): it has no pixels, or too many.",
            advice: "Check that it was loaded.")
    }

    static func noFile(offered identifiers: [String]) -> PictureError {
        let list = identifiers.isEmpty ? "nothing" : identifiers.joined(separator: ", ")
        return PictureError(
            .noFile, "The item offers no file, only \(list).", advice: "Load its text, link or image instead.")
    }

    static func notLoadable(_ what: String, underlyingError: (any Error)?) -> PictureError {
        let reason = underlyingError.map { ": \($0)" } ?? ""
        return PictureError(
            .notLoadable, "\(what) could not be loaded\(reason).",
            advice: "Check the network and the free space, and try again.", underlyingError: underlyingError)
    }

    static func full(_ file: String, needed: Int64, free: Int64) -> PictureError {
        var error = PictureError(
            .full, "A copy of \(file) needs \(needed) bytes, and \(free) are free.",
            advice: "Free some space and try again.")
        error.neededBytes = needed
        error.freeBytes = free
        return error
    }

    static let suspended = PictureError(
        .suspended, "The system suspends the app, so the item was not loaded.",
        advice: "Load it again when the app runs. A queue does so with what was picked for it.")

    static func noSuchVersion(_ version: PhotoVersion, _ component: PhotoComponent) -> PictureError {
        PictureError(
            .noSuchVersion,
            "The photo library has no file for the \(version) version of this item (\(component)).",
            advice: "Request another version.")
    }
}

extension PictureError: PassingError {
    package var mayPass: Bool { [.notLoadable, .full, .suspended].contains(code) }
}

extension PictureError: LocalizedError {
    /// What happened, in the user's language on Apple platforms; the same as ``message`` elsewhere.
    public var errorDescription: String? { PictureTexts.text("PictureError.\(code)", else: message) }

    /// What to do, in the user's language on Apple platforms; the same as ``advice`` elsewhere.
    public var recoverySuggestion: String? { PictureTexts.text("PictureError.\(code).advice", else: advice) }
}
