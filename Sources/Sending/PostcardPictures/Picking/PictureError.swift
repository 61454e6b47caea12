import PostcardForm
import PostcardFoundation

/// Why a picture or a file could not be made into a part of a form.
public struct PictureError: PostcardError {
    /// The kind of failure; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// The picture in memory has no pixels, or too many pixels for its format.
        public static let notEncodable = Code(rawValue: "not-encodable")
        /// The item offers no file. It may be a link or a folder.
        public static let noFile = Code(rawValue: "no-file")
        /// Loading the item's file failed. ``PictureError/underlyingError`` is the system's error.
        public static let notLoadable = Code(rawValue: "not-loadable")
        /// The item of the photo library has no file of the requested version and component.
        public static let noSuchVersion = Code(rawValue: "no-such-version")

        /// There is too little free space for the copy (see ``PictureError/neededBytes`` and
        /// ``PictureError/freeBytes``).
        public static let full = Code(rawValue: "full")
        /// The system suspended the app before the item was loaded.
        public static let suspended = Code(rawValue: "suspended")
    }

    /// The kind of failure.
    public let code: Code

    /// What happened.
    public let message: String

    /// What to do.
    public let advice: String?

    /// The system's error, if there is one.
    public let underlyingError: (any Error)?

    /// The number of bytes that the copy needs, if there was too little free space.
    public private(set) var neededBytes: Int64?

    /// The number of free bytes, if there was too little free space.
    public private(set) var freeBytes: Int64?

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

extension PictureError {
    /// What happened, in the user's language on Apple platforms, and as ``message`` elsewhere.
    public var errorDescription: String? { PictureTexts.text("PictureError.\(code)", else: message) }

    /// What to do, in the user's language on Apple platforms, and as ``advice`` elsewhere.
    public var recoverySuggestion: String? { PictureTexts.text("PictureError.\(code).advice", else: advice) }
}
