import Foundation
import PostcardDoctor
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("An explanation and the receiver's parser")
struct AgreementTests {
    private static let readings = (try? BrowserReading.all()) ?? []

    @Test(arguments: readings)
    func `agree on a body of the browsers' tests`(reading: BrowserReading) {
        let explanation = Explanation(contentType: reading.contentType, body: reading.body)
        #expect(explanation.isValid == Self.isAccepted(reading.body, reading.contentType), "\(explanation)")
    }

    /// Bodies that browsers and the receiver accept although they are written unusually.
    private static let unusual: [(name: String, body: [UInt8])] = [
        ("blanks after each boundary", form("--XX \t \r\n", "a", end: "--XX--\t \r\n")),
        ("blanks at the body's end", form("--XX\t\r\n", "a", end: "--XX--  ")),
        ("a text in Latin-1", form("--XX\r\n", "caf\u{E9}")),
        ("half a character", form("--XX\r\n", "\u{F0}\u{9F}\u{90}")),
        ("a name in Latin-1", form("--XX\r\n", "a", name: #""caf\#u{E9}""#)),
        ("a filename in Latin-1", form("--XX\r\n", "a", name: "\"a\"; filename=\"caf\u{E9}.txt\"")),
        ("a name that ends in a backslash", form("--XX\r\n", "a", name: #""a\""#)),
        ("a field on two lines", form("--XX\r\n", "a", name: "\"a\";\r\n filename=\"a.txt\"")),
        ("a type on two lines", form("--XX\r\n", "a", name: "\"a\"\r\nContent-Type: text/plain;\r\n\tcharset=utf-8")),
    ]

    /// Each character is a byte.
    private static func form(
        _ delimiter: String, _ content: String, name: String = "\"a\"", end: String = "--XX--\r\n"
    ) -> [UInt8] {
        let lines = [delimiter + "Content-Disposition: form-data; name=\(name)\r\n\r\n\(content)\r\n", delimiter]
        let last = "Content-Disposition: form-data; name=\"b\"\r\n\r\n1\r\n"
        return (lines.joined() + last + end).unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }

    @Test(arguments: unusual.indices)
    func `agree that a body is valid which is written unusually`(index: Int) {
        let (name, body) = Self.unusual[index]
        let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: body)
        #expect(Self.isAccepted(body, "multipart/form-data; boundary=XX"), "\(name)")
        #expect(explanation.isValid && !explanation.isWellFormed, "\(name): \(explanation)")
        #expect(explanation.findings.allSatisfy { $0.code != .malformedMediaType }, "\(name): \(explanation)")
        #expect(explanation.parts.count == 2, "\(name)")
    }

    private static func isAccepted(_ body: some Sequence<UInt8>, _ contentType: String) -> Bool {
        do throws(FormProblem) {
            var parser = try FormParser(contentType: contentType)
            let chunk = Array(body)
            var position = 0
            while try parser.nextEvent(in: chunk.span.bytes, at: &position) != nil {}
            try parser.finish()
            return true
        } catch {
            return false
        }
    }
}
