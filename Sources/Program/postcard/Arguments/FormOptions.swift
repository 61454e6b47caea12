import ArgumentParser
import Foundation
import HTTPTypes
import PostcardForm
import PostcardPictures

/// The option and argument for the server to which a form is sent.
struct FormTarget: ParsableArguments {
    @Argument(help: "Where to send the form: an http or https URL, or as in curl one of http without its scheme.")
    var url: String?

    @Option(
        name: .customLong("url"),
        help: ArgumentHelp(
            "The same as an option, for a file of --config. An argument has priority.", valueName: "url"))
    var named: String?

    /// The URL with the scheme that curl assumes. A single word other than `localhost` gets no scheme, because the word
    /// is probably not a host.
    var text: String {
        let text = url ?? named ?? ""
        let hasScheme = text.drop { $0.isLetter || $0.isNumber || "+-.".contains($0) }.hasPrefix("://")
        let hasHost = text.contains { ".:/".contains($0) } || text == "localhost"
        return hasScheme || !hasHost || text.hasPrefix("/") || text.hasPrefix(".") ? text : "http://\(text)"
    }

    func validate() throws {
        if url == nil, named == nil {
            throw ValidationError("The form has no URL to go to. Add one, such as http://127.0.0.1:8080/uploads.")
        }
    }
}

/// The options from which a form and its request are made.
struct FormOptions: ParsableArguments {
    @Option(
        name: [.customShort("F"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A part of the form. Repeat it for more parts, which are sent in this order.",
            discussion: """
                name=value is a text field, name=@path[;type=MIME][;filename=NAME] a file, and name=<path a text field \
                whose value is the file's content. The path - is standard input. name=@a,b sends two files, as two \
                parts (RFC 7578, section 4.3). ;headers=FIELD or ;headers=@path adds header fields to a part, and \
                ;encoder=base64, quoted-printable, 8bit, 7bit or binary encodes it. 'name=(;type=multipart/mixed' \
                begins a multipart within the form, which '=)' ends. A word in quotes may have any of these \
                characters. Unlike curl, a text keeps its blanks and semicolons.
                """,
            valueName: "name=value"))
    var form: [RawValue] = []

    @Option(
        name: .customLong("form-string"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A text field in which no character has a meaning, between the parts of -F; repeatable.",
            valueName: "name=value"))
    var formString: [RawValue] = []

    @Option(
        name: [.customShort("K"), .long],
        help: ArgumentHelp(
            "Read options from a file, one a line, as curl does; repeatable.",
            discussion: """
                Such as form = "photo=@cat.jpg", in which \\", \\\\, \\n, \\r and \\t are escapes. Its options count \
                as if they were written in its place, and paths begin in the current directory. 'postcard explain \
                --edit' writes one.
                """,
            valueName: "file"))
    var config: [String] = []

    @Flag(help: "Send the line breaks of texts and names as CRLF, as browsers do.")
    var crlf = false

    @Flag(help: "Send fields before files, so that a receiver can check them before the first file arrives.")
    var fieldsFirst = false

    /// The metadata to remove from the pictures and videos of a form.
    enum Metadata: String, ExpressibleByArgument, CaseIterable {
        case asIs = "as-is"
        case withoutLocation = "without-location"
        case none

        var policy: MetadataPolicy {
            switch self {
            case .asIs: .asIs
            case .withoutLocation: .withoutLocation
            case .none: .none
            }
        }
    }

    @Option(
        help: ArgumentHelp(
            "What is left of the metadata of the files that are sent.",
            discussion: """
                without-location removes positions, names of places and persons, and serial numbers, also from the \
                video of a motion photo and from further pictures in a file; none removes everything but the \
                orientation and the color profile, and with that such a video. The files stay as they are, and so \
                does every pixel. A file whose metadata cannot be removed, such as a PDF, is an error. Defaults to \
                without-location for pictures and videos in a known format, and as-is for other files; standard \
                error says what was removed. Files through < count too unless they are texts, and so does standard \
                input, which is stored in a temporary file first.
                """))
    var metadata: Metadata?

    /// The limit that pictures of a form are made to fit.
    enum Fit: ExpressibleByArgument {
        case bytes(Int64)
        case server

        init?(argument: String) {
            if argument == "server" {
                self = .server
            } else if let count = ByteCount(argument) {
                self = .bytes(count.bytes)
            } else {
                return nil
            }
        }
    }

    @Option(
        help: ArgumentHelp(
            "The maximum number of bytes of each picture, such as 1MB, or server for as many as the server accepts.",
            discussion: """
                A picture that does not fit becomes the best JPEG that does: upright, without metadata, and without \
                the video of a motion photo, which is said on standard error. So does \
                any picture that is not JPEG, PNG, WebP or GIF. With server, the server is asked for its limit before \
                anything is sent (OPTIONS), and refusals report others; while none is known, pictures are sent as they \
                are. A queue stores them as they are. Files that are no pictures stay as they are.
                """,
            valueName: "size"))
    var fit: Fit?

    @Option(
        help: ArgumentHelp(
            "The maximum number of pixels of a picture's longer edge.",
            discussion: """
                Defaults to \(PictureLimit(maximumBytes: 1).maximumEdge) with --fit. With --fit server, the default is \
                only for pictures that are too large; an edge that is given is for all.
                """,
            valueName: "pixels"))
    var maxEdge: Int?

    /// Whether pictures are made to fit the server's limit.
    var fitsServer: Bool {
        if case .server = fit { true } else { false }
    }

    /// The way to make pictures fit; `nil` to send them unchanged.
    private var fitting: PictureFitting? {
        switch (fit, maxEdge) {
        case (nil, nil): nil
        case (.server, nil): .serverLimit
        case (.server, let edge?): .serverLimit(maximumEdge: edge)
        case (.bytes(let bytes), nil): .each(PictureLimit(maximumBytes: bytes))
        case (.bytes(let bytes), let edge?): .each(PictureLimit(maximumBytes: bytes, maximumEdge: edge))
        case (nil, let edge?): .each(PictureLimit(maximumBytes: .max, maximumEdge: edge))
        }
    }

    @Option(name: [.customShort("X"), .long], help: "The request's method: POST, PUT or PATCH.")
    var request = "POST"

    @Option(
        name: [.customShort("H"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A header field of the request, Name; for an empty one, or @FILE for one a line; repeatable.",
            valueName: "Name: value"))
    var header: [String] = []

    @Option(
        name: [.customShort("u"), .long],
        help: ArgumentHelp(
            "Authenticate with a name and a password (RFC 7617). Other users of this machine can see them.",
            valueName: "name:password"))
    var user: String?

    func validate() throws {
        if form.isEmpty, formString.isEmpty {
            throw ValidationError("There is nothing to send. Add a part with -F name=value or -F name=@file.")
        }
        if try arguments().count(where: \.readsStandardInput) + header.count(where: { $0 == "@-" }) > 1 {
            throw ValidationError("Standard input can be sent only once.")
        }
        if case .bytes(let bytes) = fit, bytes < 1 {
            throw ValidationError("A picture cannot fit into less than one byte.")
        }
        if let maxEdge, maxEdge < 1 { throw ValidationError("The edge must be at least one pixel.") }
        // Files are not read here, because a pipe can be read only once, when the form is made.
        for argument in header where !argument.hasPrefix("@") { _ = try Self.valid { try HeaderArgument(argument) } }
        try checkUser()
        _ = try method()
    }

    private func checkUser() throws {
        guard let user else { return }
        guard user.contains(":") else {
            throw ValidationError("Write -u name:password. The password may be empty.")
        }
        guard !header.contains(where: { $0.lowercased().hasPrefix("authorization:") }) else {
            throw ValidationError("There are two authorizations: -u and -H Authorization.")
        }
    }

    /// The form that the options describe. Throws ``CommandFailure`` if a file cannot be read.
    func multipartForm() throws -> MultipartForm {
        var builder = FormBuilder()
        builder.metadata = metadata?.policy
        builder.fitting = fitting
        builder.lineBreaks = crlf ? .normalized : .asGiven
        for argument in try arguments() { try builder.append(argument) }
        let form = try builder.form()
        return fieldsFirst ? form.fieldsFirst() : form
    }

    /// The parts that the options describe, in their order.
    func arguments() throws -> [FormArgument] {
        // For options that come from the process's arguments, `form` already has the values of --form-string.
        let values = form + formString.map { RawValue($0.text.bytes, isLiteral: true) }
        return try values.map { value in try Self.valid { try FormArgument(value) } }
    }

    /// Whether a `-H` is ignored because the form determines the field.
    static func isDetermined(byFormInstead argument: String) -> Bool {
        let name = argument.prefix { $0 != ":" && $0 != ";" }.lowercased()
        return ["content-type", "content-length", "transfer-encoding"].contains(name)
    }

    /// Reports the `-H` options that are ignored because the form determines the field.
    func sayWhatIsIgnored() {
        for argument in header where Self.isDetermined(byFormInstead: argument) && !argument.hasSuffix(":") {
            let name = argument.prefix { $0 != ":" && $0 != ";" }
            Terminal.say(
                "postcard: -H '\(argument)' is ignored: the form determines its \(name), so leave it out.")
        }
    }

    /// The header fields that the options set. Throws ``CommandFailure`` if a file with header fields cannot be read.
    func headerFields() throws -> HTTPFields {
        var fields = HTTPFields()
        for argument in header {
            let isFile = argument.hasPrefix("@")
            for line in isFile ? try TextFile(String(argument.dropFirst())).headerLines() : [argument] {
                let parsed = try Self.valid { try HeaderArgument(line) }
                if !parsed.isRemoval, !Self.isDetermined(byFormInstead: line) { fields.append(parsed.field) }
            }
        }
        if let user { fields[.authorization] = "Basic \(Data(user.utf8).base64EncodedString())" }
        return fields
    }

    func method() throws -> HTTPRequest.Method {
        guard let method = Self.method(named: request) else {
            throw ValidationError("A form is sent with POST, PUT or PATCH, not with '\(request)'.")
        }
        return method
    }

    /// The method with a name; `nil` if the method cannot send forms.
    static func method(named name: String) -> HTTPRequest.Method? {
        [.post, .put, .patch].first { $0.rawValue == name.uppercased() }
    }

    /// Turns an argument's error into a usage error.
    static func valid<Value>(_ make: () throws -> Value) throws -> Value {
        do {
            return try make()
        } catch {
            throw ValidationError("\(error)")
        }
    }
}

extension FormArgument {
    fileprivate var readsStandardInput: Bool {
        let names: [ArgumentText] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]
        return parts.contains { part in
            names.contains { name in
                part.source == .file(path: name) || part.source == .textOfFile(path: name)
                    || part.headers.files.contains(name)
            }
        }
    }
}
