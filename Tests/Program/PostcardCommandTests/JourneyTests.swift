import Foundation
import Testing

/// A journey through the code that CONTRIBUTING describes.
private struct Journey: CustomStringConvertible {
    let title: String
    /// The files of its numbered list, in the order in which to read them.
    var steps: [String] = []
    /// The files that are named elsewhere.
    var otherFiles: [String] = []

    var description: String { title }

    /// - Parameter text: A section, which begins with its title.
    init(_ text: String) {
        let paragraphs = text.components(separatedBy: "\n\n")
        title = paragraphs[0]
        var folder = ""
        for paragraph in paragraphs {
            let names = paragraph.matches(of: /`([^`\s]+)`/).map { String($0.output.1) }
            // A paragraph can say which folder its files are in, and those of the next.
            if let named = names.first(where: { $0.hasPrefix("Sources/") && !$0.hasSuffix(".swift") }) {
                folder = named + "/"
            }
            let files = names.filter { $0.hasSuffix(".swift") }.map { $0.hasPrefix("Sources/") ? $0 : folder + $0 }
            if paragraph.hasPrefix("1. ") { steps += files } else { otherFiles += files }
        }
    }

    static func all() throws -> [Journey] {
        let text = try Document("CONTRIBUTING.md").text
        let heading = try #require(text.range(of: "\n## Four journeys through the code\n"))
        let section = text[heading.upperBound...].components(separatedBy: "\n## ")[0]
        return section.components(separatedBy: "\n### ").dropFirst().map { Journey($0) }
    }
}

@Suite("The journeys through the code")
struct JourneyTests {
    @Test
    func `there are four, of at most 30 files each`() throws {
        let journeys = try Journey.all()
        #expect(journeys.count == 4)
        for journey in journeys { #expect((10...30).contains(journey.steps.count), "\(journey): \(journey.steps)") }
    }

    @Test
    func `they name files that exist, and no file twice`() throws {
        for journey in try Journey.all() {
            for file in journey.steps + journey.otherFiles { #expect(Document.exists(file), "\(journey): \(file)") }
            for (file, steps) in Dictionary(grouping: journey.steps, by: \.self) {
                #expect(steps.count == 1, "\(journey): \(file)")
            }
        }
    }
}
