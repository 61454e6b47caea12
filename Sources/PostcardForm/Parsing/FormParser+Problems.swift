// What the parser says about the place where it stands.

extension FormParser {
    var bodyTooLarge: FormProblem {
        .overLimit(
            .bodyTooLarge, "maximumBodyBytes", limits.maximumBodyBytes, at: start + limits.maximumBodyBytes,
            part: part?.index, "The body has more than \(limits.maximumBodyBytes) bytes.")
    }

    var preambleTooLarge: FormProblem {
        .overLimit(
            .preambleTooLarge, "maximumPreambleBytes", limits.maximumPreambleBytes,
            at: start + limits.maximumPreambleBytes,
            "The boundary that the Content-Type names begins no line of the first "
                + "\(limits.maximumPreambleBytes) bytes.",
            fix: "Begin the body with two dashes and that very boundary.")
    }

    func epilogueTooLarge(at offset: Int64) -> FormProblem {
        .overLimit(
            .epilogueTooLarge, "maximumEpilogueBytes", limits.maximumEpilogueBytes, at: offset,
            "More than \(limits.maximumEpilogueBytes) bytes stand behind the close delimiter.",
            fix: "End the body with the close delimiter.")
    }

    var tooManyParts: FormProblem {
        .overLimit(
            .tooManyParts, "maximumParts", Int64(limits.maximumParts), at: offset,
            "The form has more than \(limits.maximumParts) parts.", fix: "Send fewer parts in one form.")
    }

    func headerTooLarge(part partIndex: Int) -> FormProblem {
        .overLimit(
            .headerTooLarge, "maximumHeaderBytes", Int64(limits.maximumHeaderBytes), at: offset,
            part: partIndex, "The delimiter is padded with more than \(limits.maximumHeaderBytes) bytes.",
            fix: "Let CRLF follow the boundary at once.")
    }

    var delimiterNotFound: FormProblem {
        FormProblem(
            .delimiterNotFound, at: start,
            offset == start
                ? "The body is empty."
                : "The boundary that the Content-Type names begins no line of the body's \(offset - start) bytes.",
            fix: "Write two dashes, that very boundary and CRLF before each part.")
    }

    func truncated(in place: String, part partIndex: Int?) -> FormProblem {
        FormProblem(
            .truncated, at: offset, part: partIndex, "The body ends after \(offset) bytes, inside \(place).",
            fix: "Send all of it, up to the close delimiter: CRLF, two dashes, the boundary and two dashes.")
    }

    var malformedDelimiter: FormProblem {
        FormProblem(
            .malformedDelimiter, at: offset, part: part?.index,
            "A delimiter is followed by more than spaces and tabs on its line.",
            fix: "Let CRLF follow the boundary, or choose a boundary that the content does not hold.")
    }

    var textAfterCloseDelimiter: FormProblem {
        FormProblem(
            .textAfterCloseDelimiter, at: offset, "The close delimiter is followed by text on its line.",
            fix: "End the body with the close delimiter and at most CRLF.")
    }
}
