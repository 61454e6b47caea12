import Foundation
import PostcardSamples
import PostcardTestSupport
import Testing

@Suite("The README", .timeLimit(.minutes(10)))
struct ReadmeTests {
    private let readme: Document
    private let manifest: Document

    init() throws {
        readme = try Document("README.md")
        manifest = try Document("Package.swift")
    }

    @Test(arguments: ["README.md", "README.ko.md"])
    func `it has at most 200 lines and 1,700 words`(path: String) throws {
        let text = try Document(path).text
        #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 201)
        #expect(text.split(whereSeparator: \.isWhitespace).count <= 1_700)
    }

    @Test
    func `the Korean one has its headings, code, figures and links`() throws {
        let korean = try Document("README.ko.md")
        #expect(korean.skeleton == readme.skeleton)
        #expect(korean.prose.contains(/\p{Hangul}/))
    }

    @Test
    func `its Swift is what the tests or the check for Apple's platforms compile`() throws {
        #expect(try readme.uncompiledSwift() == [])
    }

    @Test
    func `its first listings are short files of a program that the consumers' check builds`() throws {
        let listings = readme.blocks(in: "swift").prefix(2).map { lines in lines.map { $0 + "\n" }.joined() }
        try #require(listings.count == 2)
        let folder = "Tests/Consumer/Sources/Client"
        #expect(try Document("\(folder)/AddPet.swift").text == listings[0])
        let imports = "import Foundation\nimport PostcardClient\n\n"
        #expect(try Document("\(folder)/Errors.swift").text == imports + listings[1])
        #expect(readme.blocks(in: "swift")[0].count <= 12)
        #expect(readme.blocks(in: "swift")[1].count <= 10)
    }

    @Test
    func `its first function sends a form`() async throws {
        let listing = try #require(readme.blocks(in: "swift").first)
        let code = listing.drop { !$0.hasPrefix("struct ") }.map { $0 + "\n" }.joined()
        #expect(code.contains("func addPet("))
        #expect(try Document("Tests/Program/PostcardCommandTests/ReadmeSnippets.swift").text.contains(code))

        let photo = try #require(SamplePictures.all().first)
        let received = try TemporaryFolder()
        let server = try await RunningServer(["serve", "--port", "0", "--directory", received.path])
        let url = try #require(URL(string: server.address + "/uploads"))
        let pet = try await addPet("초코", photo: photo, to: url)
        #expect(try FileManager.default.contentsOfDirectory(atPath: received.path).contains(pet.id))
    }

    @Test
    func `the demo prints what it shows, but for the port and the identifier`() async throws {
        let shown = try #require(readme.blocks(in: "console").first { $0.first == "$ make demo" })
        let received = try TemporaryFolder()
        let ending = try await Program.run(["demo", "--directory", received.path])
        func constant(_ lines: some Sequence<String>) -> [String] {
            lines.map { $0.prefix { $0 != "/" }.description }
        }
        #expect(
            constant(ending.text.split(separator: "\n").map(String.init))
                == constant(shown.dropFirst().prefix { !$0.hasPrefix("$") }).map {
                    $0.hasPrefix("Saved to") ? "Saved to " : $0
                })
    }

    @Test
    func `its commands for a shell work`() async throws {
        let shown = try #require(readme.blocks(in: "console").first { $0.first == "$ swift run postcard serve" })
        #expect(shown.count == 3)
        let received = try TemporaryFolder()
        let server = try await RunningServer(["serve", "--port", "0", "--directory", received.path])
        let command = shown[2].dropFirst(2).replacing("swift run postcard", with: "'\(Program.url.path)'")
            .replacing(shown[1].split(separator: " ")[2], with: server.address)
        let ending = try await Program.run("sh", ["-c", "cd '\(Repository.url(".").path)' && \(command)"])
        #expect(ending.status == 0, "\(ending.messages)")
        #expect(ending.text.contains("hills.jpg"))
    }

    @Test
    func `its manifest is valid, and names a package and products that exist`() async throws {
        let block = try #require(readme.blocks(in: "swift").first { $0[0].hasPrefix("// swift-tools-version") })
        let folder = try TemporaryFolder()
        _ = try folder.file("Package.swift", Data(block.joined(separator: "\n").utf8))
        let ending = try await Program.run("swift", ["package", "--package-path", folder.path, "dump-package"])
        try #require(ending.status == 0, "\(ending.messages)")
        let products = ending.text.matches(of: /"product" : \[\s*"(\w+)"/).map(\.output.1)
        #expect(!products.isEmpty)
        for product in products { #expect(manifest.text.contains(".library(name: \"\(product)\"")) }
        #expect(block[0] == "// swift-tools-version: \(try toolsVersion())")
    }

    private func toolsVersion() throws -> Substring {
        try #require(manifest.text.firstMatch(of: /swift-tools-version: ([\d.]+)/)?.1)
    }

    @Test
    func `what it and its first article require is what the manifest requires`() throws {
        let list = try #require(manifest.text.firstMatch(of: /\n    platforms: \[([^\]]*)\]/)?.1)
        let platforms = list.matches(of: /\.(\w+)\(\.v(\d+)\)/).map { "\($0.output.1) \($0.output.2)" }
        #expect(platforms.count == 5)
        let article = "Sources/Sending/PostcardClient/PostcardClient.docc/GettingStartedInXcode"
        for path in ["README.md", "README.ko.md", "\(article).md", "\(article)-ko.md"] {
            let document = try Document(path)
            for platform in platforms { #expect(document.prose.contains(platform), "\(path): \(platform)") }
            #expect(document.text.contains("swift-tools-version: \(try toolsVersion())"), "\(path)")
        }
        let iOS = try #require(platforms.first { $0.hasPrefix("iOS ") }?.dropFirst(4))
        #expect(try Document("\(article).md").text.contains("requires minimum platform version \(iOS).0 for the iOS"))
    }

    @Test
    func `a product that needs a trait says so when it is compiled without`() throws {
        let rows = readme.prose.matches(of: /\n\| \[`(Postcard\w+)`\][^|]*\|[^|]*\| `(\w+)`/).map(\.output)
        #expect(rows.count == 5)
        for (_, product, trait) in rows {
            let sources = try #require(
                FileManager.default.enumerator(
                    at: Repository.sources(of: String(product)), includingPropertiesForKeys: nil))
            let message = "#error(\"\(product) needs the trait \(trait) of this package:"
            #expect(
                sources.contains { file in
                    guard let file = file as? URL, file.pathExtension == "swift" else { return false }
                    return (try? String(contentsOf: file, encoding: .utf8).contains(message)) == true
                }, "\(product)")
        }
    }

    @Test
    func `its links, targets, scripts and suites exist`() throws {
        for match in readme.text.matches(of: /(?:\]\(|srcset="|src=")([\w.\/\-]+)[)"]/) {
            #expect(Document.exists(String(match.output.1)), "\(match.output.1)")
        }
        let makefile = try Document("Makefile")
        for match in readme.text.matches(of: /(?:`|\$ )make ([a-z\-]+)/) {
            #expect(makefile.text.contains("\n\(match.output.1):"), "make \(match.output.1)")
        }
        let kills = try #require(readme.text.firstMatch(of: /killed (\d+) times/)?.1)
        #expect(makefile.text.contains("POSTCARD_KILLS=\(kills) "))
        let tests = try Document.allTests()
        for match in readme.text.matches(of: /swift test --filter (\w+)/) {
            #expect(tests.contains { $0.contains("struct \(match.output.1) ") }, "\(match.output.1)")
        }
        #expect(try Document("Tests/Device/README.md").text.hasPrefix("# 26 steps"))
        let snippets = try Document.contents(of: "Snippets").filter { $0.hasSuffix(".swift") }
        for path in ["README.md", "Snippets/README.md"] {
            #expect(try Document(path).text.contains("\(snippets.count) small programs"), "\(path)")
        }
        let list = try Document("Snippets/README.md").text
        for snippet in snippets { #expect(list.contains("| `\(snippet.dropLast(6))"), "\(snippet)") }
    }

    @Test
    func `its figures are those of its script, by which Postcard's memory does not grow with a file`() async throws {
        try Tool.require("go", "curl", "python3")
        let script = Repository.url("Benchmarks/Figures/measure").path
        let ending = try await Program.run("python3", [script, "100", "1", Program.url.path])
        #expect(ending.status == 0, "\(ending.messages)")
        let printed = Self.figures(in: ending.text.replacing("100 MB", with: "300 MB"))
        let shown = Self.figures(in: readme.text)
        #expect(printed.map { $0[0] } == shown.map { $0[0] })
        #expect(shown.count == 8)
        for row in printed where row[0].hasPrefix("Postcard") {
            let memory = row[1...2].compactMap { Int($0.prefix { $0.isNumber }) }
            // 100 MB were sent, of which a few may be there at any time.
            #expect(memory.count == 2 && abs(memory[0] - memory[1]) < 30, "\(row)")
        }
    }

    /// The cells of the tables with memory and time, the first being the title or the program.
    private static func figures(in text: String) -> [[String]] {
        text.matches(of: /(?m)^\| .*(?:memory, 1 kB|\d MB \| [\d.]+ s) .*$/).map { match in
            match.output.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
                .map { $0.replacing(", by `Benchmarks/Figures/measure 300`", with: "") }
        }
    }

    @Test
    func `its pictures and those of the documentation are what their script draws`() async throws {
        let folder = try TemporaryFolder()
        let ending = try await Program.run("python3", [Repository.url("Pictures/draw").path, folder.path])
        #expect(ending.status == 0, "\(ending.messages)")
        let tutorial = "Sources/Sending/PostcardQueue/PostcardQueue.docc/Tutorial"
        let doctor = "Sources/Forms/PostcardDoctor/PostcardDoctor.docc"
        let places = [
            "light": "Pictures", "dark": "Pictures", "diary": tutorial, "diary~dark": tutorial, "explained": doctor,
            "explained~dark": doctor,
        ]
        for (name, place) in places {
            let drawn = URL(filePath: folder.path).appending(path: "\(name).svg")
            #expect(try String(contentsOf: drawn, encoding: .utf8) == Document("\(place)/\(name).svg").text)
        }
    }
}
