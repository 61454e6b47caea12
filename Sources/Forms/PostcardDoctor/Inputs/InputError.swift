public import PostcardForm
import PostcardFoundation

/// Why no request can be read from an input.
public struct InputError: PostcardError {
    /// The kind of an error; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// A HAR file, or a copied command or call, is broken or too large.
        public static let malformedArchive = Code(rawValue: "malformed-archive")
        /// The input has no entry with the given number.
        public static let noEntry = Code(rawValue: "no-entry")
        /// The input has several uploads, and no number chooses one of them.
        public static let severalUploads = Code(rawValue: "several-uploads")
        /// The input has no request with a body.
        public static let noUpload = Code(rawValue: "no-upload")
    }

    /// The kind of the error.
    public let code: Code

    /// The error, in a sentence.
    public let message: String

    /// The advice on what to do, in a sentence or two.
    public let advice: String?

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

/// The kind of an input that is not an HTTP request, recognized by its first bytes.
enum ForeignInput: Sendable, Equatable {
    case empty
    /// The body of a form without its head.
    case body(boundary: String)
    case response
    case verboseCurl
    case tls
    case http2
    case json
    case encodedForm
    case utf16
    case packetCapture
    case executable
    case media(MediaType)
    case text
    case binary

    /// The number of first bytes that are checked.
    static let startLength = 1024

    /// Recognizes an input by its first bytes. `nil` if it may be a request, even a broken one.
    init?(_ start: [UInt8]) {
        if start.isEmpty {
            self = .empty
        } else if let known = Self.signatures.first(where: { start.starts(with: $0.bytes) }) {
            self = known.input
        } else if let type = MediaType.forFirstBytes(start) {
            self = .media(type)
        } else if let other = Self.text(start) {
            self = other
        } else {
            return nil
        }
    }

    private static let signatures: [(bytes: [UInt8], input: ForeignInput)] = [
        (Array("PRI * HTTP/2.0".utf8), .http2),
        (Array("HTTP/".utf8), .response),
        ([0x16, 0x03], .tls),
        ([0x7F, 0x45, 0x4C, 0x46], .executable),
        ([0xCF, 0xFA, 0xED, 0xFE], .executable), ([0xCA, 0xFE, 0xBA, 0xBE], .executable),
        ([0xFF, 0xFE], .utf16), ([0xFE, 0xFF], .utf16),
        ([0x0A, 0x0D, 0x0D, 0x0A], .packetCapture), ([0xD4, 0xC3, 0xB2, 0xA1], .packetCapture),
        ([0xA1, 0xB2, 0xC3, 0xD4], .packetCapture),
    ]

    private static func text(_ start: [UInt8]) -> ForeignInput? {
        let lines = start.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        }
        guard let first = lines.first(where: { !$0.isEmpty }) else { return .text }
        if Self.isRequestLine(first) { return nil }
        if let boundary = boundary(first, start) { return .body(boundary: boundary) }
        if lines.contains(where: { $0.starts(with: "> ".utf8) }), lines.contains(where: { $0.starts(with: "* ".utf8) })
        {
            return .verboseCurl
        }
        if first.first == UInt8(ascii: "{") || first.first == UInt8(ascii: "[") { return .json }
        // Text has no such control characters.
        if start.contains(where: { $0 < 0x20 && !(0x08...0x0D).contains($0) && $0 != 0x1B }) { return .binary }
        if lines.dropFirst().prefix(8).contains(where: isHeaderField) { return nil }
        if lines.count <= 2, !first.contains(UInt8(ascii: " ")), first.contains(UInt8(ascii: "=")) {
            return .encodedForm
        }
        // The last character may be incomplete.
        let isText = (0...3).contains { String(validating: start.dropLast($0), as: UTF8.self) != nil }
        return isText ? .text : .binary
    }

    /// Whether a line begins with a word of letters, and either ends in an HTTP version or has a path as its second
    /// word. Mistakes in such a line are reported later.
    private static func isRequestLine(_ line: ArraySlice<UInt8>) -> Bool {
        let words = line.split(separator: UInt8(ascii: " "))
        guard words.count >= 2, words[0].allSatisfy({ (0x41...0x5A).contains($0 & 0xDF) }) else { return false }
        return words.last?.starts(with: "HTTP".utf8) == true || words[1].first == UInt8(ascii: "/")
    }

    private static func isHeaderField(_ line: ArraySlice<UInt8>) -> Bool {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { return false }
        return line[..<colon].allSatisfy { $0.isDigit || $0 == UInt8(ascii: "-") || (0x41...0x5A).contains($0 & 0xDF) }
    }

    /// The boundary of a body without a head. The first line must be a delimiter, and a part's header must follow.
    private static func boundary(_ line: ArraySlice<UInt8>, _ start: [UInt8]) -> String? {
        guard line.starts(with: "--".utf8), line.count > 2, line.count <= 72 else { return nil }
        let text = String(streamSafe: start).lowercased()
        guard text.contains("content-disposition") || text.contains("content-type") else { return nil }
        return String(validating: line.dropFirst(2), as: UTF8.self)
    }
}

extension ForeignInput {
    var message: String {
        switch self {
        case .empty: "The input is empty."
        case .body: "The input is a form's body alone: the head of its request is missing."
        case .response: "The input is an HTTP response, not a request."
        case .verboseCurl: "The input is what curl -v prints, which does not show the body."
        case .tls: "The input is encrypted: it begins as a TLS connection does."
        case .http2: "The input is raw HTTP/2, whose frames are not supported here."
        case .json: "The input is JSON, not an HTTP request."
        case .encodedForm: "The input is a form in application/x-www-form-urlencoded, without its request's head."
        case .utf16: "The input is text in UTF-16, in which no request is sent."
        case .packetCapture: "The input is a packet capture, not a request."
        case .executable: "The input is a program, not an HTTP request."
        case .media(let type): "The input is a file of type \(type), not an HTTP request."
        case .text: "The input is text, not an HTTP request: it begins with no request line and no header fields."
        case .binary: "The input is not an HTTP request: it begins with bytes that are not text."
        }
    }

    /// The advice on what to pass instead, in a sentence.
    var advice: String {
        switch self {
        case .body(let boundary):
            "Add the Content-Type it was sent with: --content-type 'multipart/form-data; boundary=\(boundary)'."
        case .verboseCurl: "Record the request with curl --trace FILE, which keeps every byte."
        case .tls: "Send to http:// instead of https://, or record the request in the client or a proxy."
        case .http2: "Record it with curl --trace or as a HAR, or send it over HTTP/1.1."
        case .utf16: "Save it as it was sent; a shell that redirects text, such as PowerShell, changes the bytes."
        case .packetCapture: "Follow the TCP stream and save the bytes that the client sent as raw."
        case .empty, .response, .json, .encodedForm, .executable, .media, .text, .binary:
            "Pass the request as it was sent, a curl trace or a HAR file, or a form's body with its Content-Type in "
                + "--content-type."
        }
    }
}
