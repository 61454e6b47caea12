import HTTPTypes
import PostcardForm
import Testing

@testable import postcard

@Suite("An argument of -F")
struct FormArgumentTests {
    static let arguments:
        [(argument: String, name: String, source: FormArgument.Source, type: String?, filename: String?)] = [
            ("name=초코", "name", .text("초코"), nil, nil),
            ("name=", "name", .text(""), nil, nil),
            ("a=b=c", "a", .text("b=c"), nil, nil),
            ("a= b ", "a", .text(" b "), nil, nil),
            ("a={\"b\":1}; type=application/json", "a", .text("{\"b\":1}"), "application/json", nil),
            ("a=\"x\" ;TYPE=text/html", "a", .text("x"), "text/html", nil),
            ("p=@cat.txt ; filename=x.png", "p", .file(path: "cat.txt"), nil, "x.png"),
            ("a=🏻", "a", .text("🏻"), nil, nil),
            ("a=x\u{37E}type=text/html", "a", .text("x\u{37E}type=text/html"), nil, nil),
            ("a=x;y;z=1", "a", .text("x;y;z=1"), nil, nil),
            ("a={\"b\":1};type=application/json", "a", .text("{\"b\":1}"), "application/json", nil),
            ("a=\"x;type=y\"", "a", .text("x;type=y"), nil, nil),
            ("a=\"yes\" she said", "a", .text("\"yes\" she said"), nil, nil),
            ("a=\"unclosed", "a", .text("\"unclosed"), nil, nil),
            ("a=b;filename=c.txt", "a", .text("b"), nil, "c.txt"),
            ("p=@cat.jpg", "p", .file(path: "cat.jpg"), nil, nil),
            ("p=@-", "p", .file(path: "-"), nil, nil),
            (
                "p=@/a b/제주 바다.jpg;type=image/png;filename=\"a\\\"b;c.png\"", "p", .file(path: "/a b/제주 바다.jpg"),
                "image/png", "a\"b;c.png"
            ),
            ("p=@\"a;type=b.jpg\";filename=c", "p", .file(path: "a;type=b.jpg"), nil, "c"),
            ("p=@\"a,b\"", "p", .file(path: "a,b"), nil, nil),
            ("p=@a;b.jpg", "p", .file(path: "a;b.jpg"), nil, nil),
            ("a=(: hello", "a", .text("(: hello"), nil, nil),
            ("a=)", "a", .text(")"), nil, nil),
            ("t=<notes.txt;type=text/plain", "t", .textOfFile(path: "notes.txt"), "text/plain", nil),
        ]

    @Test(arguments: arguments)
    func `it is read as curl reads it, and loses nothing of a text`(
        argument: String, name: String, source: FormArgument.Source, type: String?, filename: String?
    ) throws {
        let read = try FormArgument(argument)
        #expect(read.name?.text == name)
        #expect(read.parts.map(\.source) == [source])
        #expect(read.parts.first?.contentType?.value == type)
        #expect(read.parts.first?.filename?.text == filename)
    }

    @Test
    func `a comma separates files, each with its attributes`() throws {
        let read = try FormArgument("p=@a.jpg;type=image/png , \"b,c\";filename=d,e")
        #expect(read.parts.map(\.source) == [.file(path: "a.jpg"), .file(path: "b,c"), .file(path: "e")])
        #expect(read.parts.map { $0.contentType?.value } == ["image/png", nil, nil])
        #expect(read.parts.map { $0.filename?.text } == [nil, "d", nil])
    }

    @Test(.timeLimit(.minutes(1)))
    func `many blanks in a row are read once`() throws {
        let blanks = String(repeating: " ", count: 1_000_000)
        let rows: [(argument: String, sources: [FormArgument.Source])] = [
            ("a=x\(blanks)y", [.text(ArgumentText("x\(blanks)y".utf8))]), ("a=x\(blanks);type=text/html", [.text("x")]),
            ("a=x;\(blanks)type=\(blanks)text/html", [.text("x")]),
            ("p=@x\(blanks),\(blanks)y", [.file(path: "x"), .file(path: "y")]),
        ]
        for (index, row) in rows.enumerated() {
            // Not in the expectation, which would print a million blanks.
            let isRead = try FormArgument(row.argument).parts.map(\.source) == row.sources
            #expect(isRead, "row \(index)")
        }
    }

    @Test
    func `values of any bytes pass the argument parser, and so do values that begin with a dash`() throws {
        let given: [[UInt8]] = [
            Array("-F".utf8), [0x61, 0x3D, 0xFF], Array("-F-=v".utf8), Array("--form-string=a=@b".utf8),
            Array("-XPUT".utf8), Array("-H".utf8), Array("-x: y".utf8), Array("-uF".utf8), Array("--".utf8),
            Array("-F".utf8),
        ]
        let read = try CommandLineArguments.readable(given)
        #expect(read.suffix(8).dropFirst() == ["-X", "PUT", "--header=-x: y", "-u", "F", "--", "-F"].suffix(7))
        let values = read.prefix(3).compactMap { RawValue(argument: String($0.dropFirst("--form=".count))) }
        #expect(values.map(\.text.bytes) == [[0x61, 0x3D, 0xFF], Array("-=v".utf8), Array("a=@b".utf8)])
        #expect(values.map(\.isLiteral) == [false, false, true])
        #expect(throws: (any Error).self) { try CommandLineArguments.readable([[0xFF]]) }
    }

    @Test
    func `a header field may be given to a part`() throws {
        let read = try FormArgument("a=b;headers=\"X-Order: 5\";type=text/html")
        let part = try #require(read.parts.first)
        #expect(part.headers.fields.map { "\($0.name): \($0.value)" } == ["X-Order: 5"])
        #expect(part.contentType?.value == "text/html")
    }

    @Test(arguments: [
        "", "name", "a=@", "a=<", "a=@b;type=jpeg", "a=b;headers=none", "a=b;encoder=rot13", "a=@b,",
        "a=@\"b\";type=a/b;type=c",
    ])
    func `what cannot be understood is an error`(argument: String) {
        #expect(throws: (any Error).self) { try FormArgument(argument) }
    }
}

@Suite("A number of bytes")
struct ByteCountTests {
    @Test(
        arguments: [
            ("0", 0), ("1500", 1500), ("100MB", 100_000_000), ("1.5 kB", 1500), ("4GiB", 4 << 30), ("2k", 2048),
            ("7 b", 7),
        ] as [(String, Int64)])
    func `it is read with its unit`(text: String, bytes: Int64) {
        #expect(ByteCount(argument: text)?.bytes == bytes)
    }

    @Test(arguments: ["", "-1", "MB", "1 MiBs", "1.5", "9999999 TB", "1..2kB", "nan", "١"])
    func `anything else is none`(text: String) {
        #expect(ByteCount(argument: text) == nil)
    }
}
