/// Why no request can be taken from an input.
public struct InputError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: String, Sendable, Hashable {
        /// The HAR is broken, or larger than can be read.
        case malformedArchive = "malformed-archive"
        /// There is no entry of the number that was asked for.
        case noEntry = "no-entry"
        /// There are several uploads, and a number must say which is meant.
        case severalUploads = "several-uploads"
        /// There is no request with a body.
        case noUpload = "no-upload"
    }

    /// What kind of failure it is.
    public let code: Code

    /// What happened and what to do, in sentences.
    public let description: String

    /// The uploads that could be meant, one a line with its number in front.
    public let uploads: [String]

    private init(_ code: Code, _ description: String, uploads: [String] = []) {
        self.code = code
        self.description = description
        self.uploads = uploads
    }

    static func malformedArchive(_ reason: String) -> InputError {
        InputError(.malformedArchive, "The input begins as JSON and is no HAR file. \(reason)")
    }

    static func archiveTooLarge(_ maximum: Int) -> InputError {
        InputError(
            .malformedArchive,
            "The HAR file is larger than \(maximum >> 20) MiB. Clear the recorder, send the form once more and export that "
                + "alone, or record it with curl --trace FILE.")
    }

    static func noEntry(_ number: Int, of count: Int) -> InputError {
        InputError(.noEntry, "There is no entry \(number): the input holds \(count), counted from 1.")
    }

    static func noUpload(entries: Int) -> InputError {
        InputError(.noUpload, "None of the \(entries) requests in the input has a body.")
    }

    static func severalUploads(_ uploads: [String]) -> InputError {
        InputError(
            .severalUploads, "The input holds \(uploads.count) uploads. Choose one by its number, with --entry N.",
            uploads: uploads)
    }
}
