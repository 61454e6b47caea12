// What the parser says, where more than one of its places says it, or where the words would hide the code.

// MARK: - The request's Content-Type

extension FormProblem {
    private static let contentTypeFix = "Send Content-Type: multipart/form-data; boundary=… with the body's boundary."

    static var missingContentType: FormProblem {
        FormProblem(.missingContentType, at: 0, "The request has no Content-Type.", fix: contentTypeFix)
    }

    static func notFormData(_ value: String) -> FormProblem {
        FormProblem(
            .notFormData, at: 0, "The Content-Type is \(value.debugDescription), not multipart/form-data.",
            fix: contentTypeFix)
    }

    static func malformedContentType(_ reason: String) -> FormProblem {
        FormProblem(.malformedContentType, at: 0, "The Content-Type is malformed. \(reason)", fix: contentTypeFix)
    }

    static var missingBoundary: FormProblem {
        FormProblem(
            .missingBoundary, at: 0, "The Content-Type names no boundary.",
            fix: "Let the library that makes the body set the Content-Type, or add boundary=… as the body has it.")
    }

    static var duplicateBoundary: FormProblem {
        FormProblem(
            .duplicateBoundary, at: 0, "The Content-Type names two boundaries that differ.",
            fix: "Name the one that the body uses, once.")
    }

    static func invalidBoundary(_ fault: String) -> FormProblem {
        FormProblem(
            .invalidBoundary, at: 0, "The boundary is not allowed: \(fault).",
            fix: "Use 1 to 70 letters and digits (RFC 2046 §5.1.1).")
    }
}

// MARK: - Line breaks

extension FormProblem {
    private static let lineBreakFix = #"End every line of the form's frame with CRLF ("\r\n")."#

    static func bareLineFeed(at offset: Int64, part partIndex: Int?) -> FormProblem {
        FormProblem(
            .bareLineBreak, at: offset, part: partIndex, "A line ends in LF without CR.", fix: lineBreakFix)
    }

    static func bareCarriageReturn(at offset: Int64, part partIndex: Int?) -> FormProblem {
        FormProblem(
            .bareLineBreak, at: offset, part: partIndex, "A CR is not followed by LF.", fix: lineBreakFix)
    }
}

// MARK: - The header of a part

extension FormProblem {
    private static let dispositionFix = #"Write Content-Disposition: form-data; name="…", and filename="…" for a file."#

    static func nulInHeader(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .nulInHeader, at: offset, part: partIndex, "A NUL stands in a part's header.",
            fix: "Write the header in UTF-8, and a blank line between it and the content.")
    }

    static func malformedHeaderField(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .malformedHeaderField, at: offset, part: partIndex, "A line of a part's header is no header field.",
            fix: "Write Name: value, and a blank line between the header and the content.")
    }

    static func missingContentDisposition(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .missingContentDisposition, at: offset, part: partIndex, "A part has no Content-Disposition.",
            fix: dispositionFix)
    }

    static func duplicateContentDisposition(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .duplicateContentDisposition, at: offset, part: partIndex, "A part has a second Content-Disposition.",
            fix: "Write one, with all its parameters.")
    }

    static func dispositionNotFormData(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .dispositionNotFormData, at: offset, part: partIndex, "A part's Content-Disposition is not form-data.",
            fix: dispositionFix)
    }

    static func malformedParameter(_ reason: String, at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .malformedParameter, at: offset, part: partIndex, reason,
            fix: #"Write name="value", with %22 for a quote in the value, and a semicolon between parameters."#)
    }

    static func duplicateParameter(_ name: String, at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .duplicateParameter, at: offset, part: partIndex, "A Content-Disposition has \(name) twice.",
            fix: "Write it once.")
    }

    static func contradictingFilenames(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .contradictingFilenames, at: offset, part: partIndex, "filename and filename* name different files.",
            fix: "Write filename alone, in UTF-8 (RFC 7578 §4.2).")
    }

    static func missingName(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .missingName, at: offset, part: partIndex, "A part's Content-Disposition has no name.",
            fix: dispositionFix)
    }

    static func emptyName(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(.emptyName, at: offset, part: partIndex, "A part's name is empty.", fix: dispositionFix)
    }
}

// MARK: - Limits

extension FormProblem {
    static func overLimit(
        _ code: Code, _ limit: String, _ value: Int64, at offset: Int64, part partIndex: Int? = nil,
        _ message: String, fix: String = "Send less, or ask for a higher limit."
    ) -> FormProblem {
        FormProblem(
            code, at: offset, part: partIndex, message, fix: fix, limit: Limit(name: limit, value: value))
    }

    static func contentTooLarge(
        isFile: Bool, maximumBytes: Int64, at offset: Int64, part partIndex: Int
    ) -> FormProblem {
        isFile
            ? .overLimit(
                .fileTooLarge, "maximumFileBytes", maximumBytes, at: offset, part: partIndex,
                "A file has more than \(maximumBytes) bytes.")
            : .overLimit(
                .fieldTooLarge, "maximumFieldBytes", maximumBytes, at: offset, part: partIndex,
                "A text field has more than \(maximumBytes) bytes.",
                fix: "Shorten it, or send it as a file, with a filename.")
    }

    static func headerTooLarge(_ limit: Int, at offset: Int64, part partIndex: Int) -> FormProblem {
        .overLimit(
            .headerTooLarge, "maximumHeaderBytes", Int64(limit), at: offset, part: partIndex,
            "A part's header has more than \(limit) bytes.",
            fix: "Shorten it, and write a blank line between it and the content.")
    }

    static func tooManyHeaderFields(_ limit: Int, at offset: Int64, part partIndex: Int) -> FormProblem {
        .overLimit(
            .tooManyHeaderFields, "maximumHeaderFields", Int64(limit), at: offset, part: partIndex,
            "A part's header has more than \(limit) fields.",
            fix: "Write Content-Disposition and Content-Type alone; receivers ignore others (RFC 7578 §4.8).")
    }
}

// MARK: - Warnings

extension FormProblem {
    static func contentTransferEncoding(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .contentTransferEncoding, at: offset, part: partIndex,
            "A part has a Content-Transfer-Encoding, which was not undone.",
            fix: "Send the bytes as they are and leave the field out (RFC 7578 §4.7).")
    }

    static func nameNotUTF8(_ parameter: String, at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .nameNotUTF8, at: offset, part: partIndex, "The \(parameter) is not in UTF-8.",
            fix: "Write names in UTF-8 (RFC 7578 §5.1).")
    }

    static func extendedFilename(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .extendedFilename, at: offset, part: partIndex,
            "A file is named by filename*, which some receivers pass over.",
            fix: "Write filename, in UTF-8 (RFC 7578 §4.2).")
    }

    static func ignoredParameter(_ name: String, at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .ignoredParameter, at: offset, part: partIndex, "The parameter \(name) was not read.",
            fix: "Write name and filename, in UTF-8 (RFC 7578 §4.2).")
    }

    static func duplicatePartContentType(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .duplicatePartContentType, at: offset, part: partIndex,
            "A part has a second Content-Type, and the first was taken.", fix: "Write one.")
    }
}
