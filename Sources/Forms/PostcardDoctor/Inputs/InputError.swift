public import PostcardFoundation

/// Why no request can be read from an input.
public struct InputError: Error, Sendable, CustomStringConvertible {
    /// What kind of error it is; stable across versions.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The HAR file, or what was copied instead of one, is broken or too large.
        public static let malformedArchive = Code(rawValue: "malformed-archive")
        /// The input has no entry with the given number.
        public static let noEntry = Code(rawValue: "no-entry")
        /// The input has several uploads, and a number must choose one.
        public static let severalUploads = Code(rawValue: "several-uploads")
        /// The input has no request with a body.
        public static let noUpload = Code(rawValue: "no-upload")

        public var description: String { rawValue }
    }

    /// What kind of error it is.
    public let code: Code

    /// What happened, in a sentence.
    public let message: String

    /// What to do, in a sentence or two.
    public let advice: String

    /// The uploads to choose from, each as a line that begins with its number.
    public let uploads: [String]

    /// The decoder's error, if a HAR file is broken.
    public let underlyingError: (any Error)?

    private init(
        _ code: Code, _ message: String, advice: String, uploads: [String] = [], underlyingError: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.advice = advice
        self.uploads = uploads
        self.underlyingError = underlyingError
    }

    public var description: String { "\(message) \(advice)" }
}

extension InputError: LocalizedError {
    public var errorDescription: String? { message }
    public var recoverySuggestion: String? { advice }
}

extension InputError {
    private static let export =
        "Send the form again and export that request alone, or record it with curl --trace FILE."

    static func malformedArchive(_ reason: String) -> InputError {
        InputError(.malformedArchive, "The input begins as JSON and is not a HAR file. \(reason)", advice: export)
    }

    static func malformedCopy(_ reason: String) -> InputError {
        InputError(
            .malformedArchive, "The input begins as a copied request and cannot be read. \(reason)", advice: export)
    }

    static func archiveTooLarge(_ maximum: Int) -> InputError {
        InputError(
            .malformedArchive, "The input is larger than \(maximum >> 20) MiB.",
            advice: "Clear the recorder. \(export)")
    }

    static func noEntry(_ number: Int, of count: Int) -> InputError {
        InputError(
            .noEntry, "There is no entry \(number): the input has \(count).", advice: "Entries are counted from 1.")
    }

    static func noUpload(entries: Int) -> InputError {
        InputError(.noUpload, "None of the \(entries) requests in the input has a body.", advice: export)
    }

    static func severalUploads(_ uploads: [String]) -> InputError {
        InputError(
            .severalUploads, "The input has \(uploads.count) uploads.",
            advice: "Choose one by its number, with --entry N.", uploads: uploads)
    }
}
