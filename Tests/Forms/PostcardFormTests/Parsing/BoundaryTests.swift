import PostcardForm
import Testing

@Suite("A boundary")
struct BoundaryTests {
    @Test
    func `a random one is safe unquoted, and another each time`() {
        let boundaries = (0..<100).map { _ in Boundary() }
        #expect(Set(boundaries).count == 100)
        // 21 characters of 64 are 126 bits.
        #expect(boundaries.allSatisfy { $0.value.wholeMatch(of: /Postcard-[A-Za-z0-9_-]{21}/) != nil })
        for boundary in boundaries {
            #expect(boundary.value.utf8.count <= Boundary.maximumLength)
            #expect(MultipartForm(boundary: boundary).contentType.hasSuffix("boundary=\(boundary.value)"))
        }
    }

    @Test
    func `one of the caller's own is quoted where the grammar asks for it`() throws {
        #expect(MultipartForm(boundary: try Boundary("a b")).contentType == #"multipart/form-data; boundary="a b""#)
        #expect(MultipartForm(boundary: try Boundary("a.b")).contentType == "multipart/form-data; boundary=a.b")
    }

    @Test(arguments: ["", "a ", "a\r\nb", "a\"b", "é", "a@b", String(repeating: "a", count: 71)])
    func `what RFC 2046 does not allow is refused`(value: String) {
        let error = #expect(throws: FormError.self) { try Boundary(value) }
        #expect(error?.code == .invalidBoundary)
    }
}
