/// What the reference says of the parts, where the doctor alone looks.
extension FindingReference {
    static let blankBeforeColon = FindingReference(
        .parts, "A blank stands before a header field's colon",
        cause: "No blank may stand there (RFC 9112 §5.1): servers refuse it, or miss the field.",
        example: "Content-Disposition : form-data; name=\"a\"",
        fix: "Write Name: value, with no blank before the colon.")

    static let unescapedQuote = FindingReference(
        .parts, "A quote ends a value too early",
        cause: "A quote in a name or filename ends the value there; what follows is read as parameters, or "
            + "refused. A name from a user can inject headers this way.",
        example: #"filename="my "best" photo.jpg""#,
        fix: "Write %22 for a quote in a name or filename, as browsers do.",
        swift: #"filename.replacing("\"", with: "%22")"#)

    static let unquotedValue = FindingReference(
        .parts, "A value needs quotes",
        cause: "Without quotes a value ends at the first blank or semicolon (RFC 9110 §5.6.6).",
        example: "Content-Disposition: form-data; name=a; filename=my cat.jpg",
        fix: "Put every name and filename into double quotes.",
        swift: #""name=\"\(name)\"; filename=\"\(filename)\"""#)

    static let quotesInName = FindingReference(
        .parts, "Quotes of another kind stand around a name",
        cause: "Only double quotes of ASCII quote a value (RFC 9110 §5.6.4). Single and typographic quotes become part "
            + "of the name, and the server misses the field it waits for.",
        example: "Content-Disposition: form-data; name='title'",
        fix: "Put every name and filename into double quotes.",
        swift: #""name=\"\(name)\"; filename=\"\(filename)\"""#)

    static let controlInName = FindingReference(
        .parts, "A name holds control characters",
        cause: "Control characters in names are refused by some servers, and stored by others where nobody "
            + "can see them.",
        example: #"filename="photo\t1.jpg""#,
        fix: "Take control characters out of names; write %0D and %0A for a line break.")

    static let mojibake = FindingReference(
        .parts, "A name or text was read in the wrong charset",
        cause: "The bytes of a UTF-8 text were read as Latin-1, and each became a character of its own. The "
            + "server stores what it gets.",
        example: "filename=\"cafÃ©.jpg\"",
        fix: "Read texts as UTF-8, and write them as UTF-8.",
        swift: "Data(filename.utf8)  // not filename.data(using: .isoLatin1)")

    static let fileWithoutFilename = FindingReference(
        .parts, "A file has no filename",
        cause: "Servers tell a file from a text field by its filename. Without one the picture is a text "
            + "field: held in memory, cut at a limit, or garbled. Where its bytes are UTF-8 all the same, they "
            + "arrive, and it is a warning.",
        example: "Content-Disposition: form-data; name=\"image\"\\r\\nContent-Type: image/jpeg",
        fix: "Add a filename to the Content-Disposition.",
        swift: #""Content-Disposition: form-data; name=\"image\"; filename=\"photo.jpg\"\r\n""#)

    static let emptyFilename = FindingReference(
        .parts, "A filename is empty",
        cause: "This is what a browser sends where no file was chosen; most servers drop the part.",
        example: #"Content-Disposition: form-data; name="image"; filename="""#,
        fix: "Name the file, or leave the part out where there is none.")

    static let pathInFilename = FindingReference(
        .parts, "A filename has a path",
        cause: "Servers keep what follows the last slash, or refuse. A path tells the server's owner about "
            + "the sender's disk, and looks like an attack.",
        example: #"filename="/var/mobile/Containers/photo.jpg""#,
        fix: "Send the last component alone.", swift: "url.lastPathComponent")

    static let textWithFilename = FindingReference(
        .parts, "A text field has a filename",
        cause: "With a filename the text is a file: PHP has it in $_FILES, Spring in MultipartFile, and the "
            + "field that was asked for is missing.",
        example: #"Content-Disposition: form-data; name="title"; filename="title""#,
        fix: "Leave the filename out of text fields.")

    static let malformedMediaType = FindingReference(
        .parts, "A part's Content-Type is no media type",
        cause: "A media type is type/subtype (RFC 9110 §8.3.1). Servers that accept pictures only refuse the "
            + "part; some fail on it.",
        example: "Content-Type: jpeg", fix: "Write the whole type, such as image/jpeg.",
        swift: "MediaType.jpeg")

    static let misspelledMediaType = FindingReference(
        .parts, "A media type is misspelled",
        cause: "image/jpg is not registered; lists of accepted types have image/jpeg, and refuse the other.",
        example: "Content-Type: image/jpg", fix: "Write the registered name, such as image/jpeg.",
        swift: "MediaType.jpeg")

    static let contentContradictsType = FindingReference(
        .parts, "The bytes are of another type than announced",
        cause: "An iPhone's photo is HEIC, whatever it is called. Servers that look at the bytes refuse it, "
            + "and those that do not store a picture nobody can open.",
        example: "Content-Type: image/jpeg, and the content begins with ftypheic",
        fix: "Announce the type that the bytes have, or convert them.",
        swift: #"photo.jpegData(compressionQuality: 0.9)  // or announce image/heic"#)

    static let extensionContradictsType = FindingReference(
        .parts, "The filename's extension is of another type",
        cause: "Servers go by the extension, by the Content-Type or by both, and refuse where they differ.",
        example: #"filename="photo.jpg"\r\nContent-Type: image/png"#,
        fix: "Let the extension, the Content-Type and the bytes agree.")

    static let emptyFile = FindingReference(
        .parts, "A file is empty",
        cause: "The picture was nil, not yet written or already read to its end. Most servers take it, and "
            + "store nothing.",
        example: #"filename="photo.jpg"\r\n\r\n\r\n--XX"#,
        fix: "Look at the file's size before sending it.")

    static let truncatedPicture = FindingReference(
        .parts, "A picture is cut off",
        cause: "The picture's format has an end, and the bytes stop before it. It shows half, or not at all.",
        example: "A JPEG without FF D9 at its end", fix: "Send the whole file.")

    static let base64Content = FindingReference(
        .parts, "Base64 text stands where bytes belong",
        cause: "A multipart body carries bytes as they are. No server decodes base64 here, so it stores "
            + "text under a picture's name.",
        example: #"Content-Type: image/jpeg\r\n\r\n/9j/4AAQSkZJRg…"#,
        fix: "Send the bytes themselves.", swift: "body.append(photo)  // not photo.base64EncodedString()")

    static let optionalDescription = FindingReference(
        .parts, "A value is a printed optional",
        cause: "An optional was put into a string without being unwrapped. The server stores the word "
            + "Optional and its brackets.",
        example: #"Optional("Jeju")"#, fix: "Unwrap the value before writing it.",
        swift: "if let title { form.append(title) }  // not String(describing: title)")

    static let nullText = FindingReference(
        .parts, "A value is the word for nothing",
        cause: "The value was absent, and its description was sent. The server stores the word.",
        example: "nil", fix: "Leave the field out where there is no value.",
        swift: "if let title { … }")

    static let objectDescription = FindingReference(
        .parts, "A value is a printed object",
        cause: "An object was turned into text by its description, which no server reads.",
        example: "{\\n    city = Jeju;\\n}", fix: "Send JSON, or a field for each of its values.",
        swift: "try JSONEncoder().encode(place)")

    static let surprisingNumber = FindingReference(
        .parts, "A number is written for people",
        cause: "Separators of thousands and decimal commas depend on the sender's language; servers read "
            + "another number, or none.",
        example: "1.234,56", fix: "Write digits and a decimal point: 1234.56.",
        swift: #"value.formatted(.number.grouping(.never).locale(Locale(identifier: "en_US_POSIX")))"#)

    static let surprisingDate = FindingReference(
        .parts, "A date is written for people",
        cause: "Servers read dates in ISO 8601; a description depends on the sender's language and time zone.",
        example: "2026-11-21 11:04:10 +0000", fix: "Write 2026-11-21T11:04:10Z.",
        swift: "date.formatted(.iso8601)")

    static let textNotUTF8 = FindingReference(
        .parts, "A text is not in UTF-8",
        cause: "Texts in forms are read as UTF-8 (RFC 7578 §5.1); other bytes become question marks or "
            + "refusals.",
        example: #"caf\xE9"#, fix: "Write texts in UTF-8.", swift: "Data(text.utf8)")

    static let repeatedFilename = FindingReference(
        .parts, "Several files have one filename",
        cause: "The filename is fixed in a loop. Servers that store by name keep the last file alone.",
        example: #"filename="image.jpg" in each part"#,
        fix: "Give each file a name of its own.", swift: #""image-\(index).jpg""#)

    static let repeatedContent = FindingReference(
        .parts, "Two files have the same bytes",
        cause: "The same file was added twice, or a loop appends one variable again and again.",
        example: "Two parts with one SHA-256", fix: "Append each file once.")

    static let locationInPhoto = FindingReference(
        .parts, "A photo tells where it was taken",
        cause: "The photo's EXIF holds a GPS position. Whoever gets the file can read it: often the sender's "
            + "home.",
        example: "A JPEG whose EXIF has a GPS directory",
        fix: "Take the position out unless the server needs it: postcard send --metadata without-location does so "
            + "while it sends.",
        swift: "part.metadata = .withoutLocation")
}
