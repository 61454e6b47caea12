import Foundation
import Testing

/// The documentation of a module: a landing page, and articles.
struct DocumentedModule: Sendable, CustomTestStringConvertible {
    let name: String

    var testDescription: String { name }

    private var folder: String { "Sources/\(name)/\(name).docc" }

    static let all = ["Client", "Doctor", "Form", "Pictures", "Queue", "S3", "Server"]
        .map { Self(name: "Postcard\($0)") }

    func articles() throws -> [Document] {
        try Document.contents(of: folder).map { try Document("\(folder)/\($0)") }
    }

    /// The landing page's part that groups all symbols.
    func topics() throws -> Substring {
        let page = try Document("\(folder)/\(name).md").text
        return try page[#require(page.range(of: "\n## Topics\n")).upperBound...]
    }

    /// The public symbols and the kind of each, as links write them: `UploadClient/rules`.
    func symbols() throws -> [String: String] {
        var symbols: [String: String] = [:]
        for line in try Document("API/\(name).txt").text.split(separator: "\n") {
            guard let end = line.firstRange(of: ": ") else { continue }
            symbols[String(line[..<end.lowerBound]).replacing(".", with: "/")] = String(line[end.upperBound...])
        }
        return symbols
    }
}

@Suite("The documentation")
struct DocumentationTests {
    @Test("Its Swift is what the tests or the check for Apple's platforms compile", arguments: DocumentedModule.all)
    func swift(of module: DocumentedModule) throws {
        // The examples of this page are pieces of code, and their table is tested with the problems.
        for article in try module.articles() where !article.path.hasSuffix("/Problems.md") {
            #expect(try article.uncompiledSwift() == [], "\(article)")
        }
    }

    @Test("Its links name articles and public symbols", arguments: DocumentedModule.all)
    func links(of module: DocumentedModule) throws {
        let symbols = try Set(module.symbols().keys)
        let articles = try module.articles()
        for article in articles {
            for link in article.text.matches(of: /<doc:(\w+)>/) {
                #expect(articles.contains { $0.path.hasSuffix("/\(link.output.1).md") }, "\(article): \(link.output.0)")
            }
            for link in article.text.matches(of: /(?:^|[^`])``([^`\s]+)``/).map(\.output.1) where link != module.name {
                // A symbol that extends a type of another module is named with that module.
                let extending = String(link.drop { $0 != "/" }.dropFirst())
                let isExtension = symbols.contains { symbol in
                    symbol == extending || (!extending.isEmpty && symbol.hasPrefix(extending + "/"))
                }
                #expect(symbols.contains(String(link)) || isExtension, "\(article): \(link)")
            }
        }
    }

    @Test("Its landing page groups all public types", arguments: DocumentedModule.all)
    func landingPage(of module: DocumentedModule) throws {
        let topics = try module.topics()
        for (name, declaration) in try module.symbols() where !name.contains("/") {
            let kinds: Set<Substring> = ["actor", "class", "enum", "protocol", "struct"]
            guard !kinds.isDisjoint(with: declaration.prefix { $0 != "{" }.split(separator: " ")) else { continue }
            #expect(topics.contains("``\(name)``"), "\(name)")
        }
    }
}
