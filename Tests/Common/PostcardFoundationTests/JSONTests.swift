import Foundation
import Testing

@testable import PostcardFoundation

struct JSONTests {
    private static func json(_ text: String) throws -> JSON { try JSON(text.utf8) }

    private static func string(_ text: String) -> JSON { .string(Array(text.utf8)) }

    /// Texts and their values.
    static let values: [(text: String, value: JSON)] = [
        ("null", .null), (" true\n", .bool(true)), ("\u{FEFF}false", .bool(false)), ("-0", .number(Array("-0".utf8))),
        ("1.5e-3", .number(Array("1.5e-3".utf8))), ("[]", .array([])), ("{}", .object([])), ("\"\"", string("")),
        (#""\"\\\/\b\f\n\r\t""#, string("\"\\/\u{8}\u{C}\n\r\t")), (#""\u00e9\u0041""#, string("éA")),
        (#""\ud83d\ude00""#, string("😀")), (#""\ud800x\udc00""#, string("\u{FFFD}x\u{FFFD}")),
        (#""\ud800\ud83d\ude00""#, string("\u{FFFD}😀")),
        ("[1 , [ 2 ] ]", .array([.number([49]), .array([.number([50])])])),
        (
            #"{"a":1,"":{"b":null},"a":2}"#,
            .object([
                .init(name: [97], value: .number([49])),
                .init(name: [], value: .object([.init(name: [98], value: .null)])),
                .init(name: [97], value: .number([50])),
            ])
        ),
    ]

    @Test(arguments: values)
    func `values are read`(text: String, value: JSON) throws {
        #expect(try Self.json(text) == value)
    }

    /// Texts that are no JSON, and the offset of the first wrong byte.
    static let malformed: [(text: String, offset: Int)] = [
        ("", 0), ("nul", 0), ("[1,]", 3), ("[1 2]", 3), ("{\"a\"}", 4), ("{a:1}", 1), ("{\"a\":1,}", 7), ("01", 1),
        ("-", 1), ("1.", 2), ("1e", 2), (".5", 0), ("+1", 0), ("\"", 1), ("\"a\nb\"", 2), (#""\x""#, 2),
        (#""\u12g4""#, 5),
        ("true false", 5), ("[", 1), ("]", 0), ("'a'", 0), ("NaN", 0), ("[1}", 2), ("/* */1", 0), ("\u{B}1", 0),
    ]

    @Test(arguments: malformed)
    func `what is no JSON is refused at its first wrong byte`(text: String, offset: Int) {
        let error = #expect(throws: JSON.Malformed.self) { try Self.json(text) }
        #expect(error == JSON.Malformed(reason: .notJSON, offset: offset))
    }

    @Test func `a string that is not UTF-8 is refused`() {
        #expect(throws: JSON.Malformed.self) { try JSON([0x22, 0xFF, 0x22]) }
        #expect(throws: JSON.Malformed.self) { try JSON([0x22, 0xED, 0xA0, 0x80, 0x22]) }
    }

    @Test(arguments: ["[", "{\"a\":"])
    func `values may be as deep as the limit`(begin: String) throws {
        let end = begin == "[" ? "]" : "}"
        func nested(_ depth: Int) -> String {
            String(repeating: begin, count: depth) + "1" + String(repeating: end, count: depth)
        }
        _ = try Self.json(nested(512))
        let error = #expect(throws: JSON.Malformed.self) { try Self.json(nested(513)) }
        #expect(error == JSON.Malformed(reason: .tooDeep, offset: 512 * begin.utf8.count))
        #expect(throws: JSON.Malformed.self) { try JSON(nested(3).utf8, maximumDepth: 2) }
    }

    @Test func `members are found by their last value, and are of the type that is asked for`() throws {
        let json = try Self.json(#"{"n":12,"n":13,"f":1.5,"w":2.0,"t":"초코","l":[1],"big":1e300}"#)
        #expect(json["n"]?.integer == 13)
        #expect(json["f"]?.integer == nil)
        #expect(json["f"]?.double == 1.5)
        #expect(json["w"]?.integer == 2)
        #expect(json["big"]?.integer == nil)
        #expect(json["t"]?.text == "초코")
        #expect(json["t"]?.double == nil)
        #expect(json["l"]?.elements == [.number([49])])
        #expect(json["none"] == nil)
        #expect(json["l"]?["n"] == nil)
    }

    @Test func `names and texts with too many marks are known, however they are written`() throws {
        let marks = String(repeating: "\u{300}", count: 31)
        let escaped = String(repeating: #"\u0300"#, count: 31)
        for text in ["{\"\(marks)\":1}", "[{\"a\":{\"\(escaped)\":1}}]", "\"\(marks)\"", "{\"a\":[\"\(escaped)\"]}"] {
            #expect(try !Self.json(text).isStreamSafe)
            #expect(JSON.reasonNotToDecode(text.utf8)?.contains("combining marks") == true)
        }
        #expect(JSON.reasonNotToDecode("{\"a\":\"\u{3b1}\\u0300\"}".utf8) == nil)
        #expect(JSON.reasonNotToDecode("{\"a\":\"제주도, é and \\n\"}".utf8) == nil)
        #expect(JSON.reasonNotToDecode("<html>".utf8) == nil)
        // Foundation would read it.
        #expect(
            JSON.reasonNotToDecode(Data("\u{FEFF}[1]".utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] })) != nil)
        #expect(try Self.json("\"\(escaped)\"").text == marks.streamSafe)
        #expect(try Self.json("{\"é\":\"é\"}").isStreamSafe)
    }
}
