/// What happened to the bytes of a file on their way, and the first place where it shows.
package struct FileDamage: Sendable, Equatable {
    package enum Cause: Sendable, Equatable {
        /// Decoded as UTF-8: what was no UTF-8 is U+FFFD.
        case replaced
        /// Decoded in a charset of single bytes, and encoded as UTF-8.
        case reencoded
        /// Encoded as ASCII: each byte above 7F became a question mark, or was removed.
        case ascii
        case addedCarriageReturns, removedCarriageReturns
        case base64, dataURL, hexadecimal
        /// Written as a string or a list of numbers, in JSON or in source code.
        case escaped
        case lineBreakBefore
        /// A text is in the place of the file.
        case text
        case cut
    }

    package let cause: Cause
    /// Counted from the start of the content.
    package let offset: Int64
    /// The number of bytes that show it; 0 if some are missing.
    package let length: Int
    /// Whether the first bytes show it beyond doubt, so that the file may be refused. Otherwise numbers make it likely,
    /// or readers accept it.
    package internal(set) var isProven = false

    init(_ cause: Cause, at offset: Int64 = 0, length: Int = 0) {
        self.cause = cause
        self.offset = offset
        self.length = length
    }

    /// What is wrong, in a sentence.
    package var message: String {
        switch cause {
        case .replaced: "The file was decoded as UTF-8: bytes that are not UTF-8 became U+FFFD, and are lost."
        case .reencoded: "The file was decoded as Latin-1 or a similar charset, and encoded as UTF-8."
        case .ascii:
            "The file was encoded as ASCII: bytes above 7F became question marks or were removed, and are lost."
        case .addedCarriageReturns: "Each LF of the file became CRLF, as in a text."
        case .removedCarriageReturns: "Each CRLF of the file became LF, as in a text."
        case .base64: "The content is base64 text, not bytes."
        case .dataURL: "The content is a data: URL, not bytes."
        case .hexadecimal: "The content is hexadecimal text, not bytes."
        case .escaped: "The content is an escaped string or a list of numbers, not bytes."
        case .lineBreakBefore: "A line break precedes the file's first byte and is part of the file."
        case .text: "The content is text."
        case .cut: "The file breaks off after \(offset) bytes, before its format ends."
        }
    }
}
