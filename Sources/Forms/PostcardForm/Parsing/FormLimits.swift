/// The limits that a receiver sets for a form. Each limit has its own problem code.
///
/// The parser itself holds at most one header and one delimiter in memory. The limits protect the caller, who keeps the
/// content.
public struct FormLimits: Sendable, Hashable {
    /// The maximum size of the whole body, in bytes. Defaults to 4 GiB: larger forms seldom arrive in one request.
    public var maximumBodyBytes: Int64 = 4 << 30

    /// The maximum number of parts. Defaults to 1,000, as common receivers do.
    public var maximumParts = 1000

    /// The maximum size of a file, in bytes. Defaults to 4 GiB.
    public var maximumFileBytes: Int64 = 4 << 30

    /// The maximum size of a text field, in bytes. Defaults to 1 MiB, because fields are usually held in memory.
    public var maximumFieldBytes: Int64 = 1 << 20

    /// The maximum size of a part's header, including blanks after its delimiter, in bytes. Defaults to 16 KiB.
    public var maximumHeaderBytes = 16 << 10

    /// The maximum number of fields in a part's header. Defaults to 64; browsers send two.
    public var maximumHeaderFields = 64

    /// The maximum number of bytes before the first delimiter. Defaults to 8 KiB; clients normally send none.
    public var maximumPreambleBytes: Int64 = 8 << 10

    /// The maximum number of bytes after the close delimiter's line. Defaults to 8 KiB; clients normally send none.
    public var maximumEpilogueBytes: Int64 = 8 << 10

    /// Makes limits with default values.
    public init() {}

    /// Limits for forms that are held in memory: 16 MiB for the body and for each file.
    public static let inMemory: FormLimits = {
        var limits = FormLimits()
        limits.maximumBodyBytes = 16 << 20
        limits.maximumFileBytes = 16 << 20
        return limits
    }()
}

// MARK: - The problem of each limit

extension FormLimits {
    private func exceeded(
        _ code: FormProblem.Code, _ limit: String, _ value: Int64, at offset: Int64, part partIndex: Int? = nil,
        _ message: String, advice: String? = nil
    ) -> FormProblem {
        FormProblem(code, at: offset, part: partIndex, message, advice: advice, limit: .init(name: limit, value: value))
    }

    func bodyTooLarge(from start: Int64, part partIndex: Int?) -> FormProblem {
        exceeded(
            .bodyTooLarge, "maximumBodyBytes", maximumBodyBytes, at: start + maximumBodyBytes, part: partIndex,
            "The body has more than \(maximumBodyBytes) bytes.")
    }

    func preambleTooLarge(from start: Int64) -> FormProblem {
        exceeded(
            .preambleTooLarge, "maximumPreambleBytes", maximumPreambleBytes, at: start + maximumPreambleBytes,
            "No line of the first \(maximumPreambleBytes) bytes begins with the Content-Type's boundary.")
    }

    func epilogueTooLarge(at offset: Int64) -> FormProblem {
        exceeded(
            .epilogueTooLarge, "maximumEpilogueBytes", maximumEpilogueBytes, at: offset,
            "More than \(maximumEpilogueBytes) bytes follow the close delimiter.")
    }

    func tooManyParts(at offset: Int64) -> FormProblem {
        exceeded(
            .tooManyParts, "maximumParts", Int64(maximumParts), at: offset,
            "The form has more than \(maximumParts) parts.")
    }

    func headerTooLarge(at offset: Int64, part partIndex: Int) -> FormProblem {
        exceeded(
            .headerTooLarge, "maximumHeaderBytes", Int64(maximumHeaderBytes), at: offset, part: partIndex,
            "A part's header has more than \(maximumHeaderBytes) bytes.")
    }

    func paddingTooLarge(at offset: Int64, part partIndex: Int) -> FormProblem {
        exceeded(
            .headerTooLarge, "maximumHeaderBytes", Int64(maximumHeaderBytes), at: offset, part: partIndex,
            "The delimiter is padded with more than \(maximumHeaderBytes) bytes.",
            advice: "Write CRLF directly after the boundary.")
    }

    func tooManyHeaderFields(at offset: Int64, part partIndex: Int) -> FormProblem {
        exceeded(
            .tooManyHeaderFields, "maximumHeaderFields", Int64(maximumHeaderFields), at: offset, part: partIndex,
            "A part's header has more than \(maximumHeaderFields) fields.")
    }

    func contentTooLarge(isFile: Bool, at offset: Int64, part partIndex: Int) -> FormProblem {
        isFile
            ? exceeded(
                .fileTooLarge, "maximumFileBytes", maximumFileBytes, at: offset, part: partIndex,
                "A file has more than \(maximumFileBytes) bytes.")
            : exceeded(
                .fieldTooLarge, "maximumFieldBytes", maximumFieldBytes, at: offset, part: partIndex,
                "A text field has more than \(maximumFieldBytes) bytes.")
    }
}
