import PostcardDoctor
import PostcardForm
import Testing

@Suite("Findings of one kind")
struct FindingGroupTests {
    private static func groups(_ body: String, leavingOut codes: Set<FormProblem.Code> = []) -> [FindingGroup] {
        let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: body.utf8)
        return FindingGroup.groups(of: explanation.findings, leavingOut: codes)
    }

    private static func parts(_ count: Int, _ header: String) -> String {
        String(repeating: "--XX\r\n\(header)\r\n\r\n1\r\n", count: count) + "--XX--\r\n"
    }

    private static let disposition = "Content-Disposition: form-data; name=\"a\""

    @Test
    func `a thousand of them are one, with the first places and how many there are`() throws {
        let groups = Self.groups(Self.parts(1000, "\(Self.disposition)\r\nContent-Transfer-Encoding: binary"))
        let encodings = groups.filter { $0.finding.code == .contentTransferEncoding }
        let group = try #require(encodings.first)
        #expect(encodings.count == 1)
        #expect(group.repetitions.count == 999)
        #expect(group.repetitions.first.map(\.partIndex) == [1, 2, 3, 4, 5, 6])
        #expect(group.consequences.isEmpty && group.otherConsequences == 0)
    }

    @Test
    func `those of another kind that follow from them are one each`() throws {
        let body = "--XX\r\n" + Self.disposition + "\r\n\r\n1\r\n--XX--\r\n"
        let groups = Self.groups(body.replacing("--XX", with: "--YY"))
        #expect(groups.map(\.finding.code) == [.boundaryMismatch])
        let group = try #require(groups.first)
        #expect(group.repetitions.count == 0)
        #expect(group.consequences.map(\.first.code) == [.delimiterNotFound])
        #expect(group.consequences.map(\.places.count) == [1])
    }

    @Test
    func `where a kind is left out, what follows from it stays`() {
        let body = "--YY\r\n\(Self.disposition)\r\n\r\n1\r\n--YY--\r\n"
        let groups = Self.groups(body, leavingOut: [.boundaryMismatch])
        #expect(groups.map(\.finding.code) == [.delimiterNotFound])
    }
}
