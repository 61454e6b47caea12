import PostcardDoctor
import PostcardForm
import Testing

@Suite("A request with one thing wrong")
struct BrokenRequestTests {
    static let all =
        BrokenRequest.heads + BrokenRequest.delimiters + BrokenRequest.parts + BrokenRequest.contents
        + BrokenRequest.policies

    static func explanation(of bytes: [UInt8], in chunks: Int = .max) -> Explanation {
        var examination = RequestExamination()
        for start in stride(from: 0, to: bytes.count, by: chunks == .max ? max(bytes.count, 1) : chunks) {
            let end = min(start + min(chunks, bytes.count), bytes.count)
            examination.read(bytes[start..<end].span.bytes)
        }
        return examination.finish()
    }

    /// Where the body of a request begins.
    static func headEnd(of bytes: [UInt8]) -> Int { (bytes.index(of: Array("\r\n\r\n".utf8)) ?? bytes.count - 4) + 4 }

    @Test(arguments: SampleRequest.good.indices)
    func `a good request has no problem at all`(index: Int) {
        let request = SampleRequest.good[index].request
        #expect(Self.explanation(of: request.bytes).findings == [])
        var examination = FormExamination(contentType: request.contentTypeValue)
        examination.read(request.body.span.bytes)
        #expect(examination.finish().findings == [])
    }

    @Test(arguments: [
        ("title", "1,2"), ("sizes", "10,20"), ("tags[]", "12,50"), ("ids", "1,234"), ("title", "10,20,30"),
    ])
    func `numbers that may be a list are no problem`(name: String, value: String) {
        let request = SampleRequest([.field(name, value)])
        #expect(Self.explanation(of: request.bytes).findings == [])
    }

    @Test(arguments: [
        "<b>bold</b>", "<br>", "<img src=\"a.jpg\">", "<IMG SRC=a.jpg>", "3 bytes of it", "a.b@c.de",
        "photo.jpg", "/uploads/photo.jpg", "https://a.example/b.jpg", "@anna", "[\"a\",\"b\"]", "System of a Down",
        "b'quoted'", "<dark-mode>", "<3",
    ])
    func `markup, addresses and sizes in words are no problem`(value: String) {
        #expect(Self.explanation(of: SampleRequest([.field("title", value)]).bytes).findings == [])
    }

    @Test(arguments: all)
    func `the problem comes first, at its byte and in its part`(request: BrokenRequest) throws {
        let explanation = Self.explanation(of: request.request.bytes)
        let first = try #require(explanation.findings.first)
        #expect(first.code == request.code, "\(explanation.problems)")
        #expect(first.place == request.place)
        #expect(first.offset == request.offset, "\(explanation.problems)")
        #expect(first.partIndex == request.part)
        #expect(first.excerpt != nil)
    }

    @Test(arguments: all)
    func `however a request is cut, the same is found`(request: BrokenRequest) {
        let whole = Self.explanation(of: request.request.bytes).findings
        for size in [1, 7] { #expect(Self.explanation(of: request.request.bytes, in: size).findings == whole) }
    }

    @Test
    func `there are enough of them, and every code of the reference is among them but for a few`() {
        #expect(Self.all.count >= 120)
        let found = Set(Self.all.map(\.code))
        // These need many parts, or are asked for by name.
        let elsewhere: Set<FormProblem.Code> = [
            .tooManyParts, .notExamined, .refusedByServer, .malformedChunk, .bodyNotRecorded,
        ]
        #expect(Set(FormProblem.Code.explained).subtracting(found) == elsewhere)
    }
}
