import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("A form of the browsers' tests")
struct BrowserWritingTests {
    static let cases = (try? BrowserWriting.all()) ?? []

    @Test(arguments: cases)
    func `is written as browsers write it, or differs as the list says`(writing: BrowserWriting) throws {
        let listed = BrowserDifference<WritingOutcome>.all.first { $0.cases.contains(writing.id) }
        #expect(try Self.outcome(of: writing) == listed?.outcome ?? .same)
    }

    @Test
    func `is one of 86, and the list names each at most once`() {
        #expect(Self.cases.count == 86)
        let listed = BrowserDifference<WritingOutcome>.all.flatMap(\.cases)
        #expect(Set(listed).count == listed.count)
        #expect(Set(listed).isSubset(of: Self.cases.map(\.id)))
    }

    private static func outcome(of writing: BrowserWriting) throws -> WritingOutcome {
        let boundary = try Boundary("XX")
        let expected = writing.bytes(boundary: boundary.value)
        do {
            if try bytes(of: writing, boundary, .normalized) != expected { return .otherBytes }
            return try bytes(of: writing, boundary, .asGiven) == expected ? .same : .otherLineBreaks
        } catch let error as FormError {
            return .refused(error.code)
        }
    }

    private static func bytes(
        of writing: BrowserWriting, _ boundary: Boundary, _ lineBreaks: LineBreaks
    ) throws -> [UInt8] {
        var form = MultipartForm(boundary: boundary, lineBreaks: lineBreaks)
        for entry in writing.entries {
            guard let filename = entry.filename else {
                form.append(entry.value, named: entry.name)
                continue
            }
            let type = entry.type.flatMap { $0.isEmpty ? nil : $0 }
            form.append(
                Data(entry.value.utf8), named: entry.name, filename: filename,
                contentType: try type.map { try MediaType($0) })
        }
        return try form.layout().reader().readAll()
    }
}
