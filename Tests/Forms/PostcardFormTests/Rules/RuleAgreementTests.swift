import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("Rules on both sides")
struct RuleAgreementTests {
    private static let names = ["a", "b", "이름"]
    private static let texts = ["", "a", "aa", "ab", "초코", "aaaaaa", "dog", "do", "\r\n--X", "🐕"]
    private static let contents = [
        Data(), Sample.png, Sample.jpeg, Sample.pdf, Sample.html, Sample.png.prefix(8), Sample.png.prefix(31),
        Sample.png.prefix(32), Sample.jpeg.prefix(33), Data([0xFF]),
    ]

    @Test(arguments: 0..<60)
    func `random forms under random rules come to one problem, before and while they are sent`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<5 {
            let rules = try Self.rules(using: &random)
            let form = try Self.form(using: &random)
            _ = try verdict(form, rules)
            #expect(try FormRules(json: JSONEncoder().encode(rules)) == rules)
        }
    }

    @Test
    func `the random forms are neither all taken nor all refused for one reason`() throws {
        var random = SeededGenerator(seed: 1)
        var codes: Set<FormProblem.Code?> = []
        for _ in 0..<2000 {
            let rules = try Self.rules(using: &random)
            codes.insert(try rules.problems(in: Self.form(using: &random)).first?.code)
        }
        #expect(codes.contains(nil))
        #expect(codes.count >= 16)
    }

    private static func form(using random: inout SeededGenerator) throws -> MultipartForm {
        var form = MultipartForm(boundary: try Boundary("XX"))
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let name = names.randomElement(using: &random) ?? "a"
            if Bool.random(using: &random) {
                form.append(texts.randomElement(using: &random) ?? "", named: name)
            } else {
                form.append(
                    contents.randomElement(using: &random) ?? Data(), named: name,
                    filename: ["f", "f.png", ""].randomElement(using: &random),
                    contentType: [MediaType.png, .jpeg, .pdf, .html, nil].randomElement(using: &random) ?? nil,
                    metadata: .asIs)
            }
        }
        return form
    }

    private static func rules(using random: inout SeededGenerator) throws -> FormRules {
        var fields: [String: FormRules.Field] = [:]
        var files: [String: FormRules.File] = [:]
        for name in names {
            if Int.random(in: 0..<3, using: &random) > 0 {
                fields[name] = FormRules.Field(
                    atLeast: Int.random(in: 0...1, using: &random), atMost: Int.random(in: 1...3, using: &random),
                    minimumCharacters: [0, 0, 2].randomElement(using: &random) ?? 0,
                    maximumCharacters: [nil, 2, 4].randomElement(using: &random) ?? nil,
                    pattern: [nil, try TextPattern("a*"), try TextPattern("[^b]*")].randomElement(using: &random) ?? nil
                )
            } else if Bool.random(using: &random) {
                fields[name] = FormRules.Field(oneOf: ["dog", "do", "초코", "aa"])
            }
            if Int.random(in: 0..<3, using: &random) > 0 {
                files[name] = FormRules.File(
                    atLeast: Int.random(in: 0...1, using: &random), atMost: Int.random(in: 1...3, using: &random),
                    minimumBytes: [0, 0, 8].randomElement(using: &random) ?? 0,
                    maximumBytes: [nil, nil, 31, 40, 44].randomElement(using: &random) ?? nil,
                    types: [nil, [.anyImage], [MediaRange(.png), .anyImage], [MediaRange(.pdf)]]
                        .randomElement(using: &random) ?? nil)
            }
        }
        return try FormRules(
            fields: fields, files: files,
            maximumBytesOfAllFiles: [nil, 50, 90].randomElement(using: &random) ?? nil,
            otherParts: Bool.random(using: &random) ? .allowed : .refused)
    }
}
