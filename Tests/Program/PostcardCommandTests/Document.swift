import Foundation
import PostcardTestSupport

/// A document of this package.
struct Document: Sendable, CustomStringConvertible {
    /// The path from the root of the package.
    let path: String
    let text: String

    init(_ path: String) throws {
        self.path = path
        text = try String(contentsOf: Repository.url(path), encoding: .utf8)
    }

    var description: String { path }

    /// The names of what a folder of the package contains.
    static func contents(of folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: Repository.url(folder).path).sorted()
    }

    static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: Repository.url(path).path)
    }

    /// The texts of all files of tests.
    static func allTests() throws -> [String] {
        let files = FileManager.default.enumerator(at: Repository.url("Tests"), includingPropertiesForKeys: nil)
        return try (files?.compactMap { $0 as? URL } ?? []).filter { $0.lastPathComponent.hasSuffix("Tests.swift") }
            .map { try String(contentsOf: $0, encoding: .utf8) }
    }

    /// Its text outside of code blocks.
    var prose: String {
        text.replacing(/(?ms)^ *```.*?^ *```$/, with: "")
    }

    /// What a translation has in common with its original.
    struct Skeleton: Equatable {
        let headings: [Int]
        let code: [String]
        let figures: [String]
        let links: [String]
    }

    var skeleton: Skeleton {
        let prose = prose
        return Skeleton(
            headings: prose.matches(of: /(?m)^#+/).map { $0.output.count },
            code: text.matches(of: /(?ms)^ *```.*?^ *```$/).map { String($0.output) },
            figures: prose.replacing(/\]\([^)]*\)/, with: "]").matches(of: /\d+(?:[.,\-]\d+)*/)
                .map { String($0.output) }.sorted(),
            links: prose.matches(of: /\]\(([^)]*)\)|(<doc:[^>]*>)/).map { match in
                String(match.output.1 ?? match.output.2 ?? "").replacing("-ko", with: "").replacing(".ko.", with: ".")
            }.sorted())
    }

    /// The lines of each code block in a language, those in lists included.
    func blocks(in language: String) -> [[String]] {
        var blocks: [[String]] = []
        var lines = text.components(separatedBy: "\n")[...]
        while let start = lines.firstIndex(where: { Self.withoutIndentation($0) == "```\(language)" }) {
            let block = lines[(start + 1)...].prefix { Self.withoutIndentation($0) != "```" }
            blocks.append(Array(block))
            lines = lines[block.endIndex...]
        }
        return blocks
    }

    /// The files whose code is compiled as it is: tests, and the snippets, whose code for apps is compiled by the check
    /// for Apple's platforms.
    private static func compiledFiles() throws -> [Document] {
        let snippets = try contents(of: "Snippets").filter { $0.hasSuffix(".swift") }.map { "Snippets/\($0)" }
        return try
            (snippets + [
                "Tests/Consumer/Sources/Client/AddPet.swift",
                "Tests/Consumer/Sources/Client/Errors.swift",
                "Tests/Consumer/Tests/Testing/FormTests.swift",
                "Tests/Consumer/Tests/Testing/QueueTests.swift",
                "Tests/Consumer/Tests/Testing/UploadTests.swift",
                "Tests/Program/PostcardCommandTests/ArticleSnippets.swift",
                "Tests/Program/PostcardCommandTests/DocumentationSnippets.swift",
                "Tests/Program/PostcardCommandTests/ReadmeSnippets.swift",
                "Tests/Forms/PostcardDoctorTests/Findings/TestingAnUploaderTests.swift",
                "Tests/Program/PostcardCommandTests/VaporSnippets.swift",
                "Tests/Receiving/PostcardStoreTests/Storing/UploadStoreCheckTests.swift",
                "Tests/ReceivingSupport/MemoryStore.swift",
                // Compiled by `make check-frameworks`.
                "Tests/Frameworks/Sources/FlyingFoxReceiver/FlyingFoxReceiver.swift",
                "Tests/Frameworks/Sources/NIOReceiver/NIOReceiver.swift",
            ]).map { try Document($0) }
    }

    /// The first lines of paragraphs of its Swift that are compiled nowhere, and its imports that no compiled file has.
    func uncompiledSwift() throws -> [String] {
        let files = try Self.compiledFiles().map { file in
            file.text.components(separatedBy: "\n").map(Self.withoutIndentation)
        }
        var uncompiled: [String] = []
        // A block of one line shows an expression. A manifest has a test of its own.
        for block in blocks(in: "swift") where block.count > 1 && !block[0].hasPrefix("// swift-tools-version") {
            for paragraph in block.map(Self.withoutIndentation).split(separator: "") {
                let code = paragraph.filter { !$0.hasPrefix("import ") }
                let isCompiled = files.contains { file in
                    file.indices.count { file[$0...].starts(with: code) } == 1
                }
                if let line = code.first, !isCompiled { uncompiled.append(line) }
                uncompiled += paragraph.filter { line in
                    line.hasPrefix("import ") && !files.contains { $0.contains(line) }
                }
            }
        }
        return uncompiled
    }

    private static func withoutIndentation(_ line: String) -> String {
        line.drop { $0 == " " }.description
    }
}
