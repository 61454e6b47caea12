import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("The rules of a form")
struct FormRulesTests {
    typealias Change = @Sendable (inout MultipartForm) -> Void

    /// A form that both sides judge the same: its content, its rules, and the code of the rule it breaks.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let rules: String
        let code: FormProblem.Code?
        let part: Int?
        let fill: Change

        init(
            _ description: String, _ rules: String, _ code: FormProblem.Code?, part: Int? = nil,
            _ fill: @escaping Change
        ) {
            testDescription = description
            self.rules = rules
            self.code = code
            self.part = part
            self.fill = fill
        }
    }

    private static func text(_ value: String) -> Change { { $0.append(value, named: "a") } }

    private static func file(_ bytes: Data, _ type: String, filename: String = "f") -> Change {
        { $0.append(bytes, named: "a", filename: filename, contentType: try? MediaType(type), metadata: .asIs) }
    }

    static let parts: [Case] = [
        Case("nothing is asked and nothing comes", "{}", nil) { _ in },
        Case("an unknown field", "{}", .unexpectedField, part: 0, text("x")),
        Case("an unknown file", "{}", .unexpectedFile, part: 0, file(Sample.png, "image/png")),
        Case("an unknown field, allowed", #"{"otherParts": "allowed"}"#, nil, text("x")),
        Case("an unknown file, allowed", #"{"otherParts": "allowed"}"#, nil, file(Sample.png, "image/png")),
        Case(
            "a text for a file", #"{"files": {"a": {}}, "otherParts": "allowed"}"#, .fieldInsteadOfFile, part: 0,
            text("x")),
        Case(
            "a file for a text", #"{"fields": {"a": {}}, "otherParts": "allowed"}"#, .fileInsteadOfField, part: 0,
            file(Sample.png, "image/png")),
        Case("either", #"{"fields": {"a": {}}, "files": {"a": {}}}"#, nil, text("x")),
        Case("a field once", #"{"fields": {"a": {}}}"#, nil, text("x")),
        Case("a field twice", #"{"fields": {"a": {}}}"#, .tooManyFields, part: 1) {
            text("x")(&$0)
            text("x")(&$0)
        },
        Case("a missing field", #"{"fields": {"a": {"atLeast": 1}}}"#, .missingField) { _ in },
        Case("a missing file", #"{"files": {"a": {"atLeast": 1}}}"#, .missingFile) { _ in },
        Case("too few files", #"{"files": {"a": {"atLeast": 2}}}"#, .missingFile, file(Sample.png, "image/png")),
        Case("enough files", #"{"files": {"a": {"atLeast": 2}}}"#, nil) {
            file(Sample.png, "image/png")(&$0)
            file(Sample.png, "image/png")(&$0)
        },
        Case("too many files", #"{"files": {"a": {"atMost": 1}}}"#, .tooManyFiles, part: 1) {
            file(Sample.png, "image/png")(&$0)
            file(Sample.png, "image/png")(&$0)
        },
        Case(
            "a file input left empty", #"{"files": {"a": {"types": ["image/*"]}}}"#, nil,
            file(Data(), "application/octet-stream", filename: "")),
        Case(
            "a file input left empty that must be filled", #"{"files": {"a": {"atLeast": 1}}}"#, .missingFile,
            file(Data(), "application/octet-stream", filename: "")),
        Case(
            "a file without a name, and with a byte", #"{"files": {"a": {"types": ["image/*"]}}}"#,
            .fileTypeNotAccepted,
            part: 0, file(Data([1]), "application/octet-stream", filename: "")),
    ]

    static let sizes: [Case] = [
        Case("as large as allowed", #"{"files": {"a": {"maximumBytes": 44}}}"#, nil, file(Sample.jpeg, "image/jpeg")),
        Case(
            "a byte over", #"{"files": {"a": {"maximumBytes": 43}}}"#, .fileTooLarge, part: 0,
            file(Sample.jpeg, "image/jpeg")),
        Case("as small as allowed", #"{"files": {"a": {"minimumBytes": 44}}}"#, nil, file(Sample.jpeg, "image/jpeg")),
        Case(
            "a byte short", #"{"files": {"a": {"minimumBytes": 45}}}"#, .fileTooSmall, part: 0,
            file(Sample.jpeg, "image/jpeg")),
        Case("nothing at all, allowed", #"{"files": {"a": {"maximumBytes": 0}}}"#, nil, file(Data(), "image/jpeg")),
        Case("all as large as allowed", #"{"files": {"a": {"atMost": 2}}, "maximumBytesOfAllFiles": 88}"#, nil) {
            file(Sample.jpeg, "image/jpeg")(&$0)
            file(Sample.jpeg, "image/jpeg")(&$0)
        },
        Case(
            "all a byte over", #"{"otherParts": "allowed", "maximumBytesOfAllFiles": 87}"#, .filesTooLarge, part: 2
        ) {
            file(Sample.jpeg, "image/jpeg")(&$0)
            text(String(repeating: "x", count: 1000))(&$0)
            file(Sample.jpeg, "image/jpeg")(&$0)
        },
        Case(
            "a wrong beginning before the size is over",
            #"{"files": {"a": {"maximumBytes": 32, "types": ["image/*"]}}}"#,
            .fileContentNotAccepted, part: 0, file(Sample.pdf, "image/png")),
        Case(
            "the size is over before the beginning is there",
            #"{"files": {"a": {"maximumBytes": 31, "types": ["image/*"]}}}"#, .fileTooLarge, part: 0,
            file(Sample.pdf, "image/png")),
    ]

    @Test
    func `a type can be a literal, and one that is none stops the program and says why`() async throws {
        #expect(["image/jpeg", "image/*"] == [MediaRange(.jpeg), .anyImage])
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let range: MediaRange = "jpeg"
            print(range)
        }
        let output = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(output.contains("Write type/subtype, such as image/jpeg, or image/* for all of a kind."))
    }

    /// Accepted types, the claim, the first bytes.
    private static func type(
        _ description: String, _ types: String, _ claim: String, _ bytes: Data, _ code: FormProblem.Code?
    ) -> Case {
        Case(
            description, #"{"files": {"a": {"types": \#(types)}}}"#, code, part: code == nil ? nil : 0,
            file(bytes, claim))
    }

    static let types: [Case] = [
        type("the named type", #"["image/png"]"#, "image/png", Sample.png, nil),
        type("in another spelling", #"["IMAGE/JPEG"]"#, "Image/JPG; q=1", Sample.jpeg, nil),
        type("a wildcard", #"["image/*"]"#, "image/png", Sample.png, nil),
        type("anything", #"["*/*"]"#, "image/png", Sample.html, nil),
        type("another type", #"["image/png"]"#, "image/jpeg", Sample.jpeg, .fileTypeNotAccepted),
        type("not of the kind", #"["image/*"]"#, "application/pdf", Sample.pdf, .fileTypeNotAccepted),
        type("a claim that begins alike", #"["image/*"]"#, "imagery/x", Sample.png, .fileTypeNotAccepted),
        type("one accepted picture for another", #"["image/*"]"#, "image/png", Sample.jpeg, nil),
        type("a false claim", #"["image/*"]"#, "image/png", Sample.pdf, .fileContentNotAccepted),
        type("a page for a picture", #"["image/png"]"#, "image/png", Sample.html, .fileContentNotAccepted),
        type("an unknown picture", #"["image/*"]"#, "image/x-new", Sample.html, .fileContentNotAccepted),
        type("an unknown picture, named", #"["image/x-new"]"#, "image/x-new", Sample.html, nil),
        type("nothing for a picture", #"["image/*"]"#, "image/png", Data(), .fileContentNotAccepted),
        type("a short beginning", #"["image/png"]"#, "image/png", Sample.png.prefix(8), nil),
        type(
            "a beginning that is too short", #"["image/png"]"#, "image/png", Sample.png.prefix(7),
            .fileContentNotAccepted),
        type("a text that begins as a text", #"["text/csv"]"#, "text/csv", Data("a,b".utf8), nil),
        type("a text that begins as an archive", #"["text/*"]"#, "text/csv", Sample.zip, .fileContentNotAccepted),
        type("a document in an archive", #"["application/epub+zip"]"#, "application/epub+zip", Sample.zip, nil),
    ]

    /// Contents that are a text for some bytes, and then are not.
    static let changes = [9, 31, 32, 33, 64, 255, 256, 300].flatMap { count in
        [Data(), Data(repeating: 0xFF, count: 40), Data("\u{FFFD}PNG\r\n\u{1A}\n".utf8)].map { end in
            Data(String(repeating: "abc ", count: 80).utf8.prefix(count)) + end
        }
    }

    @Test(arguments: changes)
    func `what the first bytes of a file show does not depend on how they arrive`(content: Data) throws {
        for limit in [40, 255, 256, 1000] {
            var form = MultipartForm(boundary: try Boundary("XX"))
            form.append(content, named: "a", filename: "a.png", contentType: "image/png")
            let json = #"{"files": {"a": {"maximumBytes": \#(limit), "types": ["image/*"]}}}"#
            #expect(try verdict(form, FormRules(json: Data(json.utf8))) != nil)
        }
    }

    private static func value(_ description: String, _ rule: String, _ value: String, _ code: FormProblem.Code?) -> Case
    {
        Case(description, #"{"fields": {"a": \#(rule)}}"#, code, part: code == nil ? nil : 0, text(value))
    }

    static let values: [Case] = [
        value("as long as allowed", #"{"maximumCharacters": 2}"#, "초코", nil),
        value("a character over", #"{"maximumCharacters": 1}"#, "초코", .fieldTooLong),
        value("as short as allowed", #"{"minimumCharacters": 2}"#, "🐕🐈", nil),
        value("a character short", #"{"minimumCharacters": 3}"#, "🐕🐈", .fieldTooShort),
        value("empty", #"{"maximumCharacters": 0}"#, "", nil),
        value("matching", #"{"pattern": "[a-z]+"}"#, "abc", nil),
        value("not matching", #"{"pattern": "[a-z]+"}"#, "abC", .patternMismatch),
        value("not matching yet", #"{"pattern": "[a-z]+"}"#, "", .patternMismatch),
        value("matching in part", #"{"pattern": "[a-z]+"}"#, "abc\n", .patternMismatch),
        value("too long for the pattern", #"{"pattern": "a*"}"#, String(repeating: "a", count: 1001), .fieldTooLong),
        value("one of the values", #"{"oneOf": ["dog", "cat", "do"]}"#, "do", nil),
        value("the beginning of a value", #"{"oneOf": ["dog", "cat"]}"#, "do", .valueNotAllowed),
        value("more than a value", #"{"oneOf": ["dog", "cat"]}"#, "dogs", .valueNotAllowed),
        value("in another case", #"{"oneOf": ["dog", "cat"]}"#, "Dog", .valueNotAllowed),
        value("empty, allowed", #"{"oneOf": ["", "cat"]}"#, "", nil),
        value("empty, not allowed", #"{"oneOf": ["cat"]}"#, "", .valueNotAllowed),
    ]

    @Test(arguments: parts + sizes + types + values)
    func `both sides find the same breach, on its side of the edge`(of test: Case) throws {
        var form = MultipartForm(boundary: try Boundary("XX"))
        test.fill(&form)
        let problem = try verdict(form, FormRules(json: Data(test.rules.utf8)))
        #expect(problem?.code == test.code, "\(problem?.description ?? "taken")")
        #expect(problem?.partIndex == test.part)
    }

    /// Rules for `a`, the content, and how far behind the content's beginning the breach is.
    static let offsets: [(rule: String, content: String, distance: Int)] = [
        (#"{"maximumCharacters": 2}"#, "초코야", 6),
        (#"{"pattern": "[a-z]+"}"#, "ab초", 2),
        (#"{"pattern": "[a-z]+!"}"#, "ab", 2),
        (#"{"oneOf": ["dog", "door"]}"#, "doz", 2),
        (#"{"oneOf": ["dog", "door"]}"#, "do", 2),
        (#"{"minimumCharacters": 4}"#, "초코", 6),
    ]

    @Test(arguments: offsets)
    func `a text is refused at the byte at which it goes wrong`(rule: String, content: String, distance: Int) throws {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append("before", named: "b")
        form.append(content, named: "a")
        let rules = try FormRules(json: Data(#"{"otherParts": "allowed", "fields": {"a": \#(rule)}}"#.utf8))
        let layout = try form.layout()
        let reader = try layout.reader()
        _ = try reader.readAll()
        #expect(try verdict(form, rules)?.offset == reader.contentRanges[1].lowerBound + Int64(distance))
    }

    /// Contents that are not UTF-8, and where they stop being so.
    static let malformed: [(bytes: [UInt8], offset: Int64)] = [
        ([0x61, 0xFF], 1), ([0xC0, 0xAF], 0), ([0x61, 0xE0, 0x80, 0x80], 1), ([0xED, 0xA0, 0x80], 0),
        ([0xF4, 0x90, 0x80, 0x80], 0), ([0x61, 0x62, 0xEC, 0xB4], 2), ([0xEC, 0xB4, 0x61], 0), ([0x80], 0),
    ]

    @Test(arguments: malformed)
    func `a text that is not UTF-8 is refused where it is to be text`(bytes: [UInt8], offset: Int64) throws {
        #expect(String(validating: bytes, as: UTF8.self) == nil)
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append(Data(bytes), named: "a", filename: nil, contentType: .plainText)
        let problem = try verdict(form, FormRules(fields: ["a": FormRules.Field(maximumCharacters: 9)]))
        let reader = try form.layout().reader()
        _ = try reader.readAll()
        #expect(problem?.code == .fieldNotUTF8)
        #expect(problem?.offset == reader.contentRanges[0].lowerBound + offset)
        #expect(try verdict(form, FormRules(fields: ["a": FormRules.Field()])) == nil)
    }

    @Test
    func `names are judged as a receiver reads them, and told without the value`() throws {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append("secret", named: "이름 \"x\"\r\n")
        let rules = try FormRules(fields: ["이름 \"x\"\r\n": FormRules.Field(pattern: TextPattern("[0-9]*"))])
        let problem = try #require(try verdict(form, rules))
        #expect(problem.code == .patternMismatch)
        #expect(problem.description.contains("이름"))
        #expect(!problem.description.contains("secret"))
        #expect(try verdict(form, FormRules())?.code == .unexpectedField)
    }

    @Test
    func `every breach is listed, one for each part, and then what is missing`() throws {
        var form = MultipartForm()
        form.append("x", named: "unknown")
        form.append("Bird", named: "kind")
        form.append(Sample.html, named: "petImage", filename: "a.jpg")
        let rules = try FormRules(json: Data(FormRulesJSONTests.json.utf8))
        #expect(
            try rules.problems(in: form).map(\.code) == [.valueNotAllowed, .fileContentNotAccepted, .missingField])
        let first = #expect(throws: FormProblem.self) { try rules.check(form) }
        #expect(first?.code == .valueNotAllowed)
    }

    @Test
    func `files on disk are judged by size and beginning, and texts in files by what they say`() throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append(fileAt: try folder.file("a.jpg", Sample.jpeg + Data(count: 100_000)), named: "a", metadata: .asIs)
        let text = FormPart(name: "t", content: .file(try folder.file("t.txt", Data("초코".utf8))))
        var field = text
        field.filename = nil
        field.contentType = .plainText
        form.append(field)
        let file = FormRules.File(maximumBytes: 100_044, types: [.anyImage])
        let field4 = FormRules.Field(pattern: try TextPattern("[가-힣]{2}"))
        #expect(try received(form, FormRules(fields: ["t": field4], files: ["a": file])) == nil)
        let smaller = FormRules.File(maximumBytes: 100_043)
        #expect(try received(form, FormRules(fields: ["t": field4], files: ["a": smaller]))?.code == .fileTooLarge)
        let other = FormRules.Field(pattern: try TextPattern("[a-z]+"))
        #expect(try received(form, FormRules(fields: ["t": other], files: ["a": file]))?.code == .patternMismatch)
    }

    private func received(_ form: MultipartForm, _ rules: FormRules) throws -> FormProblem? {
        let body = try form.layout().reader().readAll(by: 1 << 20)
        let problem = PostcardFormTests.received([body[...]], boundary: form.boundary.value, rules)
        #expect(try rules.problems(in: form).first == problem)
        return problem
    }

    @Test
    func `a stream is judged by its header and its length, and offsets behind an unknown one are 0`() throws {
        func form(length: Int64?, type: MediaType = .png) throws -> MultipartForm {
            var form = MultipartForm()
            let stream = FormStream(length: length) { AsyncStream<Data> { $0.finish() } }
            form.append(stream, named: "a", filename: "f", contentType: type)
            form.append("x", named: "a")
            return form
        }
        let rules = try FormRules(files: ["a": FormRules.File(maximumBytes: 10, types: [.anyImage])])
        #expect(try rules.problems(in: form(length: 10)).map(\.code) == [.fieldInsteadOfFile])
        #expect(try rules.problems(in: form(length: 11)).map(\.code) == [.fileTooLarge, .fieldInsteadOfFile])
        let behind = try rules.problems(in: form(length: nil, type: .pdf))
        #expect(behind.map(\.code) == [.fileTypeNotAccepted, .fieldInsteadOfFile])
        #expect(behind.last?.offset == 0)
    }

    @Test
    func `what was thrown once is thrown again`() throws {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append("x", named: "a")
        let body = try form.layout().reader().readAll()
        var parser = try FormParser(boundary: "XX")
        var checker = FormRuleChecker(try FormRules())
        var position = 0
        let event = try #require(try parser.nextEvent(in: body.span.bytes, at: &position))
        for _ in 0..<2 {
            #expect(throws: FormProblem.self) { try checker.check(event, in: body.span.bytes, readBy: parser) }
            #expect(throws: FormProblem.self) { try checker.formEnded(at: 0) }
        }
    }

    @Test
    func `every code for rules has a status of its kind`() {
        #expect(FormProblem.Code.fileTypeNotAccepted.status == 415)
        #expect(FormProblem.Code.fileContentNotAccepted.status == 415)
        #expect(FormProblem.Code.filesTooLarge.status == 413)
        #expect(FormProblem.Code.patternMismatch.status == 422)
    }
}
