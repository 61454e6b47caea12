import PostcardForm
import PostcardFoundation

/// The error if a picture cannot be made to fit its limit.
///
/// ```swift
/// do {
///     return try await fitter.fit(photo, to: limit)
/// } catch let error as PictureFitError where error.code == .cannotFit {
///     print(error.message, error.advice)
/// }
/// ```
public struct PictureFitError: PostcardError {
    /// The kind of failure; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// The file cannot be opened or read.
        public static let unreadable = Code(rawValue: "unreadable")
        /// The file is cut off or damaged.
        public static let damaged = Code(rawValue: "damaged")
        /// The file is not a picture, or its type or color model cannot be decoded here.
        public static let unsupported = Code(rawValue: "unsupported")
        /// The picture is animated or a TIFF of several pages, and does not fit as it is. A JPEG would show only one
        /// frame.
        public static let animated = Code(rawValue: "animated")
        /// The picture has more pixels than ``PictureLimit/maximumPixels``, or an edge of more than 65,500.
        public static let tooManyPixels = Code(rawValue: "too-many-pixels")
        /// Decoding the picture as a whole needs too much memory.
        public static let tooMuchMemory = Code(rawValue: "too-much-memory")
        /// The picture has too many bytes even at quality 50 and with a longer edge of 640 pixels.
        public static let cannotFit = Code(rawValue: "cannot-fit")
        /// The pixels could not be encoded.
        public static let notEncodable = Code(rawValue: "not-encodable")
        /// The new file could not be written.
        public static let notWritable = Code(rawValue: "not-writable")
        /// The package was built without the libraries that decode pictures, or, for a TIFF, without libtiff 4.5.
        public static let builtWithoutPictures = Code(rawValue: "built-without-pictures")
        /// This machine does not have the library that decodes or encodes pictures of this type.
        public static let missingLibrary = Code(rawValue: "missing-library")
    }

    /// The kind of failure.
    public let code: Code

    /// What happened.
    public let message: String

    /// What to do about the failure.
    public let advice: String?

    /// The system's error, if there is one.
    public let underlyingError: (any Error)?

    init(_ code: Code, _ message: String, advice: String?, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.advice = advice
        self.underlyingError = underlyingError
    }
}

extension PictureFitError: PassingError {
    package var mayPass: Bool { code == .notWritable }
}

extension PictureFitError {
    static func unreadable(_ reason: String, underlyingError: (any Error)? = nil) -> PictureFitError {
        PictureFitError(
            .unreadable, "The picture cannot be read: \(reason).",
            advice: "Check that the file exists and is complete.",
            underlyingError: underlyingError)
    }

    static func damaged(_ reason: String) -> PictureFitError {
        PictureFitError(
            .damaged, "The picture is damaged: \(reason).",
            advice: "Download or export it again, or send the original as it is.")
    }

    static func unsupported(_ type: MediaType?, _ reason: String? = nil) -> PictureFitError {
        let detail = reason.map { ": \($0)" } ?? ""
        guard let type else {
            return PictureFitError(
                .unsupported, "The file is no picture of a known type\(detail).",
                advice: "Export it as a JPEG or a PNG, or send the original as it is.")
        }
        return PictureFitError(
            .unsupported, "A picture of this kind (\(type)) cannot be decoded here\(detail).",
            advice: "Export it as a JPEG or a PNG, or send the original as it is.")
    }

    static func animated(_ type: MediaType) -> PictureFitError {
        PictureFitError(
            .animated,
            "The picture (\(type)) has several frames or pages, and is too large or not of an accepted type. A JPEG has "
                + "one.",
            advice: "Export it with fewer of them or in another format, or send the original as it is.")
    }

    static func tooManyPixels(_ size: PictureSize, limit: Int64) -> PictureFitError {
        guard size.longerEdge <= PicturePlan.longestEdge else {
            return PictureFitError(
                .tooManyPixels,
                "The picture has \(size) pixels, and an edge of more than \(PicturePlan.longestEdge) is not decoded.",
                advice: "Scale the picture down or divide it first, or send the original as it is.")
        }
        return PictureFitError(
            .tooManyPixels, "The picture has \(size) pixels, more than the \(limit) that are decoded.",
            advice: "If the file is to be trusted, raise the limit's maximumPixels, or scale the picture down first.")
    }

    static func tooMuchMemory(_ reason: String) -> PictureFitError {
        PictureFitError(
            .tooMuchMemory, "Decoding the picture needs too much memory: \(reason).",
            advice: "Scale it down first, or export it as a baseline JPEG.")
    }

    static func cannotFit(_ limit: Int64, smallest: Int64?, edge: Int, quality: Int) -> PictureFitError {
        let found = smallest.map { " It has \($0) bytes with quality \(quality) and an edge of \(edge) pixels." } ?? ""
        return PictureFitError(
            .cannotFit, "The picture cannot be made to fit into \(limit) bytes.\(found)",
            advice: "Allow more bytes for each picture, or send fewer of them in one form.")
    }

    static func notEncodable(_ reason: String) -> PictureFitError {
        PictureFitError(
            .notEncodable, "The picture cannot be encoded: \(reason).", advice: "Send the original as it is.")
    }

    static func notWritable(_ folder: String, underlyingError: any Error) -> PictureFitError {
        PictureFitError(
            .notWritable, "The smaller picture cannot be saved to \(folder): \(underlyingError).",
            advice: "Free some space, or choose another folder.", underlyingError: underlyingError)
    }

    static let builtWithoutPictures = PictureFitError(
        .builtWithoutPictures,
        "The picture is too large or not of an accepted type, and Postcard was built without support for decoding it.",
        advice: "Install libjpeg-turbo, libpng, libwebp, libheif and libtiff 4.5 or newer with their headers, as "
            + "Scripts/set-up pictures does, and build the package from scratch.")

    static func missingLibrary(_ reason: String) -> PictureFitError {
        PictureFitError(
            .missingLibrary, "A library for pictures cannot be loaded: \(reason).",
            advice: "Install libjpeg-turbo, libpng, libwebp, libheif and libtiff: on Debian and Ubuntu, apt-get "
                + "install libjpeg62-turbo libpng16-16 libwebp7 libwebpdemux2 libheif1 libtiff6.")
    }
}

extension PictureFitError {
    /// What happened, in the user's language on Apple platforms, and as ``message`` elsewhere.
    public var errorDescription: String? { PictureTexts.text("PictureFitError.\(code)", else: message) }

    /// What to do, in the user's language on Apple platforms, and as ``advice`` elsewhere.
    public var recoverySuggestion: String? { PictureTexts.text("PictureFitError.\(code).advice", else: advice) }
}

/// The sentences of this module's string catalog, for users of an app.
enum PictureTexts {
    /// The sentence in the user's language.
    ///
    /// - Parameters:
    ///   - key: The key of the sentence in `Resources/Localizable.xcstrings`.
    ///   - text: The English sentence, which is returned on Linux and if the catalog does not have the key.
    static func text(_ key: String, else text: String?) -> String? {
        #if canImport(Darwin)
        let found = Bundle.module.localizedString(forKey: key, value: nil, table: nil)
        // Foundation returns the key itself if it is not found.
        return found == key ? text : found
        #else
        return text
        #endif
    }
}
