import Foundation
import HTTPTypes
import PostcardForm
import PostcardSendingSupport
import Testing

@testable import PostcardClient

@Suite struct PresignedFormTests {
    private static let url = URL(filePath: "/")

    private static func decode(_ json: String) throws -> PresignedForm {
        try JSONDecoder().decode(PresignedForm.self, from: Data(json.utf8))
    }

    @Test func `what the SDKs give is decoded, and written the same way`() throws {
        let form = try Self.decode(#"{"url":"https://pets.s3.amazonaws.com/","fields":{"key":"a","policy":"e30="}}"#)
        #expect(form.kind == .post(fields: ["key": "a", "policy": "e30="]))
        #expect(form.key == "a")
        #expect(form.url.absoluteString == "https://pets.s3.amazonaws.com/")
        let url = "https://r2.example/pets/a%20b?X-Amz-Date=20260101T000000Z&X-Amz-Expires=600&X-Amz-Signature=1f"
        let put = try Self.decode(#"{"method":"PUT","url":"\#(url)","headers":{"x-amz-acl":"private"},"key":"a b"}"#)
        #expect(put.kind == .put(headerFields: ["x-amz-acl": "private"]))
        #expect(put.key == "a b")
        #expect(put.url.absoluteString == url)
        // A program that signs a PUT returns nothing but an address.
        #expect(try Self.decode(#"{"url":"\#(url)"}"#).kind == .put(headerFields: [:]))
        for form in [form, put] {
            #expect(try JSONDecoder().decode(PresignedForm.self, from: JSONEncoder().encode(form)) == form)
        }
        for form in [form, put] {
            #expect(!"\(form)".contains("1f") && !"\(form)".contains("policy"))
        }
    }

    @Test(arguments: [
        #"{"url":"https://a.example/"}"#, #"{"fields":{}}"#, #"{"url":"https://a.example/","method":"GET"}"#,
    ])
    func `what is no presigned form is an error`(json: String) {
        #expect(throws: DecodingError.self) { try Self.decode(json) }
    }

    @Test(
        arguments: [
            ("X-Amz-Date=20260101T000000Z&X-Amz-Expires=600&X-Amz-Signature=1", 1_767_226_200.0),
            ("x-amz-date=20260101T000000Z&x-amz-expires=0", 1_767_225_600),
            ("Signature=a&Expires=1767225600&AWSAccessKeyId=b", 1_767_225_600),
            ("X-Amz-Date=today&X-Amz-Expires=600", nil), ("X-Amz-Date=20260101T000000Z", nil), ("", nil),
            ("X-Amz-Date=20260101T000000Z&X-Amz-Expires=99999999999999999999", nil), ("Expires=1767225600", nil),
        ] as [(String, Double?)])
    func `a PUT ends when its signature does`(query: String, seconds: Double?) throws {
        let form = PresignedForm(putting: try #require(URL(string: "https://a.example/pets/1?\(query)")))
        #expect(form.expires?.timeIntervalSince1970 == seconds)
    }

    // MARK: - Checking

    private static func form(_ type: MediaType? = .jpeg, bytes: Int = 3, fields: [(String, String)] = [])
        -> MultipartForm
    {
        var form = MultipartForm()
        form.append(Data(repeating: 0, count: bytes), named: "photo", filename: "초코 \"1\".jpg", contentType: type)
        for (name, value) in fields { form.append(value, named: name) }
        return form
    }

    private static func layout(
        _ form: MultipartForm, _ presigned: PresignedForm, at now: Date? = Date()
    ) throws -> FormLayout {
        try presigned.layout(of: form, try form.layout(), at: now)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var conditions: [String] = []
        var signed: [String: String] = [:]
        var fields: [(String, String)] = []
        var type: MediaType? = .jpeg
        var bytes = 3
        /// What the message says; none if the form can be sent.
        var message: [String] = []
        /// Fields that are sent.
        var sent: [String] = []
    }

    static let cases: [Case] = [
        Case(testDescription: "nothing more than the SDK's", sent: ["key=photos/1"]),
        Case(
            testDescription: "a value that the policy fixes", conditions: [#"{"acl":"private"}"#], sent: ["acl=private"]
        ),
        Case(
            testDescription: "a value that the policy fixes by eq", conditions: [#"["EQ", "$acl", "private"]"#],
            sent: ["acl=private"]),
        Case(
            testDescription: "the status of success", conditions: [#"["starts-with","$success_action_status",""]"#],
            sent: ["success_action_status=201"]),
        Case(
            testDescription: "a type that the policy allows",
            conditions: [#"["starts-with","$Content-Type","image/"]"#],
            sent: ["Content-Type=image/jpeg"]),
        Case(
            testDescription: "a type that was signed", conditions: [#"{"content-type":"image/png"}"#],
            signed: ["Content-Type": "image/png"], sent: ["Content-Type=image/png"]),
        Case(
            testDescription: "another type", conditions: [#"["starts-with","$content-type","video/"]"#],
            message: [#"The field "content-type" is "image/jpeg""#, #"begin with "video/""#, "Send another value"]),
        Case(
            testDescription: "another type than the only one", conditions: [#"{"Content-Type":"image/png"}"#],
            message: [#"is "image/jpeg""#, #"be "image/png""#]),
        Case(
            testDescription: "a list of types", conditions: [#"["starts-with","$Content-Type","image/"]"#],
            fields: [("content-type", "image/png,text/html")], message: ["text/html", #"begin with "image/""#]),
        Case(
            testDescription: "a field that the policy allows", conditions: [#"["starts-with","$x-amz-meta-pet",""]"#],
            fields: [("x-amz-meta-pet", "초코")], sent: ["x-amz-meta-pet=초코"]),
        Case(
            testDescription: "a field that the store ignores", fields: [("x-ignore-pet", "초코")],
            sent: ["x-ignore-pet=초코"]),
        Case(
            testDescription: "a missing field with any value", conditions: [#"["starts-with","$x-amz-meta-pet",""]"#],
            message: [#"the field "x-amz-meta-pet", with any value"#, "before the file"]),
        Case(
            testDescription: "a field that no condition names", fields: [("name", "초코")],
            message: [#"No condition of the policy names the field "name""#, #"["starts-with", "$name", ""]"#]),
        Case(
            testDescription: "a value other than the signed one", conditions: [#"{"acl":"private"}"#],
            fields: [("ACL", "public-read")], message: [#"is "public-read""#, #"be "private""#]),
        Case(testDescription: "the least bytes", conditions: [#"["content-length-range",3,9]"#]),
        Case(testDescription: "the most bytes", conditions: [#"["content-length-range","0","3"]"#]),
        Case(
            testDescription: "a byte too few", conditions: [#"["content-length-range",4,9]"#],
            message: ["The file has 3 bytes", "accepts 4 to 9", "accepts smaller ones"]),
        Case(
            testDescription: "a byte too many", conditions: [#"["content-length-range",0,2]"#],
            message: ["The file has 3 bytes", "accepts 0 to 2", "Send a smaller file"]),
        Case(
            testDescription: "a range from large to small", conditions: [#"["content-length-range",9,2]"#],
            message: ["accepts 9 to 2"]),
        Case(testDescription: "a condition of an unknown kind", conditions: [#"["ends-with","$key","1"]"#, "[]"]),
        Case(
            testDescription: "a filename in the key", conditions: [#"["starts-with","$key","photos/초코 \"1\""]"#],
            signed: ["key": "photos/${filename}"],
            message: [#"The field "key" is "photos/초코 \"1\".jpg""#, #"be "photos/1""#]),
        Case(
            testDescription: "two conditions at once", conditions: [#"["content-length-range",0,2]"#],
            fields: [("name", "초코")], message: ["accepts 0 to 2", #"names the field "name""#]),
        Case(
            testDescription: "a policy that is none", signed: ["policy": "e30="],
            message: [#"The field "policy" has no policy"#, "Check what the server signs."]),
        Case(testDescription: "a policy that is not Base64", signed: ["policy": "초코"], message: ["it is not Base64"]),
    ]

    @Test(arguments: cases)
    func `a form is compared with its policy before anything is sent`(row: Case) throws {
        let presigned = Presigned.form(to: Self.url, row.conditions, adding: row.signed)
        let form = Self.form(row.type, bytes: row.bytes, fields: row.fields)
        guard row.message.isEmpty else {
            let error = try #require(throws: UploadError.self) { try Self.layout(form, presigned) }
            #expect(error.code == .brokenPolicy)
            #expect(error.delivery == .neverArrived)
            for words in row.message { #expect(error.message.contains(words), "\(error.message)") }
            return
        }
        let layout = try Self.layout(form, presigned)
        #expect(layout.contentType == form.contentType)
        #expect(layout.parts.first?.name == "key")
        #expect(layout.parts.last?.name == "file")
        #expect(layout.parts.count { $0.filename != nil } == 1)
        for field in row.sent {
            let name = field.prefix { $0 != "=" }
            #expect(layout.parts.contains { $0.name == name }, "\(layout.parts.map(\.name))")
        }
    }

    @Test func `the fields come first and the file last, with the values that were signed`() async throws {
        var form = Self.form()
        form.append("초코", named: "x-amz-meta-pet")
        let presigned = Presigned.form(
            to: Self.url, [#"["starts-with","$x-amz-meta-pet",""]"#, #"["starts-with","$Content-Type","image/"]"#])
        let bytes = try await Self.layout(form, presigned).bytes()
        let parts = Presigned.parts(bytes, contentType: form.contentType)
        let names = parts.map { $0.header.firstMatch(of: /name="([^"]+)"/).map { String($0.1) } }
        #expect(
            names == [
                "key", "policy", "x-amz-date", "x-amz-signature", "x-amz-meta-pet", "Content-Type", "file",
            ])
        let signed = Presigned.fields([
            #"["starts-with","$x-amz-meta-pet",""]"#, #"["starts-with","$Content-Type","image/"]"#,
        ])
        #expect(
            parts.map(\.content) == [
                "photos/1", signed["policy"] ?? "", "20260101T000000Z", "a1b2", "초코", "image/jpeg", "\0\0\0",
            ])
        #expect(parts.last?.header.contains("Content-Type: image/jpeg") == true)
    }

    @Test func `an expired form is not sent, and the error says by which clock`() throws {
        let post = Presigned.form(to: Self.url, expiration: Presigned.earlier)
        let put = PresignedForm(
            putting: try #require(
                URL(string: "https://a.example/1?X-Amz-Date=20010101T000000Z&X-Amz-Expires=9&X-Amz-Signature=1")))
        for presigned in [post, put] {
            #expect(presigned.hasExpired(at: Date()))
            let error = try #require(throws: UploadError.self) { try Self.layout(Self.form(), presigned) }
            #expect(error.code == .formExpired)
            #expect(
                error.message.contains("by the clock of this device, the presigned form expired at 2001-01-01T00:00"))
            #expect(error.advice?.contains("Get a new form") == true)
            // The store decides on a form that was just made.
            _ = try Self.layout(Self.form(), presigned, at: nil)
        }
        // At the very end it is over.
        let end = try #require(post.expires)
        #expect(post.hasExpired(at: end) && !post.hasExpired(at: end.addingTimeInterval(-1)))
    }

    @Test func `an object store gets one file, whose length is known`() throws {
        let presigned = Presigned.form(to: Self.url)
        var two = Self.form()
        two.append(Data([1]), named: "b", filename: "b.png")
        var stream = MultipartForm()
        stream.append(FormStream { AsyncStream<Data> { $0.finish() } }, named: "a", filename: "a.bin")
        for (form, words) in [
            (two, "and the form has 2"), (MultipartForm(), "and the form has 0"),
            (stream, "a stream of unknown length"),
        ] {
            let error = try #require(throws: UploadError.self) { try Self.layout(form, presigned) }
            #expect(error.code == .brokenPolicy)
            #expect(error.message.contains(words))
        }
    }

    // MARK: - Replacing

    /// The contents of the fields before the file.
    private static func texts(_ layout: FormLayout) async throws -> [String: String] {
        let parts = Presigned.parts(try await layout.bytes(), contentType: layout.contentType)
        let named = zip(layout.parts, parts).dropLast().map { ($0.name, $1.content) }
        return Dictionary(named, uniquingKeysWith: { "\($0), \($1)" })
    }

    @Test func `the app's texts win in a new form too, and the signed ones are the new form's`() async throws {
        let pet = #"["starts-with","$x-amz-meta-pet",""]"#
        let form = Self.form(fields: [("x-amz-meta-pet", "초코"), ("x-ignore-n", "1"), ("x-amz-meta-old", "2")])
        let old = Presigned.form(
            to: Self.url, [pet, #"["starts-with","$x-amz-meta-old",""]"#, #"{"acl":"private"}"#],
            adding: ["x-amz-meta-pet": "none"])
        let new = Presigned.form(
            to: Self.url, [pet, #"{"acl":"public-read"}"#],
            adding: ["x-amz-meta-pet": "nothing", "x-amz-signature": "c3d4"])
        let replaced = try await new.layout(
            replacing: try Self.layout(form, old), texts: PresignedForm.textNames(of: form))
        let texts = try await Self.texts(replaced)
        #expect(texts["x-amz-meta-pet"] == "초코" && texts["x-ignore-n"] == "1" && texts["x-amz-meta-old"] == nil)
        #expect(texts["x-amz-signature"] == "c3d4" && texts["acl"] == "public-read")
        #expect(replaced.contentLength == Int64(try await replaced.bytes().count))
    }

    @Test func `texts are not dropped in silence if a PUT takes the place of a form`() async throws {
        let form = Self.form(fields: [("x-amz-meta-pet", "초코")])
        let old = try Self.layout(form, Presigned.form(to: Self.url, [#"["starts-with","$x-amz-meta-pet",""]"#]))
        let error = try await #require(throws: UploadError.self) {
            try await Self.put().layout(replacing: old, texts: PresignedForm.textNames(of: form))
        }
        #expect(error.code == .brokenPolicy && error.message.contains(#""x-amz-meta-pet""#), "\(error)")
        let alone = try await Self.put().layout(replacing: old, texts: [])
        #expect(try await alone.bytes() == [0, 0, 0])
    }

    @Test func `a picture is made to fit the policy`() throws {
        #expect(try Presigned.form(to: Self.url, [#"["content-length-range",1,77]"#]).limits.maximumFileBytes == 77)
        #expect(try Presigned.form(to: Self.url).limits == FormSizeLimits())
    }

    // MARK: - PUT

    private static func put(_ query: String = "", _ fields: [String: String] = [:]) throws -> PresignedForm {
        PresignedForm(
            putting: try #require(URL(string: "https://a.example/pets/1?X-Amz-Signature=1\(query)")),
            headerFields: fields)
    }

    @Test func `a PUT sends the file alone`() async throws {
        let layout = try Self.layout(Self.form(), try Self.put())
        #expect(try await layout.bytes() == [0, 0, 0])
        #expect(layout.contentType == "image/jpeg")
        #expect(layout.contentLength == 3)
        // With the type that was signed.
        let signed = try Self.put("&X-Amz-SignedHeaders=content-type%3Bhost", ["Content-Type": "image/png"])
        #expect(try Self.layout(Self.form(), signed).contentType == "image/png")
        #expect(signed.requestFields == [.contentType: "image/png"])
        let empty = try Self.layout(Self.form(bytes: 0), try Self.put())
        #expect(try await empty.bytes() == [])
    }

    @Test(
        arguments: [
            ("&X-Amz-SignedHeaders=host%3Bx-amz-acl", [:], "covers the header field x-amz-acl"),
            ("&X-Amz-SignedHeaders=content-length%3Bhost", ["Content-Length": "4"], "signed a Content-Length of 4"),
        ] as [(String, [String: String], String)])
    func `a PUT that the store would refuse is not sent`(
        query: String, fields: [String: String], words: String
    ) throws {
        let put = try Self.put(query, fields)
        let error = try #require(throws: UploadError.self) { try Self.layout(Self.form(), put) }
        #expect(error.code == .brokenPolicy)
        #expect(error.message.contains(words), "\(error.message)")
        let field = try #require(throws: UploadError.self) {
            try Self.layout(Self.form(fields: [("name", "초코")]), try Self.put())
        }
        #expect(field.message.contains(#"the form has a field "name""#))
    }
}
