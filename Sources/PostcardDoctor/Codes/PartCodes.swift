public import PostcardForm

extension FormProblem.Code {
    /// The Doctor's codes about the parts and the form as a whole, in the order of the documentation's page.
    static let ofParts: [Self] = [
        .blankBeforeColon, .unescapedQuote, .unquotedValue, .quotesInName, .controlInName, .mojibake,
        .fileWithoutFilename, .emptyFilename, .pathInFilename, .textWithFilename, .malformedMediaType,
        .misspelledMediaType, .contentContradictsType, .extensionContradictsType, .emptyFile, .truncatedPicture,
        .base64Content, .optionalDescription, .nullText, .objectDescription, .surprisingNumber, .surprisingDate,
        .textNotUTF8, .repeatedFilename, .repeatedContent, .locationInPhoto, .noParts, .fieldsAfterFile,
        .overCommonDefaults, .refusedByServer,
    ]
}

// MARK: - The parts

extension FormProblem.Code {
    /// A blank stands before the colon of a header field.
    public static let blankBeforeColon = Self(
        "blank-before-colon", .parts, "A blank stands before a header field's colon",
        cause: "No blank may stand there (RFC 9112 §5.1): servers refuse it, or miss the field.",
        example: "Content-Disposition : form-data; name=\"a\"",
        fix: "Write Name: value, with no blank before the colon.")

    /// A quote in a quoted value is not escaped.
    public static let unescapedQuote = Self(
        "unescaped-quote", .parts, "A quote ends a value too early",
        cause: "A quote in a name or filename ends the value there; what follows is read as parameters, or "
            + "refused. A name from a user can inject headers this way.",
        example: #"filename="my "best" photo.jpg""#,
        fix: "Write %22 for a quote in a name or filename, as browsers do.",
        swift: #"filename.replacing("\"", with: "%22")"#)

    /// A value with blanks or semicolons is not quoted.
    public static let unquotedValue = Self(
        "unquoted-value", .parts, "A value needs quotes",
        cause: "Without quotes a value ends at the first blank or semicolon (RFC 9110 §5.6.6).",
        example: "Content-Disposition: form-data; name=a; filename=my cat.jpg",
        fix: "Put every name and filename into double quotes.",
        swift: #""name=\"\(name)\"; filename=\"\(filename)\"""#)

    /// A name or filename stands between quotes that are no double quotes.
    public static let quotesInName = Self(
        "quotes-in-name", .parts, "Quotes of another kind stand around a name",
        cause: "Only double quotes of ASCII quote a value (RFC 9110 §5.6.4). Single and typographic quotes become part "
            + "of the name, and the server misses the field it waits for.",
        example: "Content-Disposition: form-data; name='title'",
        fix: "Put every name and filename into double quotes.",
        swift: #""name=\"\(name)\"; filename=\"\(filename)\"""#)

    /// A name or filename holds control characters.
    public static let controlInName = Self(
        "control-in-name", severity: .warning, .parts, "A name holds control characters",
        cause: "Control characters in names are refused by some servers, and stored by others where nobody "
            + "can see them.",
        example: #"filename="photo\t1.jpg""#,
        fix: "Take control characters out of names; write %0D and %0A for a line break.")

    /// A name, a filename or a text was read in the wrong charset before it was sent.
    public static let mojibake = Self(
        "mojibake", severity: .warning, .parts, "A name or text was read in the wrong charset",
        cause: "The bytes of a UTF-8 text were read as Latin-1, and each became a character of its own. The "
            + "server stores what it gets.",
        example: "filename=\"cafÃ©.jpg\"",
        fix: "Read texts as UTF-8, and write them as UTF-8.",
        swift: "Data(filename.utf8)  // not filename.data(using: .isoLatin1)")

    /// A part that is a file by its type or content has no filename.
    public static let fileWithoutFilename = Self(
        "file-without-filename", .parts, "A file has no filename",
        cause: "Servers tell a file from a text field by its filename. Without one the picture is a text "
            + "field: held in memory, cut at a limit, or garbled. Where its bytes are UTF-8 all the same, they "
            + "arrive, and it is a warning.",
        example: "Content-Disposition: form-data; name=\"image\"\\r\\nContent-Type: image/jpeg",
        fix: "Add a filename to the Content-Disposition.",
        swift: #""Content-Disposition: form-data; name=\"image\"; filename=\"photo.jpg\"\r\n""#)

    /// A filename is empty.
    public static let emptyFilename = Self(
        "empty-filename", severity: .warning, .parts, "A filename is empty",
        cause: "This is what a browser sends where no file was chosen; most servers drop the part.",
        example: #"Content-Disposition: form-data; name="image"; filename="""#,
        fix: "Name the file, or leave the part out where there is none.")

    /// A filename has a path before it.
    public static let pathInFilename = Self(
        "path-in-filename", severity: .warning, .parts, "A filename has a path",
        cause: "Servers keep what follows the last slash, or refuse. A path tells the server's owner about "
            + "the sender's disk, and looks like an attack.",
        example: #"filename="/var/mobile/Containers/photo.jpg""#,
        fix: "Send the last component alone.", swift: "url.lastPathComponent")

    /// A text has a filename.
    public static let textWithFilename = Self(
        "text-with-filename", severity: .warning, .parts, "A text field has a filename",
        cause: "With a filename the text is a file: PHP has it in $_FILES, Spring in MultipartFile, and the "
            + "field that was asked for is missing.",
        example: #"Content-Disposition: form-data; name="title"; filename="title""#,
        fix: "Leave the filename out of text fields.")

    /// A part's Content-Type is no media type.
    public static let malformedMediaType = Self(
        "malformed-media-type", severity: .warning, .parts, "A part's Content-Type is no media type",
        cause: "A media type is type/subtype (RFC 9110 §8.3.1). Servers that accept pictures only refuse the "
            + "part; some fail on it.",
        example: "Content-Type: jpeg", fix: "Write the whole type, such as image/jpeg.",
        swift: "MediaType.jpeg")

    /// A part's Content-Type is a common misspelling.
    public static let misspelledMediaType = Self(
        "misspelled-media-type", severity: .warning, .parts, "A media type is misspelled",
        cause: "image/jpg is not registered; lists of accepted types have image/jpeg, and refuse the other.",
        example: "Content-Type: image/jpg", fix: "Write the registered name, such as image/jpeg.",
        swift: "MediaType.jpeg")

    /// A part's first bytes are those of another type.
    public static let contentContradictsType = Self(
        "content-contradicts-type", severity: .warning, .parts, "The bytes are of another type than announced",
        cause: "An iPhone's photo is HEIC, whatever it is called. Servers that look at the bytes refuse it, "
            + "and those that do not store a picture nobody can open.",
        example: "Content-Type: image/jpeg, and the content begins with ftypheic",
        fix: "Announce the type that the bytes have, or convert them.",
        swift: #"photo.jpegData(compressionQuality: 0.9)  // or announce image/heic"#)

    /// A filename's extension is that of another type.
    public static let extensionContradictsType = Self(
        "extension-contradicts-type", severity: .warning, .parts, "The filename's extension is of another type",
        cause: "Servers go by the extension, by the Content-Type or by both, and refuse where they differ.",
        example: #"filename="photo.jpg"\r\nContent-Type: image/png"#,
        fix: "Let the extension, the Content-Type and the bytes agree.")

    /// A file has no bytes.
    public static let emptyFile = Self(
        "empty-file", severity: .warning, .parts, "A file is empty",
        cause: "The picture was nil, not yet written or already read to its end. Most servers take it, and "
            + "store nothing.",
        example: #"filename="photo.jpg"\r\n\r\n\r\n--XX"#,
        fix: "Look at the file's size before sending it.")

    /// A picture ends before its format does.
    public static let truncatedPicture = Self(
        "truncated-picture", severity: .warning, .parts, "A picture is cut off",
        cause: "The picture's format has an end, and the bytes stop before it. It shows half, or not at all.",
        example: "A JPEG without FF D9 at its end", fix: "Send the whole file.")

    /// Base64 text stands where bytes belong.
    public static let base64Content = Self(
        "base64-content", severity: .warning, .parts, "Base64 text stands where bytes belong",
        cause: "A multipart body carries bytes as they are. No server decodes base64 here, so it stores "
            + "text under a picture's name.",
        example: #"Content-Type: image/jpeg\r\n\r\n/9j/4AAQSkZJRg…"#,
        fix: "Send the bytes themselves.", swift: "body.append(photo)  // not photo.base64EncodedString()")

    /// A value is what Swift prints of an optional.
    public static let optionalDescription = Self(
        "optional-description", severity: .warning, .parts, "A value is a printed optional",
        cause: "An optional was put into a string without being unwrapped. The server stores the word "
            + "Optional and its brackets.",
        example: #"Optional("Jeju")"#, fix: "Unwrap the value before writing it.",
        swift: "if let title { form.append(title) }  // not String(describing: title)")

    /// A value is what a language prints for nothing.
    public static let nullText = Self(
        "null-text", severity: .warning, .parts, "A value is the word for nothing",
        cause: "The value was absent, and its description was sent. The server stores the word.",
        example: "nil", fix: "Leave the field out where there is no value.",
        swift: "if let title { … }")

    /// A value is what a language prints of an object.
    public static let objectDescription = Self(
        "object-description", severity: .warning, .parts, "A value is a printed object",
        cause: "An object was turned into text by its description, which no server reads.",
        example: "{\\n    city = Jeju;\\n}", fix: "Send JSON, or a field for each of its values.",
        swift: "try JSONEncoder().encode(place)")

    /// A number is written as people write it, not as programs read it.
    public static let surprisingNumber = Self(
        "surprising-number", severity: .warning, .parts, "A number is written for people",
        cause: "Separators of thousands and decimal commas depend on the sender's language; servers read "
            + "another number, or none.",
        example: "1.234,56", fix: "Write digits and a decimal point: 1234.56.",
        swift: #"value.formatted(.number.grouping(.never).locale(Locale(identifier: "en_US_POSIX")))"#)

    /// A date is written as people write it, not as programs read it.
    public static let surprisingDate = Self(
        "surprising-date", severity: .warning, .parts, "A date is written for people",
        cause: "Servers read dates in ISO 8601; a description depends on the sender's language and time zone.",
        example: "2026-11-21 11:04:10 +0000", fix: "Write 2026-11-21T11:04:10Z.",
        swift: "date.formatted(.iso8601)")

    /// A text is not in UTF-8.
    public static let textNotUTF8 = Self(
        "text-not-utf-8", .parts, "A text is not in UTF-8",
        cause: "Texts in forms are read as UTF-8 (RFC 7578 §5.1); other bytes become question marks or "
            + "refusals.",
        example: #"caf\xE9"#, fix: "Write texts in UTF-8.", swift: "Data(text.utf8)")

    /// Several files have the same filename.
    public static let repeatedFilename = Self(
        "repeated-filename", severity: .warning, .parts, "Several files have one filename",
        cause: "The filename is fixed in a loop. Servers that store by name keep the last file alone.",
        example: #"filename="image.jpg" in each part"#,
        fix: "Give each file a name of its own.", swift: #""image-\(index).jpg""#)

    /// Two files have the same bytes.
    public static let repeatedContent = Self(
        "repeated-content", severity: .warning, .parts, "Two files have the same bytes",
        cause: "The same file was added twice, or a loop appends one variable again and again.",
        example: "Two parts with one SHA-256", fix: "Append each file once.")

    /// A photo tells where it was taken.
    public static let locationInPhoto = Self(
        "location-in-photo", severity: .warning, .parts, "A photo tells where it was taken",
        cause: "The photo's EXIF holds a GPS position. Whoever gets the file can read it: often the sender's "
            + "home.",
        example: "A JPEG whose EXIF has a GPS directory",
        fix: "Take the position out unless the server needs it: postcard send --metadata without-location does so "
            + "while it sends.",
        swift: "part.metadata = .withoutLocation")
}

// MARK: - The form as a whole

extension FormProblem.Code {
    /// The form has no parts.
    public static let noParts = Self(
        "no-parts", severity: .warning, .whole, "The form has no parts",
        cause: "There is a close delimiter and nothing before it. Some servers take that for an empty form, "
            + "some refuse it.",
        example: #"--XX--\r\n"#, fix: "Append a part, or send no body.")

    /// Fields come behind the file, where S3 does not read them.
    public static let fieldsAfterFile = Self(
        "fields-after-file", .whole, "Fields follow the file",
        cause: "S3's POST reads fields up to the file and ignores what follows, so that the policy or the key "
            + "is missing.",
        example: "name=\"file\" before name=\"key\"", fix: "Let the file be the last part.")

    /// The form is over what common servers take unless told otherwise.
    public static let overCommonDefaults = Self(
        "over-common-defaults", severity: .warning, .whole, "The form is over common servers' defaults",
        cause: "Servers refuse what is larger than they were told to take, mostly with 413, and some drop it "
            + "without a word.",
        example: "A photo of 3 MB to PHP, which takes 2 MB",
        fix: "Raise the setting that is named, or send less.")

    /// One of the servers asked about refuses the form, or reads it otherwise than meant.
    public static let refusedByServer = Self(
        "refused-by-server", .whole, "The server that was asked about refuses it",
        cause: "By its rules and default settings this server refuses the form, or reads it otherwise.",
        example: "--against nginx, and a body of 3 MB",
        fix: "Change the setting that is named, or the form.")
}
