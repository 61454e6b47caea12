import PostcardForm
import Testing

/// The limits of a form.
extension FormParserTests {
    /// A limit as the form below just keeps to it, and the code, the offset and the part where it is one less.
    struct Limit: Sendable {
        let name: String
        let set: @Sendable (inout FormLimits, _ value: Int64) -> Void
        let value: Int64
        let code: FormProblem.Code
        let offset: Int64
        var part: Int?
    }

    static let limits = [
        Limit(name: "body", set: { $0.maximumBodyBytes = $1 }, value: 149, code: .bodyTooLarge, offset: 148),
        Limit(name: "parts", set: { $0.maximumParts = Int($1) }, value: 2, code: .tooManyParts, offset: 73),
        Limit(name: "field", set: { $0.maximumFieldBytes = $1 }, value: 5, code: .fieldTooLarge, offset: 62, part: 0),
        Limit(name: "file", set: { $0.maximumFileBytes = $1 }, value: 3, code: .fileTooLarge, offset: 129, part: 1),
        Limit(
            name: "header", set: { $0.maximumHeaderBytes = Int($1) }, value: 56, code: .headerTooLarge, offset: 126,
            part: 1),
        Limit(
            name: "fields", set: { $0.maximumHeaderFields = Int($1) }, value: 1, code: .tooManyHeaderFields, offset: 16,
            part: 0),
        Limit(name: "preamble", set: { $0.maximumPreambleBytes = $1 }, value: 8, code: .preambleTooLarge, offset: 7),
        Limit(name: "epilogue", set: { $0.maximumEpilogueBytes = $1 }, value: 9, code: .epilogueTooLarge, offset: 148),
    ]

    /// Its first header has 42 bytes; its second has 54 and is padded by two.
    private static let formAtLimits =
        "preamble\r\n--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n12345\r\n--XX  \r\n"
        + "Content-Disposition: form-data; name=b; filename=c\r\n\r\n123\r\n--XX-- \r\nepilogue"

    @Test(arguments: limits)
    func `each limit is kept to the byte, and has a code of its own`(limit: Limit) {
        var limits = FormLimits()
        limit.set(&limits, limit.value)
        #expect(Reading.all(of: Self.formAtLimits, limits: limits).last == .complete)
        limit.set(&limits, limit.value - 1)
        #expect(
            Reading.all(of: Self.formAtLimits, limits: limits).last
                == .problem(limit.code, offset: limit.offset, part: limit.part))
    }

    @Test
    func `of a body that is too large, the content up to the limit is passed on, and none of the rest`() {
        var limits = FormLimits()
        limits.maximumBodyBytes = 60
        #expect(
            Reading.all(of: Self.formAtLimits, limits: limits) == [
                .part(name: "a", filename: nil, contentType: nil, offset: 16), .content(Array("12".utf8)),
                .problem(.bodyTooLarge, offset: 60, part: 0),
            ])
        limits.maximumBodyBytes = 100
        #expect(
            Reading.all(of: Self.formAtLimits, limits: limits).last == .problem(.bodyTooLarge, offset: 100, part: 1))
    }

    @Test
    func `the limits that a receiver does not set are those of the documentation`() {
        var limits = FormLimits()
        limits.maximumBodyBytes = 4_294_967_296
        limits.maximumParts = 1000
        limits.maximumFileBytes = 4_294_967_296
        limits.maximumFieldBytes = 1_048_576
        limits.maximumHeaderBytes = 16_384
        limits.maximumHeaderFields = 64
        limits.maximumPreambleBytes = 8192
        limits.maximumEpilogueBytes = 8192
        #expect(FormLimits() == limits)
        limits.maximumBodyBytes = 16_777_216
        limits.maximumFileBytes = 16_777_216
        #expect(FormLimits.inMemory == limits)
    }

    @Test
    func `padding alone goes over the header's limit too`() {
        var limits = FormLimits()
        limits.maximumHeaderBytes = 3
        #expect(Reading.all(of: "--XX    \r\n", limits: limits).last == .problem(.headerTooLarge, offset: 7, part: 0))
        limits.maximumEpilogueBytes = 3
        #expect(Reading.all(of: "--XX--   ", limits: limits).last == .complete)
        #expect(Reading.all(of: "--XX--    ", limits: limits).last == .problem(.epilogueTooLarge, offset: 9, part: nil))
    }
}
