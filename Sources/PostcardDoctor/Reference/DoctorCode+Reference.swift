// One table, longer than a file should be, because the documentation is made from it and nothing else.

extension DoctorCode {
    /// What the reference says of the code.
    public var reference: FindingReference {
        switch self {
        // The request's head.
        case .duplicateContentType:
            FindingReference(
                .head, "Two Content-Types",
                cause: "A header was added where it should have been set: URLRequest's addValue appends to a JSON "
                    + "type that was set before. Servers take the first, which is not multipart, or none.",
                example: "Content-Type: application/json, multipart/form-data; boundary=XX",
                fix: "Set Content-Type once, to multipart/form-data with the body's boundary.",
                swift: #"request.setValue("multipart/form-data; boundary=\(boundary)", "#
                    + #"forHTTPHeaderField: "Content-Type")"#)
        case .conflictingLengths:
            FindingReference(
                .head, "Two lengths of one body",
                cause: "A server believes the one and its proxy the other, which is how requests are smuggled, so "
                    + "both refuse (RFC 9112 §6.3).",
                example: #"Content-Length: 812\r\nTransfer-Encoding: chunked"#,
                fix: "Send the Content-Length or the Transfer-Encoding, and let the library that sends decide which.")
        case .boundaryMismatch:
            FindingReference(
                .head, "The header's boundary is not the body's",
                cause: "The boundary was made anew for the header and for the body: often a computed property with "
                    + "a UUID. The server looks for delimiters that are not there, and finds no part.",
                example: #"Content-Type: multipart/form-data; boundary=A1\r\n\r\n--B2\r\n…"#,
                fix: "Make the boundary once, keep it, and use it for both.",
                swift: "let boundary = UUID().uuidString  // stored, not var boundary: String { UUID().uuidString }")
        case .boundaryWithDashes:
            FindingReference(
                .head, "The delimiter's dashes stand in the boundary",
                cause: "A delimiter is two dashes and the boundary. Where the boundary parameter already has them, or "
                    + "the body writes too few, the server looks for two dashes that are not there.",
                example: #"Content-Type: multipart/form-data; boundary=--XX\r\n\r\n--XX\r\n…"#,
                fix: "Leave the two dashes out of the Content-Type; write them before the boundary in the body alone.",
                swift: #""multipart/form-data; boundary=\(boundary)"  // and "--\(boundary)\r\n" in the body"#)
        case .boundaryQuotes:
            FindingReference(
                .head, "Quotes became part of the boundary",
                cause: "Quotes around the parameter are not part of its value; single quotes are, and so is every "
                    + "quote in the body. The server looks for the boundary without them, or with them.",
                example: #"boundary="XX" in the head, and --"XX" in the body"#,
                fix: "Write the boundary without quotes in both places.")
        case .boundarySpaces:
            FindingReference(
                .head, "Spaces became part of the boundary",
                cause: "A space at either end of a quoted boundary is part of it, and it may not end in one (RFC 2046 "
                    + "§5.1.1). Servers differ in what they then look for.",
                example: #"boundary="XX " in the head, and --XX in the body"#,
                fix: "Write the boundary without spaces.")
        case .boundaryCase:
            FindingReference(
                .head, "The boundary changed its case",
                cause: "A boundary is compared byte by byte; something has put the header into lower case.",
                example: "boundary=formboundary7ma in the head, and --FormBoundary7MA in the body",
                fix: "Write the boundary alike in both places.")
        case .boundaryWithoutQuotes:
            FindingReference(
                .head, "The boundary needs quotes",
                cause: "Characters such as : / ? = , and space end a token (RFC 9110 §5.6.2). Strict servers read the "
                    + "boundary only up to there.",
                example: "Content-Type: multipart/form-data; boundary=form:1/2",
                fix: "Use letters and digits alone, or put the boundary into double quotes.")
        case .boundaryCharacters:
            FindingReference(
                .head, "The boundary has forbidden characters",
                cause: "RFC 2046 §5.1.1 allows letters, digits and '()+_,-./:=? in a boundary; some servers hold "
                    + "senders to it.",
                example: "Content-Type: multipart/form-data; boundary=photo@home",
                fix: "Make the boundary of letters and digits.")
        case .jsonBody:
            FindingReference(
                .head, "The body is JSON",
                cause: "A generic endpoint passed the form, or the fields, through JSONEncoder. The Content-Type "
                    + "announces parts, and the server finds none.",
                example: #"{"title":"Jeju","image":"/9j/4AAQ…"}"#,
                fix: "Send the form's own bytes as the body, or announce application/json where the server takes it.",
                swift: "request.httpBody = try form.body()  // not try JSONEncoder().encode(form)")
        case .urlEncodedBody:
            FindingReference(
                .head, "The body is a URL-encoded form",
                cause:
                    "The body is name=value&name=value, and the Content-Type announces parts. The server finds none.",
                example: "title=Jeju&message=hello",
                fix: "Send application/x-www-form-urlencoded with this body, or build a multipart one.")
        case .base64Body:
            FindingReference(
                .head, "The whole body is base64",
                cause: "The form was encoded for a place that takes text only and never decoded. HTTP carries bytes "
                    + "as they are, and no server undoes it.",
                example: "LS1YWA0KQ29udGVudC1EaXNwb3NpdGlvbjog…",
                fix: "Send the bytes of the body as they are.",
                swift: "request.httpBody = body  // not Data(body.base64EncodedString().utf8)")
        case .percentEncodedBody:
            FindingReference(
                .head, "The whole body is percent-encoded",
                cause: "The form went through URL escaping, so its line breaks are %0D%0A. No server undoes that for "
                    + "multipart.",
                example: "--XX%0D%0AContent-Disposition:%20form-data;%20name=%22a%22%0D%0A…",
                fix: "Send the bytes of the body as they are.")
        // The delimiters.
        case .byteOrderMark:
            FindingReference(
                .delimiters, "A byte order mark comes first",
                cause: "The body was written as a text file with a byte order mark. It counts as text before the "
                    + "first delimiter, and servers that allow none refuse the form.",
                example: #"\u{FEFF}--XX\r\n"#,
                fix: "Begin the body with two dashes and the boundary.")
        case .leadingLineBreak:
            FindingReference(
                .delimiters, "The body begins with a line break",
                cause: "The first delimiter was written like the others, with CRLF before it. RFC 2046 §5.1.1 allows "
                    + "it, and some servers refuse it all the same.",
                example: #"\r\n--XX\r\nContent-Disposition: form-data; name=\"a\"…"#,
                fix: "Begin the body with two dashes and the boundary; write CRLF only before the later delimiters.")
        case .preamble:
            FindingReference(
                .delimiters, "Text comes before the first delimiter",
                cause: "What comes before the first delimiter is passed over (RFC 2046 §5.1.1), or refused. It is lost "
                    + "in any case.",
                example: #"This is a form.\r\n--XX\r\n…"#,
                fix: "Begin the body with two dashes and the boundary.")
        case .delimiterWithoutDashes:
            FindingReference(
                .delimiters, "The delimiters lack their dashes",
                cause: "Before each part stands the boundary alone. A delimiter is two dashes and the boundary "
                    + "(RFC 2046 §5.1.1), so the server finds none.",
                example: #"XX\r\nContent-Disposition: form-data; name=\"a\"…"#,
                fix: "Write two dashes before the boundary, and two more behind the last one.",
                swift: #"body.append(Data("--\(boundary)\r\n".utf8))"#)
        case .missingLineBreakBeforeDelimiter:
            FindingReference(
                .delimiters, "A delimiter does not begin a line",
                cause: "The CRLF before a delimiter belongs to the delimiter. Without it the content goes on: the "
                    + "server takes the delimiter, and all behind it, for the value.",
                example: #"hello--XX--\r\n"#,
                fix: "Write CRLF between a part's content and the next delimiter.",
                swift: #"body.append(content); body.append(Data("\r\n--\(boundary)\r\n".utf8))"#)
        case .missingLineBreakAfterDelimiter:
            FindingReference(
                .delimiters, "A header begins on the delimiter's line",
                cause: "A delimiter fills its line. With something behind the boundary it is another boundary, or "
                    + "part of the content.",
                example: "--XXContent-Disposition: form-data; name=\"a\"",
                fix: "Write CRLF behind the boundary.", swift: #"body.append(Data("--\(boundary)\r\n".utf8))"#)
        case .extraLineBreakBeforeDelimiter:
            FindingReference(
                .delimiters, "The content ends in a line break of its own",
                cause: "Each part ends in CRLF and each delimiter begins with one, so that every part but the last "
                    + "gains two bytes. Digests differ, and strict picture readers complain.",
                example: #"…\xFF\xD9\r\n\r\n--XX\r\n"#,
                fix: "Write one CRLF between a part's content and the next delimiter.",
                swift: #"body.append(photo); body.append(Data("\r\n--\(boundary)\r\n".utf8))  // not twice "\r\n""#)
        case .paddedDelimiter:
            FindingReference(
                .delimiters, "Blanks follow the boundary",
                cause:
                    "RFC 2046 §5.1.1 lets blanks follow a boundary, and several servers take such a line for content.",
                example: #"--XX  \r\n"#,
                fix: "Let CRLF follow the boundary.")
        case .missingBlankLine:
            FindingReference(
                .delimiters, "No blank line follows a part's header",
                cause: "The blank line ends the header. Without it the content is read as header fields, and refused.",
                example: #"Content-Disposition: form-data; name=\"a\"\r\nhello\r\n--XX--"#,
                fix: "Write a blank line, which is CRLF twice, between a part's header and its content.",
                swift: #"body.append(Data("Content-Disposition: form-data; name=\"a\"\r\n\r\n".utf8))"#)
        case .extraBlankLine:
            FindingReference(
                .delimiters, "A blank line precedes a part's header",
                cause: "A part's header follows its delimiter at once. After a blank line it is content, and the part "
                    + "has no name.",
                example: #"--XX\r\n\r\nContent-Disposition: form-data; name=\"a\""#,
                fix: "Let the header follow the delimiter's CRLF at once.")
        case .delimiterInContent:
            FindingReference(
                .delimiters, "A line of the content looks like a delimiter",
                cause: "The content has the boundary in it. Some servers end the part there, and some do not.",
                example: #"…text\r\n--XXY\r\nmore text…"#,
                fix: "Choose a boundary that the content does not hold; a random one never is.",
                swift: "let boundary = Boundary()")
        case .missingCloseDelimiter:
            FindingReference(
                .delimiters, "The close delimiter is missing",
                cause: "Only the close delimiter tells a whole form from one that was cut off, so servers refuse a "
                    + "form without it, or wait for the rest.",
                example: #"…hello\r\n"#,
                fix: "End the body with CRLF, two dashes, the boundary, two dashes and CRLF.",
                swift: #"body.append(Data("\r\n--\(boundary)--\r\n".utf8))"#)
        case .wrongCloseDelimiter:
            FindingReference(
                .delimiters, "The last delimiter does not close",
                cause: "The close delimiter has two dashes, hyphen-minus, behind the boundary. With fewer, or with a "
                    + "typographic dash, another part is awaited.",
                example: #"--XX—\r\n"#,
                fix: "Write two hyphens behind the last boundary.",
                swift: #"body.append(Data("\r\n--\(boundary)--\r\n".utf8))"#)
        case .noFinalLineBreak:
            FindingReference(
                .delimiters, "No line break follows the close delimiter",
                cause: "RFC 2046 does not ask for one, but ASP.NET's older readers wait for it and report an "
                    + "unexpected end of the stream.",
                example: "…hello\\r\\n--XX--",
                fix: "Write CRLF behind the close delimiter.",
                swift: #"body.append(Data("\r\n--\(boundary)--\r\n".utf8))"#)
        case .epilogue:
            FindingReference(
                .delimiters, "Bytes follow the close delimiter",
                cause: "What follows the close delimiter is passed over, or refused. It is lost in any case.",
                example: #"--XX--\r\nThat was the form."#,
                fix: "End the body with the close delimiter and CRLF.")
        case .partsAfterCloseDelimiter:
            FindingReference(
                .delimiters, "Parts follow the close delimiter",
                cause: "Each part was closed as if it were the last. The server reads up to the first close delimiter "
                    + "and loses the rest without a word.",
                example: #"--XX--\r\n--XX\r\nContent-Disposition: …"#,
                fix: "Write two dashes behind the last boundary alone.")
        // The parts.
        case .blankBeforeColon:
            FindingReference(
                .parts, "A blank stands before a header field's colon",
                cause: "No blank may stand there (RFC 9112 §5.1): servers refuse it, or miss the field.",
                example: "Content-Disposition : form-data; name=\"a\"",
                fix: "Write Name: value, with no blank before the colon.")
        case .unescapedQuote:
            FindingReference(
                .parts, "A quote ends a value too early",
                cause: "A quote in a name or filename ends the value there; what follows is read as parameters, or "
                    + "refused. A name from a user can inject headers this way.",
                example: #"filename="my "best" photo.jpg""#,
                fix: "Write %22 for a quote in a name or filename, as browsers do.",
                swift: #"filename.replacing("\"", with: "%22")"#)
        case .unquotedValue:
            FindingReference(
                .parts, "A value needs quotes",
                cause: "Without quotes a value ends at the first blank or semicolon (RFC 9110 §5.6.6).",
                example: "Content-Disposition: form-data; name=a; filename=my cat.jpg",
                fix: "Put every name and filename into double quotes.",
                swift: #""name=\"\(name)\"; filename=\"\(filename)\"""#)
        case .controlInName:
            FindingReference(
                .parts, "A name holds control characters",
                cause: "Control characters in names are refused by some servers, and stored by others where nobody "
                    + "can see them.",
                example: #"filename="photo\t1.jpg""#,
                fix: "Take control characters out of names; write %0D and %0A for a line break.")
        case .mojibake:
            FindingReference(
                .parts, "A name was read in the wrong charset",
                cause: "The bytes of a UTF-8 name were read as Latin-1, and each became a character of its own. The "
                    + "server stores what it gets.",
                example: "filename=\"cafÃ©.jpg\"",
                fix: "Read names as UTF-8, and write them as UTF-8.",
                swift: "Data(filename.utf8)  // not filename.data(using: .isoLatin1)")
        case .fileWithoutFilename:
            FindingReference(
                .parts, "A file has no filename",
                cause: "Servers tell a file from a text field by its filename. Without one the picture is a text "
                    + "field: held in memory, cut at a limit, or garbled.",
                example: "Content-Disposition: form-data; name=\"image\"\\r\\nContent-Type: image/jpeg",
                fix: "Add a filename to the Content-Disposition.",
                swift: #""Content-Disposition: form-data; name=\"image\"; filename=\"photo.jpg\"\r\n""#)
        case .emptyFilename:
            FindingReference(
                .parts, "A filename is empty",
                cause: "This is what a browser sends where no file was chosen; most servers drop the part.",
                example: #"Content-Disposition: form-data; name="image"; filename="""#,
                fix: "Name the file, or leave the part out where there is none.")
        case .pathInFilename:
            FindingReference(
                .parts, "A filename has a path",
                cause: "Servers keep what follows the last slash, or refuse. A path tells the server's owner about "
                    + "the sender's disk, and looks like an attack.",
                example: #"filename="/var/mobile/Containers/photo.jpg""#,
                fix: "Send the last component alone.", swift: "url.lastPathComponent")
        case .textWithFilename:
            FindingReference(
                .parts, "A text field has a filename",
                cause: "With a filename the text is a file: PHP has it in $_FILES, Spring in MultipartFile, and the "
                    + "field that was asked for is missing.",
                example: #"Content-Disposition: form-data; name="title"; filename="title""#,
                fix: "Leave the filename out of text fields.")
        case .malformedMediaType:
            FindingReference(
                .parts, "A part's Content-Type is no media type",
                cause: "A media type is type/subtype (RFC 9110 §8.3.1). Servers that accept pictures only refuse the "
                    + "part; some fail on it.",
                example: "Content-Type: jpeg", fix: "Write the whole type, such as image/jpeg.",
                swift: "MediaType.jpeg")
        case .misspelledMediaType:
            FindingReference(
                .parts, "A media type is misspelled",
                cause: "image/jpg is not registered; lists of accepted types have image/jpeg, and refuse the other.",
                example: "Content-Type: image/jpg", fix: "Write the registered name, such as image/jpeg.",
                swift: "MediaType.jpeg")
        case .contentContradictsType:
            FindingReference(
                .parts, "The bytes are of another type than announced",
                cause: "An iPhone's photo is HEIC, whatever it is called. Servers that look at the bytes refuse it, "
                    + "and those that do not store a picture nobody can open.",
                example: "Content-Type: image/jpeg, and the content begins with ftypheic",
                fix: "Announce the type that the bytes have, or convert them.",
                swift: #"photo.jpegData(compressionQuality: 0.9)  // or announce image/heic"#)
        case .extensionContradictsType:
            FindingReference(
                .parts, "The filename's extension is of another type",
                cause: "Servers go by the extension, by the Content-Type or by both, and refuse where they differ.",
                example: #"filename="photo.jpg"\r\nContent-Type: image/png"#,
                fix: "Let the extension, the Content-Type and the bytes agree.")
        case .emptyFile:
            FindingReference(
                .parts, "A file is empty",
                cause: "The picture was nil, not yet written or already read to its end. Most servers take it, and "
                    + "store nothing.",
                example: #"filename="photo.jpg"\r\n\r\n\r\n--XX"#,
                fix: "Look at the file's size before sending it.")
        case .truncatedPicture:
            FindingReference(
                .parts, "A picture is cut off",
                cause: "The picture's format has an end, and the bytes stop before it. It shows half, or not at all.",
                example: "A JPEG without FF D9 at its end", fix: "Send the whole file.")
        case .base64Content:
            FindingReference(
                .parts, "Base64 text stands where bytes belong",
                cause: "A multipart body carries bytes as they are. No server decodes base64 here, so it stores "
                    + "text under a picture's name.",
                example: #"Content-Type: image/jpeg\r\n\r\n/9j/4AAQSkZJRg…"#,
                fix: "Send the bytes themselves.", swift: "body.append(photo)  // not photo.base64EncodedString()")
        case .optionalDescription:
            FindingReference(
                .parts, "A value is a printed optional",
                cause: "An optional was put into a string without being unwrapped. The server stores the word "
                    + "Optional and its brackets.",
                example: #"Optional("Jeju")"#, fix: "Unwrap the value before writing it.",
                swift: "if let title { form.append(title) }  // not String(describing: title)")
        case .nullText:
            FindingReference(
                .parts, "A value is the word for nothing",
                cause: "The value was absent, and its description was sent. The server stores the word.",
                example: "nil", fix: "Leave the field out where there is no value.",
                swift: "if let title { … }")
        case .objectDescription:
            FindingReference(
                .parts, "A value is a printed object",
                cause: "An object was turned into text by its description, which no server reads.",
                example: "{\\n    city = Jeju;\\n}", fix: "Send JSON, or a field for each of its values.",
                swift: "try JSONEncoder().encode(place)")
        case .surprisingNumber:
            FindingReference(
                .parts, "A number is written for people",
                cause: "Separators of thousands and decimal commas depend on the sender's language; servers read "
                    + "another number, or none.",
                example: "1.234,56", fix: "Write digits and a decimal point: 1234.56.",
                swift: #"value.formatted(.number.grouping(.never).locale(Locale(identifier: "en_US_POSIX")))"#)
        case .surprisingDate:
            FindingReference(
                .parts, "A date is written for people",
                cause: "Servers read dates in ISO 8601; a description depends on the sender's language and time zone.",
                example: "2026-11-21 11:04:10 +0000", fix: "Write 2026-11-21T11:04:10Z.",
                swift: "date.formatted(.iso8601)")
        case .textNotUTF8:
            FindingReference(
                .parts, "A text is not in UTF-8",
                cause: "Texts in forms are read as UTF-8 (RFC 7578 §5.1); other bytes become question marks or "
                    + "refusals.",
                example: #"caf\xE9"#, fix: "Write texts in UTF-8.", swift: "Data(text.utf8)")
        case .repeatedFilename:
            FindingReference(
                .parts, "Several files have one filename",
                cause: "The filename is fixed in a loop. Servers that store by name keep the last file alone.",
                example: #"filename="image.jpg" in each part"#,
                fix: "Give each file a name of its own.", swift: #""image-\(index).jpg""#)
        case .repeatedContent:
            FindingReference(
                .parts, "Two files have the same bytes",
                cause: "The same file was added twice, or a loop appends one variable again and again.",
                example: "Two parts with one SHA-256", fix: "Append each file once.")
        case .locationInPhoto:
            FindingReference(
                .parts, "A photo tells where it was taken",
                cause: "The photo's EXIF holds a GPS position. Whoever gets the file can read it: often the sender's "
                    + "home.",
                example: "A JPEG whose EXIF has a GPS directory",
                fix: "Take the position out unless the server needs it.")
        // The whole.
        case .noParts:
            FindingReference(
                .whole, "The form has no parts",
                cause: "There is a close delimiter and nothing before it. Some servers take that for an empty form, "
                    + "some refuse it.",
                example: #"--XX--\r\n"#, fix: "Append a part, or send no body.")
        case .fieldsAfterFile:
            FindingReference(
                .whole, "Fields follow the file",
                cause: "S3's POST reads fields up to the file and ignores what follows, so that the policy or the key "
                    + "is missing.",
                example: "name=\"file\" before name=\"key\"", fix: "Let the file be the last part.")
        case .overCommonDefaults:
            FindingReference(
                .whole, "The form is over common servers' defaults",
                cause: "Servers refuse what is larger than they were told to take, mostly with 413, and some drop it "
                    + "without a word.",
                example: "A photo of 3 MB to PHP, which takes 2 MB",
                fix: "Raise the setting that is named, or send less.")
        case .refusedByServer:
            FindingReference(
                .whole, "The server that was asked about refuses it",
                cause: "By its rules and default settings this server refuses the form, or reads it otherwise.",
                example: "--against nginx, and a body of 3 MB",
                fix: "Change the setting that is named, or the form.")
        }
    }
}
