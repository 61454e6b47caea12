import PostcardForm

/// What Postcard does differently from browsers, on purpose. The documentation's article is made from this list.
struct BrowserDifference<Outcome: Sendable>: Sendable {
    let browsers: String
    let postcard: String
    let reason: String
    /// What the cases come to: the same for all of them.
    let outcome: Outcome
    let cases: [String]
}

/// What becomes of a body.
enum ReadingOutcome: Sendable, Equatable {
    /// It is read as a browser reads it, or refused as a browser rejects it.
    case same
    /// A browser accepts it, and it is refused.
    case refused(FormProblem.Code)
    /// A browser rejects it, and it is accepted.
    case accepted
    /// Both accept it, and a name or a type differs.
    case otherNames, otherTypes
}

/// What becomes of a form.
enum WritingOutcome: Sendable, Equatable {
    /// Its bytes are those that a browser sends.
    case same
    case refused(FormError.Code)
    /// Its bytes differ.
    case otherBytes
    /// Its bytes differ, unless line breaks are normalized.
    case otherLineBreaks
}

extension BrowserDifference<ReadingOutcome> {
    static var all: [BrowserDifference] {
        [
            .init(
                browsers: "keep `%22`, `%0D` and `%0A` in a name as they are",
                postcard: "reads a quote, a CR and an LF",
                reason: "browsers write these characters so, and a name should be read as it was given",
                outcome: .otherNames, cases: ["wpt-05", "wpt-06"]),
            .init(
                browsers:
                    "lowercase a part's Content-Type, rewrite it, use the last of several types and drop what is no "
                    + "type",
                postcard: "gives the value as it was sent",
                reason: "a receiver that checks types should see what other programs see",
                outcome: .otherTypes, cases: ["wpt-25", "wpt-26", "wpt-27", "wpt-28", "wpt-29", "wpt-30"]),
            .init(
                browsers: "use the last of two Content-Types of a part",
                postcard: "refuses the form: `duplicate-part-content-type`",
                reason:
                    "Go, PHP and others use the first, so a filter may check one type and the receiver use the other",
                outcome: .refused(.duplicatePartContentType), cases: ["wpt-23"]),
            .init(
                browsers: "ignore a blank before a part's first header field",
                postcard: "refuses the form: `malformed-header-field`",
                reason:
                    "such a line continues a field, and there is none before it; Go, busboy and others refuse it too",
                outcome: .refused(.malformedHeaderField), cases: ["wpt-21"]),
            .init(
                browsers: "ignore blanks before a header field's colon",
                postcard: "refuses the form: `malformed-header-field`",
                reason: "RFC 9112 §5.1 forbids them: Go and PHP miss the field, and busboy refuses the form",
                outcome: .refused(.malformedHeaderField), cases: ["wpt-22"]),
            .init(
                browsers: "ignore blanks after a parameter's equals sign",
                postcard: "refuses the form: `malformed-parameter`",
                reason: "the grammar has none there (RFC 9110 §5.6.6), and busboy, PHP and Werkzeug lose the name",
                outcome: .refused(.malformedParameter), cases: (41...49).map { "bun-\($0)" }),
            .init(
                browsers: "accept a boundary that is not ASCII",
                postcard: "refuses the request: `invalid-boundary`",
                reason:
                    "a header field's bytes above 127 have no agreed meaning (RFC 9110 §5.5), so two receivers may look "
                    + "for two boundaries",
                outcome: .refused(.invalidBoundary), cases: ["wpt-56"]),
            .init(
                browsers: "reject a preamble",
                postcard: "skips it, up to ``FormLimits/maximumPreambleBytes``",
                reason: "RFC 2046 §5.1.1 allows it, and Go, busboy, PHP and Werkzeug skip it",
                outcome: .accepted, cases: ["wpt-37"]),
            .init(
                browsers: "reject a header field that is folded over several lines",
                postcard: "joins the lines, and warns: `folded-header-line`",
                reason: "mail libraries fold long fields, and all receivers that accept them read the same",
                outcome: .accepted, cases: ["wpt-43"]),
        ]
    }
}

extension BrowserDifference<WritingOutcome> {
    static var all: [BrowserDifference] {
        [
            .init(
                browsers: "write CRLF for each line break of a name or a text",
                postcard: "writes what it was given; with ``LineBreaks/normalized`` it writes CRLF too",
                reason:
                    "a value from a program is not always text that was typed, such as a token or a signed document",
                outcome: .otherLineBreaks,
                cases: ["ser-08", "ser-09", "ser-11", "ser-25", "ser-26", "ser-28", "fil-05", "fil-06", "fil-07"]),
            .init(
                browsers: "write a backslash in a name as it is",
                postcard: #"writes `\\`"#,
                reason:
                    "a name that ends in a backslash would escape its closing quote: Go, busboy and PHP then lose the part "
                    + "or read another name",
                outcome: .otherBytes, cases: ["ser-14", "ser-23", "sub-12", "sub-14", "fil-15"]),
            .init(
                browsers: "write a NUL in a name as it is",
                postcard: "throws ``FormError/Code/invalidName``",
                reason: "receivers refuse it, as browsers themselves do, or end the name there",
                outcome: .refused(.invalidName), cases: ["sub-03", "sub-05", "fil-02"]),
        ]
    }
}
