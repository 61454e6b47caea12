import PostcardForm
import Testing

/// Bodies that brought other parsers down: by their memory, their time, or what they let through.
@Suite("Hostile input")
struct HostileInputTests {
    /// A body, and what it is refused for; `nil` where it is a form like any other.
    struct Attack: Sendable, CustomTestStringConvertible {
        let about: String
        let body: @Sendable () -> [UInt8]
        let code: FormProblem.Code?

        var testDescription: String { about }
    }

    private static let head = "--XX\r\nContent-Disposition: form-data; name=a\r\n"

    private static func bytes(_ pieces: String...) -> [UInt8] {
        Array(pieces.joined().utf8)
    }

    private static func many(_ text: String, _ count: Int) -> String {
        String(repeating: text, count: count)
    }

    static let attacks = [
        Attack(
            about: "a header that begins with a blank",
            body: { bytes("--XX\r\n Content-Disposition: form-data; name=a\r\n\r\n") },
            code: .malformedHeaderField),
        Attack(
            about: "80 kB of header lines without a colon", body: { bytes("--XX\r\n", many("x\r\n", 27_000)) },
            code: .tooManyHeaderFields),
        Attack(
            about: "80 kB of folded lines", body: { bytes(head, many(" x\r\n", 20_000), "\r\n") }, code: .headerTooLarge
        ),
        Attack(about: "a header without end", body: { bytes("--XX\r\n", many("x", 1 << 20)) }, code: .headerTooLarge),
        Attack(
            about: "ten thousand empty parts", body: { bytes(many(head + "\r\n\r\n", 10_000), "--XX--") },
            code: .tooManyParts),
        Attack(about: "a huge text field", body: { bytes(head, "\r\n", many("x", 2 << 20)) }, code: .fieldTooLarge),
        Attack(
            about: "a part of CRs", body: { bytes(head, "\r\n", many("\r", 1 << 20), "\r\n--XX--") }, code: nil),
        Attack(
            about: "a part that begins with a line break, and goes on without one",
            body: { bytes(head, "\r\n\r\n", many("x", 1_000_000), "\r\n--XX--") }, code: nil),
        Attack(
            about: "megabytes before the first delimiter", body: { bytes(many("x", 4 << 20)) }, code: .preambleTooLarge),
        Attack(
            about: "megabytes behind the close delimiter", body: { bytes("--XX--\r\n", many("x", 4 << 20)) },
            code: .epilogueTooLarge),
        Attack(
            about: "a filename and another one in filename*",
            body: {
                bytes("--XX\r\nContent-Disposition: form-data; name=a; filename=a.txt; filename*=utf-8''a.php\r\n\r\n")
            }, code: .contradictingFilenames),
        Attack(
            about: "a filename* of broken percent codes beside a filename",
            body: {
                bytes(
                    "--XX\r\nContent-Disposition: form-data; name=a; filename=a; filename*=utf-8''%\r\n\r\n\r\n--XX--")
            }, code: nil),
        Attack(
            about: "8 kB of escapes in a name that is not closed",
            body: { bytes("--XX\r\nContent-Disposition: form-data; name=\"", many("\\\\\\\"", 2000), "x\r\n\r\n") },
            code: .malformedParameter),
        Attack(
            about: "8 kB of what may end a name, and does not",
            body: { bytes("--XX\r\nContent-Disposition: form-data; name=\"", many("\\\";;;", 1600), "x\r\n\r\n") },
            code: .malformedParameter),
        Attack(
            about: "8 kB of what may end a name, and parameters that are none",
            body: { bytes("--XX\r\nContent-Disposition: form-data; name=\"", many("\\\"; b=", 1300), "\r\n\r\n") },
            code: .malformedParameter),
        Attack(
            about: "a list of parameters",
            body: { bytes("--XX\r\nContent-Disposition: form-data; name=a", many("; x=1", 2000), "\r\n\r\n") },
            code: .malformedParameter),
        Attack(
            about: "semicolons and nothing else",
            body: { bytes("--XX\r\nContent-Disposition: form-data; name=a", many(";", 8000), "\r\n\r\n\r\n--XX--") },
            code: nil),
        Attack(
            about: "a filename of 8 kB, with paths and a change of direction",
            body: {
                bytes(
                    "--XX\r\nContent-Disposition: form-data; name=a; filename=\"", many("../", 2500),
                    "\u{202E}gpj\"\r\n\r\n\r\n--XX--")
            }, code: nil),
        Attack(
            about: "delimiters that are none",
            body: { bytes(head, "\r\n", many("\r\n--X\r\n--XXY\r\n--XX-", 20_000), "\r\n--XX--") },
            code: nil),
        Attack(about: "an end right behind a boundary", body: { bytes("--XX") }, code: .truncated),
    ]

    @Test(arguments: attacks)
    func `it is refused, or read, the same in one piece and in pieces that end where it hurts`(attack: Attack) {
        let body = attack.body()
        let whole = Reading.all(of: [body[...]], boundary: "XX")
        #expect(whole.last.flatMap { if case .problem(let code, _, _) = $0 { code } else { nil } } == attack.code)
        #expect(attack.code != nil || whole.last == .complete)
        let pieces = body.indices.filter { body[$0] == UInt8(ascii: "\r") }.prefix(50_000)
        let cuts = [0] + pieces.map { $0 + 1 } + [body.count]
        let chunks = zip(cuts, cuts.dropFirst()).map { body[$0..<$1] }
        #expect(Reading.all(of: chunks, boundary: "XX") == whole)
    }
}
