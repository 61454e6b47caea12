import Foundation
import PostcardTestSupport
import Testing

@Suite("postcard explain")
struct ExplainTests {
    private static let form = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n초코\r\n--XX--\r\n"

    @Test("A valid form ends it with 0, and its parts are listed")
    func valid() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("body", Self.form.utf8)
        let ending = try await Program.run(["explain", "--content-type", "multipart/form-data; boundary=XX", file.path])
        #expect(ending.status == 0)
        #expect(
            ending.text == """
                multipart/form-data; boundary=XX
                part 0:  "a"  6 bytes at 50
                The form is valid.

                """)
    }

    @Test("A broken form ends it with 1, and the byte, the reason and the mend are said")
    func broken() async throws {
        let request =
            "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=XX\r\nContent-Length: 65\r\n\r\n"
            + Self.form.replacing("\r\n\r\n", with: "\n\r\n")
        let ending = try await Program.run(["explain", "-"], input: Data(request.utf8))
        #expect(ending.status == 1)
        #expect(
            ending.text == """
                multipart/form-data; boundary=XX
                error: A line ends in LF without CR.
                  at byte 46, part 0 (bare-line-break)
                  fix: End every line of the form's frame with CRLF ("\\r\\n").
                The form is not valid.

                """)
    }

    @Test("As JSON it has the keys that scripts rely on")
    func json() async throws {
        let ending = try await Program.run(
            ["explain", "--json", "--content-type", "multipart/form-data; boundary=XX"],
            input: Data(Self.form.utf8.dropLast(9)))
        #expect(ending.status == 1)
        let explanation = try ending.json()
        #expect(explanation["valid"] as? Bool == false)
        #expect(explanation["boundary"] as? String == "XX")
        let part = try #require((explanation["parts"] as? [[String: Any]])?.first)
        #expect(Set(part.keys) == ["name", "filename", "contentType", "offset", "size", "sha256", "headers"])
        #expect(part["filename"] is NSNull)
        #expect(part["headers"] as? [[String]] == [["Content-Disposition", "form-data; name=\"a\""]])
        let problem = try #require((explanation["problems"] as? [[String: Any]])?.first)
        #expect(problem["code"] as? String == "truncated")
        #expect(problem["severity"] as? String == "error")
        #expect(problem["offset"] as? Int == 57)
    }

    @Test("What cannot be read ends it with 66, and what cannot be understood with 64")
    func failures() async throws {
        #expect(try await Program.run(["explain", "/no/such/file"]).status == 66)
        #expect(try await Program.run(["explain", "/usr"]).status == 66)
        #expect(try await Program.run(["explain", "a", "b"]).status == 64)
    }
}

@Suite("postcard demo")
struct DemoTests {
    @Test("It ends with 0 after three digests that are the same")
    func demo() async throws {
        let folder = try TemporaryFolder()
        let ending = try await Program.run(["demo", "--directory", folder.path])
        #expect(ending.status == 0, "\(ending.messages)")
        #expect(ending.text.split(separator: "\n").count { $0.contains("  same  ") } == 3)
    }
}
