public import PostcardForm

extension FormProblem.Code {
    /// The codes about the parts and the whole form, in the order of the documentation's page.
    static let ofParts: [Self] = [
        .blankBeforeColon, .unescapedQuote, .unquotedValue, .quotesInName, .controlInName, .mojibake,
        .fileWithoutFilename, .emptyFilename, .pathInFilename, .textWithFilename, .malformedMediaType,
        .misspelledMediaType, .contentContradictsType, .extensionContradictsType, .emptyFile, .truncatedPicture,
        .base64Content, .hexadecimalContent, .escapedContent, .fileDecodedAsText, .convertedLineBreaks,
        .extraLineBreakBeforeContent, .optionalDescription, .nullText, .objectDescription, .pathInsteadOfFile,
        .surprisingNumber,
        .surprisingDate,
        .textNotUTF8, .repeatedFilename, .repeatedContent, .locationInPhoto, .noParts, .fieldsAfterFile,
        .overCommonDefaults, .refusedByServer,
    ]
}

// MARK: - The parts

extension FormProblem.Code {
    /// There is a blank before the colon of a header field.
    public static let blankBeforeColon = Self(
        "blank-before-colon", .parts, "There is a blank before a header field's colon",
        cause: "A blank is not allowed there (RFC 9112 §5.1): servers refuse it, or miss the field.",
        example: "Content-Disposition : form-data; name=\"a\"",
        advice: "Write Name: value, with no blank before the colon.")

    /// A quote in a quoted value is not escaped.
    public static let unescapedQuote = Self(
        "unescaped-quote", .parts, "A quote ends a value too early",
        cause: "A quote in a name or filename ends the value there. What follows is read as parameters, or refused. "
            + "A user's filename can inject headers this way.",
        example: #"filename="my "best" photo.jpg""#,
        advice: "Write %22 for a quote in a name or filename, as browsers do.",
        swift: #"filename.replacing("\"", with: "%22")"#)

    /// A value with blanks or semicolons is not quoted.
    public static let unquotedValue = Self(
        "unquoted-value", .parts, "A value needs quotes",
        cause: "Without quotes a value ends at the first blank or semicolon (RFC 9110 §5.6.6).",
        example: "Content-Disposition: form-data; name=a; filename=my cat.jpg",
        advice: "Put every name and filename into double quotes.",
        swift: #""name=\"\(name)\"; filename=\"\(filename)\"""#)

    /// A name or filename is in quotes that are not ASCII double quotes.
    public static let quotesInName = Self(
        "quotes-in-name", .parts, "A name is in quotes of another kind",
        cause: "Only ASCII double quotes quote a value (RFC 9110 §5.6.4). Single and typographic quotes become part "
            + "of the name, and the server does not find the field.",
        example: "Content-Disposition: form-data; name='title'",
        advice: "Put every name and filename into double quotes.",
        swift: #""name=\"\(name)\"; filename=\"\(filename)\"""#)

    /// A name or filename holds control characters.
    public static let controlInName = Self(
        "control-in-name", severity: .warning, .parts, "A name holds control characters",
        cause: "Some servers refuse control characters in names, and others store them, where they are invisible.",
        example: #"filename="photo\t1.jpg""#,
        advice: "Remove control characters from names, and write %0D and %0A for a line break.")

    /// A name, a filename or a text was read in the wrong charset before it was sent.
    public static let mojibake = Self(
        "mojibake", severity: .warning, .parts, "A name or text was read in the wrong charset",
        cause: "The bytes of a UTF-8 text were read as Latin-1, and each byte became a character. The server stores "
            + "what it receives.",
        example: "filename=\"cafÃ©.jpg\"",
        advice: "Read and write text as UTF-8.",
        swift: "Data(filename.utf8)  // not filename.data(using: .isoLatin1)")

    /// A part has the type or content of a file, but no filename.
    public static let fileWithoutFilename = Self(
        "file-without-filename", .parts, "A file has no filename",
        cause: "The filename is what makes a part a file. Without one the picture is a text field: held in memory, "
            + "cut at a limit, or garbled. If its bytes are valid UTF-8 they arrive, and it is a warning.",
        example: "Content-Disposition: form-data; name=\"image\"\\r\\nContent-Type: image/jpeg",
        advice: "Add a filename to the Content-Disposition.",
        swift: #""Content-Disposition: form-data; name=\"image\"; filename=\"photo.jpg\"\r\n""#)

    /// A filename is empty.
    public static let emptyFilename = Self(
        "empty-filename", severity: .warning, .parts, "A filename is empty",
        cause: "Browsers send this if no file was chosen, and most servers drop the part.",
        example: #"Content-Disposition: form-data; name="image"; filename="""#,
        advice: "Name the file, or leave the part out if there is none.")

    /// A filename has a path before it.
    public static let pathInFilename = Self(
        "path-in-filename", severity: .warning, .parts, "A filename has a path",
        cause: "Servers keep what follows the last slash, or refuse it. A path reveals the sender's directories, "
            + "and looks like an attack.",
        example: #"filename="/var/mobile/Containers/photo.jpg""#,
        advice: "Send only the last component.", swift: "url.lastPathComponent")

    /// A text field has a filename.
    public static let textWithFilename = Self(
        "text-with-filename", severity: .warning, .parts, "A text field has a filename",
        cause: "With a filename the text is a file: PHP has it in $_FILES, Spring in MultipartFile, and the "
            + "expected field is missing.",
        example: #"Content-Disposition: form-data; name="title"; filename="title""#,
        advice: "Leave the filename out of text fields.")

    /// A part's Content-Type is not a media type.
    public static let malformedMediaType = Self(
        "malformed-media-type", severity: .warning, .parts, "A part's Content-Type is not a media type",
        cause: "A media type is type/subtype (RFC 9110 §8.3.1). Servers that accept only pictures refuse the part, "
            + "and some crash on it.",
        example: "Content-Type: jpeg", advice: "Write the whole type, such as image/jpeg.",
        swift: "MediaType.jpeg")

    /// A part's Content-Type is a common misspelling.
    public static let misspelledMediaType = Self(
        "misspelled-media-type", severity: .warning, .parts, "A media type is misspelled",
        cause: "image/jpg is not registered; lists of accepted types contain image/jpeg, and refuse the other.",
        example: "Content-Type: image/jpg", advice: "Write the registered name, such as image/jpeg.",
        swift: "MediaType.jpeg")

    /// The filename's extension belongs to another type than the Content-Type.
    public static let extensionContradictsType = Self(
        "extension-contradicts-type", severity: .warning, .parts, "The filename's extension belongs to another type",
        cause: "Servers use the extension, the Content-Type or both, and refuse the file if they differ.",
        example: #"filename="photo.jpg"\r\nContent-Type: image/png"#,
        advice: "Let the extension, the Content-Type and the bytes agree.")

    /// A file has no bytes.
    public static let emptyFile = Self(
        "empty-file", severity: .warning, .parts, "A file is empty",
        cause: "The picture was nil, not yet written or already read to its end. Most servers accept it, and store "
            + "nothing.",
        example: #"filename="photo.jpg"\r\n\r\n\r\n--XX"#,
        advice: "Check the file's size before sending it.")

    /// A text field contains a printed Swift optional, such as `Optional("Jeju")`.
    public static let optionalDescription = Self(
        "optional-description", severity: .warning, .parts, "A value is a printed optional",
        cause: "An optional was put into a string without being unwrapped. The server stores the word Optional with "
            + "its brackets.",
        example: #"Optional("Jeju")"#, advice: "Unwrap the value before writing it.",
        swift: "if let title { form.append(title) }  // not String(describing: title)")

    /// A text field contains the word that a language prints for a missing value, such as `nil`.
    public static let nullText = Self(
        "null-text", severity: .warning, .parts, "A value is a word for nothing",
        cause: "The value was absent, and its description was sent. The server stores the word.",
        example: "nil", advice: "Leave the field out if there is no value.",
        swift: "if let title { … }")

    /// A text field contains the printed description of an object.
    public static let objectDescription = Self(
        "object-description", severity: .warning, .parts, "A value is a printed object",
        cause:
            "An object was turned into text by its description, which no server reads. Of a picture or a file, nothing "
            + "but its type or its size was sent.",
        example: "{\\n    city = Jeju;\\n}",
        advice: "Send JSON, a field for each of its values, or the bytes of the file.",
        swift: "try JSONEncoder().encode(place)")

    /// A text field contains the path of a file on the sender's device.
    public static let pathInsteadOfFile = Self(
        "path-instead-of-file", severity: .warning, .parts, "A path was sent in place of the file",
        cause:
            "The server cannot open a file of the sender's device. A path or a URL was written where the file's bytes "
            + "belong, or curl's @ was used where it is only a letter, as in --form-string.",
        example: "file:///var/mobile/Containers/Data/tmp/IMG_0001.jpg",
        advice: "Send the file's bytes, with a filename.",
        swift: #"form.append(fileAt: url, named: "photo")"#)

    /// A text field contains a number in a style for people, not for programs.
    public static let surprisingNumber = Self(
        "surprising-number", severity: .warning, .parts, "A number is written for people",
        cause: "Thousands separators and decimal commas depend on the sender's language, and servers read another "
            + "number, or none.",
        example: "1.234,56", advice: "Write digits and a decimal point: 1234.56.",
        swift: #"value.formatted(.number.grouping(.never).locale(Locale(identifier: "en_US_POSIX")))"#)

    /// A text field contains a date in a style for people, not for programs.
    public static let surprisingDate = Self(
        "surprising-date", severity: .warning, .parts, "A date is written for people",
        cause: "Servers read dates in ISO 8601; a description depends on the sender's language and time zone.",
        example: "2026-11-21 11:04:10 +0000", advice: "Write 2026-11-21T11:04:10Z.",
        swift: "date.formatted(.iso8601)")

    /// A text is not in UTF-8.
    public static let textNotUTF8 = Self(
        "text-not-utf-8", severity: .warning, .parts, "A text is not in UTF-8",
        cause: "Servers and browsers read texts in forms as UTF-8 (RFC 7578 §5.1), and replace other bytes with "
            + "question marks, whatever charset is named for them. A few refuse them. If the bytes are no text, the part "
            + "is a file and needs a filename.",
        example: #"caf\xE9"#, advice: "Write texts in UTF-8, and give other bytes a filename.", swift: "Data(text.utf8)"
    )

    /// Several files have the same filename.
    public static let repeatedFilename = Self(
        "repeated-filename", severity: .warning, .parts, "Several files have the same filename",
        cause: "The filename is fixed in a loop. Servers that store by name keep only the last file.",
        example: #"filename="image.jpg" in each part"#,
        advice: "Give each file its own name.", swift: #""image-\(index).jpg""#)

    /// Two files have the same bytes.
    public static let repeatedContent = Self(
        "repeated-content", severity: .warning, .parts, "Two files have the same bytes",
        cause: "The same file was added twice, or a loop appends one variable again and again.",
        example: "Two parts with one SHA-256", advice: "Append each file only once.")

    /// A photo shows where it was taken.
    public static let locationInPhoto = Self(
        "location-in-photo", severity: .warning, .parts, "A photo shows where it was taken",
        cause: "The photo's EXIF contains a GPS position, often the sender's home. Anyone who gets the file can "
            + "read it.",
        example: "A JPEG whose EXIF has a GPS directory",
        advice: "Remove the position if the server does not need it: postcard send --metadata without-location does so "
            + "while sending.",
        swift: "part.metadata = .withoutLocation")
}

// MARK: - The form as a whole

extension FormProblem.Code {
    /// The form has no parts.
    public static let noParts = Self(
        "no-parts", severity: .warning, .whole, "The form has no parts",
        cause: "There is a close delimiter and nothing before it. Some servers accept that as an empty form, others "
            + "refuse it.",
        example: #"--XX--\r\n"#, advice: "Append a part, or send no body.")

    /// Text fields follow the file. S3 does not read them there.
    public static let fieldsAfterFile = Self(
        "fields-after-file", .whole, "Fields follow the file",
        cause: "S3's POST reads fields up to the file and ignores what follows, so the policy or the key is missing.",
        example: "name=\"file\" before name=\"key\"", advice: "Make the file the last part.")

    /// The form exceeds the default limits of common servers.
    public static let overCommonDefaults = Self(
        "over-common-defaults", severity: .warning, .whole, "The form exceeds common servers' defaults",
        cause: "Servers refuse what exceeds their limits, usually with 413, and some drop it silently.",
        example: "A photo of 3 MB to PHP, which accepts 2 MB",
        advice: "Raise the named setting, or send less.")

    /// One of the chosen servers refuses the form, or reads it differently.
    public static let refusedByServer = Self(
        "refused-by-server", .whole, "The chosen server refuses it",
        cause: "With its default settings this server refuses the form, or reads it differently.",
        example: "--against nginx, and a body of 3 MB",
        advice: "Change the named setting, or the form.")
}
