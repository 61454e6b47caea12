import Foundation
import Hummingbird
import PostcardForm
import PostcardTestSupport
import Testing

/// The documentation of a module: a landing page, and articles.
struct DocumentedModule: Sendable, CustomTestStringConvertible {
    let name: String

    var testDescription: String { name }

    var folder: String { "\(Repository.modules[name] ?? name)/\(name).docc" }

    /// One for each library that the manifest offers.
    static let all = ((try? Document("Package.swift").text) ?? "").matches(of: /\.library\(name: "(\w+)"/)
        .map { Self(name: String($0.output.1)) }

    func articles() throws -> [Document] {
        try Document.contents(of: folder).filter { $0.hasSuffix(".md") }.map { try Document("\(folder)/\($0)") }
    }

    /// Whether an article or a tutorial has this name.
    func has(_ page: Substring) -> Bool {
        ["\(page).md", "Tutorial/\(page).tutorial"].contains { Document.exists("\(folder)/\($0)") }
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

@Suite("The documentation", .timeLimit(.minutes(10)))
struct DocumentationTests {
    @Test(arguments: DocumentedModule.all)
    func `its Swift is what the tests or the check for Apple's platforms compile`(of module: DocumentedModule) throws {
        // The examples of this page are pieces of code, and their table is tested with the problems.
        for article in try module.articles() where !article.path.hasSuffix("/Problems.md") {
            #expect(try article.uncompiledSwift() == [], "\(article)")
        }
    }

    @Test(arguments: DocumentedModule.all)
    func `its links name articles and public symbols`(of module: DocumentedModule) throws {
        let symbols = try Set(module.symbols().keys)
        let articles = try module.articles()
        for article in articles {
            for link in article.text.matches(of: /<doc:([\w-]+)>/) {
                #expect(module.has(link.output.1), "\(article): \(link.output.0)")
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

    @Test(arguments: DocumentedModule.all)
    func `its landing page groups all public types`(of module: DocumentedModule) throws {
        let topics = try module.topics()
        for (name, declaration) in try module.symbols() where !name.contains("/") {
            let kinds: Set<Substring> = ["actor", "class", "enum", "protocol", "struct"]
            guard !kinds.isDisjoint(with: declaration.prefix { $0 != "{" }.split(separator: " ")) else { continue }
            #expect(topics.contains("``\(name)``"), "\(name)")
        }
    }

    @Test(arguments: DocumentedModule.all)
    func `its landing page links to every article`(of module: DocumentedModule) throws {
        let topics = try module.topics()
        for article in try module.articles() where !article.path.hasSuffix("/\(module.name).md") {
            let name = URL(filePath: article.path).deletingPathExtension().lastPathComponent
            #expect(topics.contains("- <doc:\(name)>"), "\(article)")
        }
    }

    @Test(arguments: DocumentedModule.all)
    func `the READMEs link to its landing page`(of module: DocumentedModule) throws {
        for path in ["README.md", "README.ko.md"] {
            let link = "[`\(module.name)`](\(module.folder)/\(module.name).md)"
            #expect(try Document(path).text.contains(link), "\(path)")
        }
    }

    @Test
    func `its Korean articles have the headings, code, figures and links of the English ones`() throws {
        let articles = try DocumentedModule.all.flatMap { try $0.articles() }.filter { $0.path.hasSuffix("-ko.md") }
        #expect(articles.count == 6)
        for article in articles {
            let original = try Document(article.path.replacing("-ko.md", with: ".md"))
            #expect(article.skeleton == original.skeleton, "\(article)")
            #expect(article.prose.contains(/\p{Hangul}/), "\(article)")
        }
    }

    @Test
    func `the output of explain in its article is what it prints`() async throws {
        let article = try Document("Sources/Forms/PostcardDoctor/PostcardDoctor.docc/ExplainingARequest.md")
        let shown = try #require(
            article.blocks(in: "console").first { $0.first?.contains("| postcard explain") == true })
        let command = try #require(shown.first?.dropFirst(2)).replacing(
            "postcard explain", with: "'\(Program.url.path)' explain")
        let ending = try await Program.run("sh", ["-c", String(command)])
        #expect(ending.text == shown.dropFirst().map { $0 + "\n" }.joined())
    }

    @Test(arguments: ["php", "python"])
    func `its code for other servers is well-formed`(language: String) async throws {
        let article = try Document("Sources/Sending/PostcardClient/PostcardClient.docc/WhatYourServerHasToDo.md")
        let code = try #require(article.blocks(in: language).first).joined(separator: "\n")
        let folder = try TemporaryFolder()
        let ending =
            if language == "php" {
                try await Program.run("php", ["-l", try folder.file("code.php", Data("<?php\n\(code)".utf8)).path])
            } else {
                try await Program.run(
                    "python3", ["-m", "py_compile", try folder.file("code.py", Data(code.utf8)).path])
            }
        #expect(ending.status == 0, "\(ending.text) \(ending.messages)")
    }

    @Test
    func `its rules as JSON are those that it makes in Swift`() throws {
        let article = try Document("Sources/Forms/PostcardForm/PostcardForm.docc/RulesOnBothSides.md")
        let json = try #require(article.blocks(in: "json").first).joined(separator: "\n")
        #expect(try FormRules(json: Data(json.utf8)) == rulesOfTheArticle())
    }

    @Test(arguments: [1, 7, 1 << 20])
    func `its forms elsewhere are read from pieces of any size`(size: Int) async throws {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(Data(repeating: 7, count: 300), named: "petImage", filename: "a.bin")
        form.append(Data(repeating: 8, count: 200), named: "petImage", filename: "b.bin")
        let layout = try form.layout()
        let body = Array(try await layout.data())
        let reader = FormsElsewhere()
        let pet = try await reader.pet(of: Self.pieces(of: body, size), contentType: layout.contentType)
        #expect(pet.name == "초코")
        #expect(pet.petImage.count == 2)

        var film = MultipartForm()
        film.append(Data(repeating: 9, count: 1000), named: "film", filename: "film.bin")
        let filmLayout = try film.layout()
        try await reader.keep(
            Self.pieces(of: Array(try await filmLayout.data()), size), contentType: filmLayout.contentType)
        #expect(await reader.bucket.count == 1000)
    }

    private static func pieces(of body: [UInt8], _ size: Int) -> AsyncThrowingStream<ByteBuffer, any Error> {
        AsyncThrowingStream { stream in
            for start in Swift.stride(from: 0, to: body.count, by: size) {
                stream.yield(ByteBuffer(bytes: body[start..<min(start + size, body.count)]))
            }
            stream.finish()
        }
    }
}
