public import HTTPTypes
import PostcardFoundation

/// A problem of a received form: the wrong bytes, the reason, and what to write instead.
///
/// The parser throws problems, `explain` lists them, and a receiver responds with them.
public struct FormProblem: PostcardError, Hashable {
    /// The severity of a problem.
    public enum Severity: String, Sendable, Hashable {
        /// The form is refused.
        case error
        /// The form is read, although other receivers may read it differently.
        case warning
    }

    /// A limit that the form exceeded.
    public struct Limit: Sendable, Hashable {
        /// The name of the limit in ``FormLimits``, or the path of the limit in ``FormRules``.
        public let name: String
        /// The maximum that was exceeded, in bytes or as a count.
        public let value: Int64
    }

    /// The kind of problem.
    public let code: Code

    /// The offset of the first wrong byte, counted from the start of the body. 0 for an error in the request's head.
    public let offset: Int64

    /// The index of the part with the problem, from 0; `nil` if the problem is outside of all parts.
    public let partIndex: Int?

    /// The problem, in a sentence without values or bytes of the form's content.
    public let message: String

    /// The advice on what to write instead, in a sentence.
    public let advice: String?

    /// The limit that the form exceeded; `nil` if the problem is not about a limit.
    public let limit: Limit?

    /// Makes a problem at an offset in the body. The advice on what to write instead defaults to that of the code.
    package init(
        _ code: Code, at offset: Int64, part partIndex: Int? = nil, _ message: String, advice: String? = nil,
        limit: Limit? = nil
    ) {
        self.code = code
        self.offset = offset
        self.partIndex = partIndex
        self.message = message
        self.advice = advice ?? code.advice
        self.limit = limit
    }

    /// The severity of the problem: an error if receivers refuse the form, or else a warning.
    public var severity: Severity { code.status == 200 ? .warning : .error }

    /// The HTTP status with which a receiver refuses the request (RFC 9110 §15.5).
    public var status: HTTPResponse.Status { code.status }

    public var description: String {
        let place = partIndex.map { "part \($0), " } ?? ""
        return advised("\(message) (\(code), \(place)byte \(offset))")
    }
}

extension FormProblem {
    static func bareLineFeed(at offset: Int64, part partIndex: Int?) -> FormProblem {
        FormProblem(.bareLineBreak, at: offset, part: partIndex, "A line ends in LF without CR.")
    }

    static func bareCarriageReturn(at offset: Int64, part partIndex: Int?) -> FormProblem {
        FormProblem(.bareLineBreak, at: offset, part: partIndex, "A CR is not followed by LF.")
    }

    static func tooManyCombiningMarks(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .tooManyCombiningMarks, at: offset, part: partIndex,
            "A part's header has more than \(CombiningMarks.maximumInARow) combining marks in a row.")
    }

    static func nulInHeader(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(.nulInHeader, at: offset, part: partIndex, "A part's header contains a NUL.")
    }

    static func malformedParameter(_ reason: String, at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(.malformedParameter, at: offset, part: partIndex, reason)
    }

    static func invalidBoundary(_ reason: String) -> FormProblem {
        FormProblem(.invalidBoundary, at: 0, "The boundary is not allowed: \(reason).")
    }
}

extension FormProblem {
    /// The kind of a problem, with its severity, status and documentation.
    ///
    /// Each code has a stable ``rawValue`` for scripts, and the texts of the documentation's page and of `postcard
    /// explain`. `PostcardDoctor` adds codes for problems that only an explanation finds.
    public struct Code: PostcardErrorCode {
        /// The area that a problem is about.
        public enum Topic: String, Sendable, Hashable, CaseIterable {
            /// The request's header fields.
            case head
            /// The lines between the parts.
            case delimiters
            /// The header or the content of a part.
            case parts
            /// The form as a whole.
            case whole
            /// A limit or rule of one receiver, which explanations do not check.
            case receiver
        }

        /// The stable text of the code, such as `missing-boundary`.
        public let rawValue: String

        /// The severity of the problem in an explanation.
        ///
        /// After an error, most receivers refuse the form, or lose or alter a part, a name or bytes of the content.
        /// After a warning, the parser accepts the form unchanged, but some receivers refuse it, replace bytes that are
        /// not UTF-8, or misread it.
        public let severity: Severity

        /// The HTTP status for a refusal of the request (RFC 9110 §15.5); 200 if the request is not refused.
        public var status: HTTPResponse.Status { HTTPResponse.Status(code: statusCode) }

        /// The code of ``status``. Problems are part of the parser's state, and a number is smaller than a status.
        private let statusCode: Int

        /// The area that the problem is about.
        public let topic: Topic

        /// The problem in a few words.
        public let title: String

        /// The usual cause, and why servers care, in a sentence or two.
        public let cause: String

        /// An example of bytes with the problem. `\r`, `\n` and non-ASCII bytes are escaped as in Swift.
        public let example: String

        /// The advice on what to write instead, in a sentence.
        public let advice: String

        /// Swift code that avoids the problem; `nil` if code does not help.
        public let swift: String?

        package init(
            _ rawValue: String, severity: Severity = .error, status: HTTPResponse.Status = 200, _ topic: Topic,
            _ title: String,
            cause: String, example: String, advice: String, swift: String? = nil
        ) {
            self.rawValue = rawValue
            self.severity = severity
            statusCode = status.code
            self.topic = topic
            self.title = title
            self.cause = cause
            self.example = example
            self.advice = advice
            self.swift = swift
        }

        /// Makes the code of a receiver's limit or rule, with its status.
        private init(_ rawValue: String, ofReceiver status: HTTPResponse.Status, advice: String) {
            self.init(
                rawValue, status: status, .receiver, rawValue, cause: "A limit or a rule of this receiver.",
                example: "", advice: advice)
        }

        /// Makes the code of the parser or of receivers that has this raw value. An unknown value makes a code with
        /// status 400 and without advice.
        public init(rawValue: String) {
            self = Self.known(rawValue) ?? Self(rawValue, ofReceiver: 400, advice: "")
        }

        /// The parser's or receivers' code with this raw value; `nil` if there is none.
        package static func known(_ rawValue: String) -> Self? {
            (ofParser + ofReceivers).first { $0.rawValue == rawValue }
        }

        public static func == (left: Code, right: Code) -> Bool { left.rawValue == right.rawValue }

        public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
    }
}

// MARK: - Limits and rules of a receiver

extension FormProblem.Code {
    /// The codes for the limits and rules of receivers.
    package static let ofReceivers: [Self] = [
        .bodyTooLarge, .fileTooLarge, .fieldTooLarge, .preambleTooLarge, .epilogueTooLarge, .unexpectedField,
        .nestedFiles, .unexpectedFile, .fieldInsteadOfFile, .fileInsteadOfField, .tooManyFields, .tooManyFiles,
        .missingField, .missingFile, .fieldTooShort, .fieldTooLong, .fieldNotUTF8, .patternMismatch, .valueNotAllowed,
        .fileTooSmall, .filesTooLarge, .fileTypeNotAccepted, .fileContentNotAccepted,
    ]

    /// The body has more bytes than allowed.
    public static let bodyTooLarge = Self(
        "body-too-large", ofReceiver: 413, advice: "Send less, or ask for a higher limit.")

    /// A file has more bytes than allowed.
    public static let fileTooLarge = Self(
        "file-too-large", ofReceiver: 413, advice: "Send less, or ask for a higher limit.")

    /// The value of a text field has more bytes than allowed.
    public static let fieldTooLarge = Self(
        "field-too-large", ofReceiver: 413, advice: "Shorten it, or send it as a file, with a filename.")

    /// Too many bytes precede the first delimiter, usually because the body has another boundary.
    public static let preambleTooLarge = Self(
        "preamble-too-large", ofReceiver: 400, advice: "Begin the body with two dashes and exactly that boundary.")

    /// More bytes than allowed follow the close delimiter.
    public static let epilogueTooLarge = Self(
        "epilogue-too-large", ofReceiver: 413, advice: "End the body with the close delimiter.")

    /// The name of a text field is not in the rules.
    public static let unexpectedField = Self(
        "unexpected-field", ofReceiver: 422,
        advice: "Leave it out, spell its name as in the rules, or set otherParts there.")

    /// A part contains files in a nested `multipart/mixed`, which rules do not allow.
    public static let nestedFiles = Self(
        "nested-files", ofReceiver: 422, advice: "Send each file as a part of that name (RFC 7578 §4.3).")

    /// The field name of a file is not in the rules.
    public static let unexpectedFile = Self(
        "unexpected-file", ofReceiver: 422,
        advice: "Leave it out, spell its name as in the rules, or set otherParts there.")

    /// A text field was sent in place of a file of the rules: its Content-Disposition has no filename.
    public static let fieldInsteadOfFile = Self(
        "field-instead-of-file", ofReceiver: 422, advice: "Add filename=\"…\" to its Content-Disposition.")

    /// A file was sent in place of a text field of the rules.
    public static let fileInsteadOfField = Self(
        "file-instead-of-field", ofReceiver: 422, advice: "Leave filename out of its Content-Disposition.")

    /// A text field was sent more often than the rules allow.
    public static let tooManyFields = Self("too-many-fields", ofReceiver: 422, advice: "Send fewer of them.")

    /// More files with the same name were sent than the rules allow.
    public static let tooManyFiles = Self("too-many-files", ofReceiver: 422, advice: "Send fewer of them.")

    /// A text field is missing, or was not sent often enough.
    public static let missingField = Self("missing-field", ofReceiver: 422, advice: "Send the field.")

    /// A file is missing, or too few were sent.
    public static let missingFile = Self(
        "missing-file", ofReceiver: 422, advice: "Send the file, with filename in the Content-Disposition.")

    /// A text field has fewer characters than the rules allow.
    public static let fieldTooShort = Self("field-too-short", ofReceiver: 422, advice: "Send a longer value.")

    /// A text field has more characters than the rules allow.
    public static let fieldTooLong = Self("field-too-long", ofReceiver: 422, advice: "Shorten it.")

    /// A text field is not in UTF-8, as its rules require.
    public static let fieldNotUTF8 = Self(
        "field-not-utf-8", ofReceiver: 422, advice: "Send text in UTF-8 (RFC 7578 §5.1).")

    /// A text field does not match the pattern of the rules.
    public static let patternMismatch = Self(
        "pattern-mismatch", ofReceiver: 422, advice: "Send a value that matches the whole pattern.")

    /// A text field has a value that the rules do not allow.
    public static let valueNotAllowed = Self(
        "value-not-allowed", ofReceiver: 422, advice: "Send one of the allowed values.")

    /// A file has fewer bytes than the rules allow.
    public static let fileTooSmall = Self("file-too-small", ofReceiver: 422, advice: "Send the whole file.")

    /// All files together have more bytes than the rules allow.
    public static let filesTooLarge = Self("files-too-large", ofReceiver: 413, advice: "Send fewer or smaller files.")

    /// The Content-Type of a file is not an accepted type.
    public static let fileTypeNotAccepted = Self(
        "file-type-not-accepted", ofReceiver: 415,
        advice: "Send an accepted type, and name it in the part's Content-Type.")

    /// The first bytes of a file do not show an accepted type.
    public static let fileContentNotAccepted = Self(
        "file-content-not-accepted", ofReceiver: 415, advice: "Send the file's own bytes, in an accepted format.")
}
