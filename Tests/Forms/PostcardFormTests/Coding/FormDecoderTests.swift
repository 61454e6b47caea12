import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("Decoding a value from a form")
struct FormDecoderTests {
    private let decoder = FormDecoder()

    static let lists: [(lines: [String], tags: [String])] = [
        ([], []),
        (["tags=a"], ["a"]),
        (["tags=a", "other=x", "tags=b"], ["a", "b"]),
        (["tags[]=a"], ["a"]),
        (["tags[]=a", "tags[]=b"], ["a", "b"]),
        (["tags[0]=a", "tags[1]=b"], ["a", "b"]),
        (["tags[7]=c", "tags[0]=a", "tags[3]=b"], ["a", "b", "c"]),
        (["tags[10]=c", "tags[9]=b", "tags[9223372036854775807]=d"], ["b", "c", "d"]),
        (["tags="], [""]),
    ]

    @Test(arguments: lists)
    func `lists are understood in every way that they are written`(lines: [String], tags: [String]) throws {
        struct Tagged: Decodable { var tags: [String] }
        #expect(try decoder.decode(Tagged.self, from: ReceivedForm(lines)).tags == tags)
    }

    @Test
    func `objects in a list need indices, which may come in any order, with gaps`() throws {
        struct Pet: Decodable, Equatable {
            var name: String
            var tags: [Int]
        }
        let pets = try decoder.decode(
            [String: [Pet]].self, "pets[5][name]=b", "pets[2][tags][]=2", "pets[2][name]=a", "pets[2][tags][]=1",
            "pets[5][tags][1]=4", "pets[5][tags][0]=3")
        #expect(pets == ["pets": [Pet(name: "a", tags: [2, 1]), Pet(name: "b", tags: [3, 4])]])
    }

    static let bools: [(text: String, value: Bool)] = [
        ("on", true), ("true", true), ("True", true), ("1", true), ("YES", true), ("false", false), ("0", false),
        ("off", false), ("no", false),
    ]

    @Test(arguments: bools)
    func `truth values are read as browsers and languages write them`(text: String, value: Bool) throws {
        #expect(try decoder.decode([String: Bool].self, "a=\(text)") == ["a": value])
    }

    @Test
    func `a checkbox that is not checked is false, and may be made an error`() throws {
        struct Box: Decodable {
            var isChecked: Bool
            var isKnown: Bool?
        }
        let box = try decoder.decode(Box.self)
        #expect(!box.isChecked)
        #expect(box.isKnown == nil)
        var strict = FormDecoder()
        strict.absentBoolIsFalse = false
        let error = #expect(throws: FormDecodingError.self) { try strict.decode(Box.self) }
        #expect(error?.code == .missing)
        #expect(error?.path == "isChecked")
    }

    struct Inputs: Decodable, Equatable {
        var text: String?
        var number: Int?
        var date: Date?
        var url: URL?
        var file: FormFile?
        var data: Data?
        var files: [FormFile]
        var size: RoundTripTests.Size?
        var numbers: [Int?]
        var texts: [String?]
    }

    @Test
    func `inputs that were left empty are nil, but for a text`() throws {
        let inputs = try decoder.decode(
            Inputs.self, "text=", "number=", "date=", "url=", "file=@:", "data=@:", "files=@:", "size=", "numbers=1",
            "numbers=", "texts=", "texts=a")
        #expect(inputs == Inputs(text: "", files: [], numbers: [1, nil], texts: ["", "a"]))
    }

    @Test
    func `inputs that are not there are nil`() throws {
        #expect(try decoder.decode(Inputs.self) == Inputs(files: [], numbers: [], texts: []))
    }

    @Test
    func `the same holds where a type asks for an optional without saying that it may be absent`() throws {
        struct Asking<Value: Decodable>: Decodable { var a: Value }
        #expect(try decoder.decode(Asking<String?>.self, "a=").a == "")
        #expect(try decoder.decode(Asking<String?>.self).a == nil)
        #expect(try decoder.decode(Asking<Int?>.self, "a=").a == nil)
        #expect(try decoder.decode(Asking<Int?>.self, "a=1").a == 1)
        #expect(try decoder.decode(Asking<FormFile?>.self).a == nil)
    }

    @Test
    func `what of a value is not there is missing by its own name`() {
        struct Outer: Decodable {
            var inner: Inner
            struct Inner: Decodable { var name: String }
        }
        let error = #expect(throws: FormDecodingError.self) { try decoder.decode(Outer.self) }
        #expect(error?.path == "inner[name]")
    }

    @Test
    func `fields that nobody asks for do no harm, whatever they are`() throws {
        let decoded = try decoder.decode(
            FormEncoderTests.Owner.self, "name=a", "x=1", "x[y]=2", "p[][q]=1", "z[=", "z]=", "[w]=", "v[u]w=",
            "u[[t]]=")
        #expect(decoded == FormEncoderTests.Owner(name: "a", phone: nil))
    }

    @Test
    func `a name with brackets that are not pairs is a key as it stands`() throws {
        let names = ["a[", "a]", "[a]", "a[b]c", "a[[b]]", "a[b", "a][b"]
        let decoded = try decoder.decode([String: String].self, from: ReceivedForm(names.map { "\($0)=1" }))
        #expect(decoded == Dictionary(uniqueKeysWithValues: names.map { ($0, "1") }))
    }

    @Test
    func `what curl and browsers send in one form`() throws {
        struct Post: Decodable {
            var title: String
            var published: Date
            var at: Date
            var picture: [FormFile]
            var attachment: Data
            var agree: Bool
        }
        let post = try decoder.decode(
            Post.self, "title=a\r\nb", "published=2026-11-20", "at=2026-11-20T12:30", "picture=@1.jpg:one",
            "picture=@2.jpg:two", "attachment=@a.bin:bytes", "agree=on")
        #expect(post.title == "a\r\nb")
        #expect(post.published == Date(timeIntervalSince1970: 1_795_132_800))
        #expect(post.at == Date(timeIntervalSince1970: 1_795_177_800))
        #expect(post.picture.map(\.filename) == ["1.jpg", "2.jpg"])
        #expect(try post.picture.map { try $0.data() } == [Data("one".utf8), Data("two".utf8)])
        #expect(post.attachment == Data("bytes".utf8))
        #expect(post.agree)
    }

    @Test
    func `a file that the receiver wrote to disk is left there, or read as data`() throws {
        let folder = try TemporaryFolder()
        let url = try folder.file("spooled", [1, 2, 3])
        let header = try #require(try ReceivedForm(["a=@a.jpg:"]).parts.first).header
        let form = ReceivedForm(parts: [ReceivedForm.Part(header: header, content: .file(url))])
        let file = try #require(try decoder.decode([String: FormFile].self, from: form)["a"])
        #expect(file.content == .file(url))
        #expect(try file.data() == Data([1, 2, 3]))
        #expect(try decoder.decode([String: Data].self, from: form) == ["a": Data([1, 2, 3])])
        try FileManager.default.removeItem(at: url)
        let error = #expect(throws: FormDecodingError.self) { try decoder.decode([String: Data].self, from: form) }
        #expect(error?.code == .fileUnreadable)
    }

    @Test
    func `what a value is told beside its coding reaches it`() throws {
        struct Asking: Decodable {
            static let key = CodingUserInfoKey(rawValue: "answer")
            let answer: Int?

            init(from decoder: any Decoder) throws {
                answer = Asking.key.flatMap { decoder.userInfo[$0] as? Int }
            }
        }
        var decoder = FormDecoder()
        decoder.userInfo[try #require(Asking.key)] = 42
        #expect(try decoder.decode([String: Asking].self, "a=1")["a"]?.answer == 42)
    }
}
