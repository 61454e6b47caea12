import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("A body of the browsers' tests")
struct BrowserReadingTests {
    static let cases = (try? BrowserReading.all()) ?? []

    @Test(arguments: cases)
    func `is read as browsers read it, or differs as the list says`(reading: BrowserReading) {
        let listed = BrowserDifference<ReadingOutcome>.all.first { $0.cases.contains(reading.id) }
        #expect(Self.outcome(of: reading) == listed?.outcome ?? .same)
    }

    @Test
    func `is one of 110, and the list names each at most once`() {
        #expect(Self.cases.count == 110)
        let listed = BrowserDifference<ReadingOutcome>.all.flatMap(\.cases)
        #expect(Set(listed).count == listed.count)
        #expect(Set(listed).isSubset(of: Self.cases.map(\.id)))
    }

    private static func outcome(of reading: BrowserReading) -> ReadingOutcome {
        let body = Array(reading.body)
        let boundary: String
        do {
            boundary = try FormParser(contentType: reading.contentType).boundary
        } catch {
            return reading.entries == nil ? .same : .refused(error.code)
        }
        let readings = Reading.all(of: [body[...]], boundary: boundary)
        #expect(Reading.all(of: body.indices.map { body[$0...$0] }, boundary: boundary) == readings)
        if case .problem(let code, _, _)? = readings.last { return reading.entries == nil ? .same : .refused(code) }
        guard let entries = reading.entries else { return .accepted }
        return compare(parts(of: readings), entries)
    }

    private typealias Part = (name: String, filename: String?, type: String?, bytes: [UInt8])

    private static func parts(of readings: [Reading]) -> [Part] {
        readings.reduce(into: []) { parts, reading in
            switch reading {
            case .part(let name, let filename, let type, _): parts.append((name, filename, type, []))
            case .content(let bytes): parts[parts.count - 1].bytes = bytes
            case .partEnded, .complete, .problem: break
            }
        }
    }

    /// Compares the bytes of texts: `==` of strings takes differently composed characters for the same.
    private static func compare(_ parts: [Part], _ entries: [BrowserReading.Entry]) -> ReadingOutcome {
        var outcome = ReadingOutcome.same
        #expect(parts.count == entries.count)
        for (part, entry) in zip(parts, entries) {
            if !part.name.utf8.elementsEqual(entry.name.utf8) { outcome = .otherNames }
            switch entry.value {
            case .text(let text):
                #expect(part.filename == nil)
                #expect(String(decoding: part.bytes, as: UTF8.self).utf8.elementsEqual(text.utf8))
            case .file(let file):
                #expect(part.bytes == Array(file.bytes))
                if part.filename.map({ $0.utf8.elementsEqual(file.filename.utf8) }) != true { outcome = .otherNames }
                // Fetch gives a file without a type the default of RFC 7578 §4.4.
                if let type = file.type, part.type ?? "text/plain" != type { outcome = .otherTypes }
            }
        }
        return outcome
    }
}
