import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("Encoding a value as a form")
struct FormEncoderTests {
    struct Owner: Codable, Equatable {
        var name: String
        var phone: String?
    }

    struct Pet: Codable, Equatable {
        var name: String
        var owner: Owner
        var tags: [String]
        var walks: [Owner]
        var weights: [String: Double]
        var nickname: String?
    }

    private let pet = Pet(
        name: "초코", owner: Owner(name: "민지", phone: nil), tags: ["a", "b"],
        walks: [Owner(name: "x", phone: "1"), Owner(name: "y", phone: nil)], weights: ["2026": 4.5], nickname: nil)

    static let listStyles: [(style: FormEncoder.ListStyle, tags: [String])] = [
        (.repeatedName, ["tags=a", "tags=b"]),
        (.emptyBrackets, ["tags[]=a", "tags[]=b"]),
        (.indices, ["tags[0]=a", "tags[1]=b"]),
    ]

    @Test(arguments: listStyles)
    func `properties become fields, in every list style; what has keys is numbered in each`(
        style: FormEncoder.ListStyle, tags: [String]
    ) throws {
        var encoder = FormEncoder()
        encoder.listStyle = style
        let walks = ["walks[0][name]=x", "walks[0][phone]=1", "walks[1][name]=y"]
        #expect(
            try encoder.lines(pet) == ["name=초코", "owner[name]=민지"] + tags + walks + ["weights[2026]=4.5"])
    }

    static let matrices: [(style: FormEncoder.ListStyle, lines: [String])] = [
        (.repeatedName, ["m[0]=1", "m[0]=2", "m[1]=3"]),
        (.emptyBrackets, ["m[0][]=1", "m[0][]=2", "m[1][]=3"]),
        (.indices, ["m[0][0]=1", "m[0][1]=2", "m[1][0]=3"]),
    ]

    @Test(arguments: matrices)
    func `a list in a list is numbered on the outside`(style: FormEncoder.ListStyle, lines: [String]) throws {
        var encoder = FormEncoder()
        encoder.listStyle = style
        #expect(try encoder.lines(["m": [[1, 2], [3]]]) == lines)
    }

    static let bools: [(style: FormEncoder.BoolStyle, lines: [String])] = [
        (.trueFalse, ["yes=true", "no=false"]), (.oneZero, ["yes=1", "no=0"]), (.checkbox, ["yes=on"]),
    ]

    @Test(arguments: bools)
    func `truth values are written in the style that was chosen`(style: FormEncoder.BoolStyle, lines: [String]) throws {
        struct Answers: Encodable {
            var yes = true
            var no = false
        }
        var encoder = FormEncoder()
        encoder.boolStyle = style
        #expect(try encoder.lines(Answers()) == lines)
    }

    @Test
    func `data is a file as browsers send bytes without a name, or base64`() throws {
        let document = Data("%PDF-1.7".utf8)
        let part = try #require(try MultipartForm(encoding: ["document": document]).layout().parts.first)
        #expect(part.filename == "blob")
        #expect(part.contentType == .pdf)
        var encoder = FormEncoder()
        encoder.dataStyle = .base64
        #expect(try encoder.lines(["document": document]) == ["document=JVBERi0xLjc="])
    }

    @Test
    func `files are parts with their name and type, in memory and on disk, alone and in lists`() throws {
        struct Album: Encodable {
            var cover: FormFile
            var pictures: [FormFile]
            var missing: FormFile?
        }
        let folder = try TemporaryFolder()
        let onDisk = try folder.file("제주 바다.jpg", Array("disk".utf8))
        let album = Album(
            cover: FormFile(Data("c".utf8), filename: "c.heic", contentType: .jpeg),
            pictures: [FormFile(at: onDisk), FormFile(Data("m".utf8), filename: "m.png")])
        let form = try MultipartForm(encoding: album)
        #expect(
            try ReceivedForm(sent: form).lines == [
                "cover=@c.heic:c", "pictures=@제주 바다.jpg:disk", "pictures=@m.png:m",
            ])
        #expect(try form.layout().parts.map(\.contentType) == [.jpeg, .jpeg, .png])
    }

    @Test
    func `a boundary of the caller's own is the form's`() throws {
        let boundary = try Boundary("XX")
        #expect(try MultipartForm(encoding: ["a": 1], boundary: boundary).boundary == boundary)
    }

    @Test
    func `what a value is told beside its coding reaches it`() throws {
        struct Asking: Encodable {
            static let key = CodingUserInfoKey(rawValue: "answer")

            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: AnyKey.self)
                let answer = Asking.key.flatMap { encoder.userInfo[$0] as? Int }
                try container.encode(answer, forKey: AnyKey("a"))
            }
        }
        var encoder = FormEncoder()
        encoder.userInfo[try #require(Asking.key)] = 42
        #expect(try encoder.lines(Asking()) == ["a=42"])
    }
}

/// A key with any value.
struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { Int(stringValue) }

    init(_ key: String) {
        stringValue = key
    }

    init(stringValue: String) {
        self.stringValue = stringValue
    }

    init(intValue: Int) {
        stringValue = String(intValue)
    }
}
