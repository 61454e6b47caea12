/// The damage that programs did to a file's bytes before it arrived, and where the damage begins.
package struct FileDamage: Sendable, Equatable {
    package enum Cause: Sendable, Equatable {
        /// The file was decoded as UTF-8, and other bytes became U+FFFD.
        case replaced
        /// The file was decoded in a single-byte charset and encoded as UTF-8.
        case reencoded
        /// The file was encoded as ASCII: each byte above 7F became a question mark or was removed.
        case ascii
        case addedCarriageReturns, removedCarriageReturns
        case base64, dataURL, hexadecimal
        /// The file was written as a string or a list of numbers, in JSON or in source code.
        case escaped
        case lineBreakBefore
        /// A text was sent in place of the file.
        case text
        case cut
    }

    package let cause: Cause
    /// The offset of the first damaged byte, counted from the start of the content.
    package let offset: Int64
    /// The number of bytes that show the damage; 0 if bytes are missing.
    package let length: Int
    /// Whether the first bytes prove the damage, so that the file may be refused. Other damage is only likely, or
    /// readers accept it.
    package internal(set) var isProven = false

    init(_ cause: Cause, at offset: Int64 = 0, length: Int = 0) {
        self.cause = cause
        self.offset = offset
        self.length = length
    }

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

extension FileDamage {
    /// The code of the damage, in explanations and in a receiver's record.
    package var code: FormProblem.Code {
        switch cause {
        case .replaced, .reencoded, .ascii: .fileDecodedAsText
        case .addedCarriageReturns, .removedCarriageReturns: .convertedLineBreaks
        case .base64, .dataURL: .base64Content
        case .hexadecimal: .hexadecimalContent
        case .escaped: .escapedContent
        case .lineBreakBefore: .extraLineBreakBeforeContent
        case .cut: .truncatedPicture
        case .text: .contentContradictsType
        }
    }
}

extension FormProblem.Code {
    /// The first bytes of a part belong to another type than that of its header.
    public static let contentContradictsType = Self(
        "content-contradicts-type", severity: .warning, .parts, "The bytes have another type than announced",
        cause: "An iPhone's photo is HEIC, whatever its name. Servers that check the bytes refuse it, and the "
            + "others store a picture that cannot be opened.",
        example: "Content-Type: image/jpeg, and the content begins with ftypheic",
        advice: "Announce the type that the bytes have, or convert them.",
        swift: #"photo.jpegData(compressionQuality: 0.9)  // or announce image/heic"#)

    /// A file is cut off before its end.
    public static let truncatedPicture = Self(
        "truncated-picture", severity: .warning, .parts, "A file is cut off",
        cause: "The file's format has an end, and the bytes stop before it. Of a picture a part appears, or nothing. A "
            + "ZIP archive cannot be opened, and a PDF has to be repaired. If the length was counted in characters, it "
            + "is too small.",
        example: "A JPEG without FF D9 at its end",
        advice: "Send the whole file, and count bytes: data.count in Swift, blob.size in JavaScript, len(data) of "
            + "bytes in Python.",
        swift: "data.count  // not text.count")

    /// The content is base64 text instead of bytes.
    public static let base64Content = Self(
        "base64-content", severity: .warning, .parts, "The content is base64 text instead of bytes",
        cause: "A multipart body carries bytes as they are. No server decodes base64 here, so it stores text as a "
            + "picture.",
        example: #"Content-Type: image/jpeg\r\n\r\n/9j/4AAQSkZJRg…"#,
        advice:
            "Send the bytes themselves: body.append(photo) in Swift, await (await fetch(dataURL)).blob() in JavaScript, "
            + "base64.b64decode(text) in Python.",
        swift: "body.append(photo)  // not photo.base64EncodedString()")

    /// The content is hexadecimal text instead of bytes.
    public static let hexadecimalContent = Self(
        "hexadecimal-content", severity: .warning, .parts, "The content is hexadecimal text instead of bytes",
        cause:
            "A multipart body carries bytes as they are. No server decodes hexadecimal digits here, so it stores text "
            + "as a file.",
        example: #"Content-Type: image/png\r\n\r\n89504e470d0a1a0a…"#,
        advice: "Send the bytes themselves: body.append(photo) in Swift, form.append(\"image\", new Blob([bytes])) in "
            + "JavaScript, bytes.fromhex(text) in Python.",
        swift: "body.append(photo)  // not a description of its bytes")

    /// The content is a string or a list of numbers, as in JSON or source code, instead of bytes.
    public static let escapedContent = Self(
        "escaped-content", severity: .warning, .parts, "The content is an escaped string instead of bytes",
        cause: "The file was written as JSON or as source code: as a string with escapes, or as the numbers of its "
            + "bytes. No server undoes that here, so it stores text as a file.",
        example: #""\u0089PNG\r\n\u001a\n…""#,
        advice:
            "Send the bytes themselves: body.append(photo) in Swift, form.append(\"image\", blob) in JavaScript and not "
            + "JSON.stringify, files={\"image\": data} in Python and not str(data).",
        swift: "body.append(photo)  // not JSONEncoder().encode(photo)")

    /// The bytes of a file were decoded as text and encoded again.
    public static let fileDecodedAsText = Self(
        "file-decoded-as-text", severity: .warning, .parts, "A file went through a text",
        cause: "The bytes were decoded as a text and encoded again. In UTF-8, each byte that is no character becomes "
            + "U+FFFD; in Latin-1, each high byte becomes two; in ASCII it becomes a question mark. The file cannot be "
            + "opened.",
        example: #"\xEF\xBF\xBDPNG\r\n\x1A\n, and not \x89PNG\r\n\x1A\n"#,
        advice: "Keep the file in bytes: body.append(data) in Swift, form.append(\"image\", blob) in JavaScript, "
            + "open(path, \"rb\") in Python.",
        swift: "body.append(data)  // not a String made of data")

    /// The line breaks of a binary file were converted.
    public static let convertedLineBreaks = Self(
        "converted-line-breaks", severity: .warning, .parts, "The line breaks of a file were converted",
        cause:
            "LF became CRLF, or CRLF became LF, in a file that is no text: it was read or written in text mode, or a "
            + "program such as git or FTP converted it. The file cannot be opened.",
        example: #"\x89PNG\n\x1A\n, and not \x89PNG\r\n\x1A\n"#,
        advice: "Keep the file in bytes: try Data(contentsOf: url) in Swift, await file.arrayBuffer() in JavaScript, "
            + "open(path, \"rb\") in Python.",
        swift: "try Data(contentsOf: url)  // not text.replacing(\"\\n\", with: \"\\r\\n\")")

    /// A line break precedes the first byte of a file.
    public static let extraLineBreakBeforeContent = Self(
        "extra-line-break-before-content", .parts, "A line break precedes a file",
        cause: "One blank line ends a part's header. A further line break is part of the file, which then does not "
            + "begin as its format does.",
        example: #"Content-Type: image/jpeg\r\n\r\n\r\n\xFF\xD8\xFF…"#,
        advice:
            "Write CRLF twice after the header, and no more: Data(\"\\r\\n\\r\\n\".utf8) in Swift, \"\\r\\n\\r\\n\" in "
            + "JavaScript, b\"\\r\\n\\r\\n\" in Python.",
        swift: #"body.append(Data("\r\n\r\n".utf8)); body.append(photo)"#)
}
