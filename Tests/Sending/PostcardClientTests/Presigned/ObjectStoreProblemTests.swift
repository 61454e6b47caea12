import Foundation
import HTTPTypes
import PostcardForm
import Testing

@testable import PostcardClient

@Suite struct ObjectStoreProblemTests {
    private static func response(_ status: Int, _ body: String, _ fields: HTTPFields = [:]) -> UploadResponse {
        UploadResponse(status: HTTPResponse.Status(code: status), headerFields: fields, body: Data(body.utf8))
    }

    /// What stores answer, each with its advice.
    static let errors: [(code: String, status: Int, message: String, advice: String)] = [
        ("AccessDenied", 403, "Invalid according to Policy: Policy expired.", "The form has expired."),
        ("AccessDenied", 403, "Request has expired", "The form has expired."),
        ("AccessDenied", 403, "Invalid according to Policy: Extra input fields: name", "No condition of the policy"),
        (
            "AccessDenied", 403, #"Invalid according to Policy: Policy Condition failed: ["eq", "$acl", "private"]"#,
            "breaks a condition"
        ),
        ("AccessDenied", 403, "Policy missing condition: acl", "for it."),
        ("AccessDenied", 403, "", "The store does not say why."),
        ("AccessDenied", 403, "Access Denied", "Allow it to"),
        ("ExpiredToken", 400, "The provided token has expired.", "fresh credentials"),
        ("InvalidAccessKeyId", 403, "", "does not know the key"),
        ("SignatureDoesNotMatch", 403, "", "exactly as they were signed"),
        ("RequestTimeTooSkewed", 403, "", "by NTP"),
        ("InvalidPolicyDocument", 400, "", "not one that the store can read"),
        ("EntityTooLarge", 400, "", "a larger content-length-range"),
        ("EntityTooSmall", 400, "", "Check that it is whole"),
        ("IncorrectNumberOfFilesInPostRequest", 400, "", "must have one file"),
        ("MaxPostPreDataLengthExceeded", 400, "", "20 KB"),
        ("MalformedPOSTRequest", 400, "", "--against s3"),
        ("UserKeyMustBeSpecified", 400, "", "lacks a field"),
        ("InvalidArgument", 400, "", "The store says which"),
        ("MissingContentLength", 411, "", "needs the length first"),
        ("MethodNotAllowed", 405, "", "have the server sign a PUT"),
        ("NoSuchBucket", 404, "", "no such bucket"),
        ("PermanentRedirect", 301, "", "another region"),
        ("KeyTooLongError", 400, "", "1,024 bytes"),
        ("MetadataTooLarge", 400, "", "2 KB"),
        ("BadDigest", 400, "", "checksum of an empty body"),
        ("PreconditionFailed", 412, "", "another key"),
        ("QuotaExceeded", 403, "", "no room"),
        ("RequestTimeout", 400, "", "too slowly"),
        ("SlowDown", 503, "", "busy"),
    ]

    @Test(arguments: errors)
    func `each error of a store has its own advice`(
        code: String, status: Int, message: String, advice: String
    ) throws {
        let body = """
            <?xml version="1.0" encoding="UTF-8"?>
            <Error><Code>\(code)</Code><Message>\(message.replacing("\"", with: "&quot;"))</Message>\
            <RequestId>4442587FB7D0A2F9</RequestId><MaxSizeAllowed>77</MaxSizeAllowed></Error>
            """
        let response = Self.response(status, body, [.contentType: "application/xml"])
        let error = UploadError.refusedForm(response, by: try #require(URL(string: "https://pets.example/")))
        let problem = try #require(error.objectStoreProblem)
        #expect(problem.code == code)
        #expect(problem.message == message)
        #expect(problem.requestID == "4442587FB7D0A2F9")
        #expect(problem.maximumBytes == 77)
        #expect(error.advice?.contains(advice) == true, "\(error.advice ?? "")")
        #expect(error.message.hasSuffix(message.isEmpty ? ": \(code)" : ": \(code): \(message)"), "\(error.message)")
        #expect(problem.isExpiration == (advice.contains("expired") || code == "ExpiredToken"))
    }

    @Test func `no two kinds of errors share their advice but those that mean the same`() {
        let advice = Set(Self.errors.map(\.advice))
        #expect(advice.count == Self.errors.count - 1)
    }

    @Test(arguments: [
        ("<Error><Code>A</Code></Error>", "A", ""),
        (
            "\u{FEFF}<Error xmlns='x'><Code a='b'>A</Code><Message>&lt;&#xCD08;&#53076;&gt; &amp;amp; &x;</Message>",
            "A", ""
        ),
        ("<Error><Code>A</Code><Message>1 < 2</Message></Error>", "A", ""),
        ("<Error><Code>A</Code><Code>B</Code>", "A", ""),
    ])
    func `XML that is slightly wrong is read all the same`(body: String, code: String, message: String) throws {
        #expect(try #require(ObjectStoreProblem(Data(body.utf8))).code == code)
    }

    @Test func `escaped characters are characters`() throws {
        let body = "<Error><Code>A</Code><Message>&lt;&#xCD08;&#53076;&gt; &amp;amp; &x; &#1114112; &</Message></Error>"
        #expect(try #require(ObjectStoreProblem(Data(body.utf8))).message == "<초코> &amp; &x; &#1114112; &")
    }

    @Test(arguments: [
        "", "<html><title>403</title></html>", "{\"Code\":\"<Code>A</Code>\"}", "<Code></Code>", "<Error>", "<",
    ])
    func `what is no error of a store is none`(body: String) {
        #expect(Self.response(403, body).objectStoreProblem == nil)
    }

    @Test func `a success is no problem`() {
        #expect(Self.response(200, "<Error><Code>A</Code></Error>").objectStoreProblem == nil)
    }

    @Test(
        arguments: [
            (201, "<PostResponse><Key>a &amp; b</Key><ETag>&quot;1f&quot;</ETag></PostResponse>", [:], "a & b", "1f"),
            (204, "", [.eTag: "\"1f\""], "photos/초코.jpg", "1f"), (200, "", [:], "photos/초코.jpg", nil),
            (303, "", [.location: "https://a.example/?bucket=b&key=a%20b&etag=%221f%22"], "a b", "1f"),
        ] as [(Int, String, HTTPFields, String?, String?)])
    func `what a store says of an object is found wherever it says it`(
        status: Int, body: String, fields: HTTPFields, key: String?, etag: String?
    ) throws {
        let form = PresignedForm(
            url: try #require(URL(string: "https://a.example/")), fields: ["key": "photos/${filename}"])
        let object = UploadedObject(
            Self.response(status, body, fields), key: form.key(of: MultipartForm(), filename: "초코.jpg"))
        #expect(object.key == key)
        #expect(object.etag == etag)
    }

    @Test(
        arguments: [
            ("a", "b.jpg", [], "a"), ("a/${filename}", "초코.jpg", [], "a/초코.jpg"), (nil, "b.jpg", [], nil),
            // A field of the app replaces one that was signed, as far as the policy allows it.
            ("a/${filename}", "b.jpg", ["c/${filename}"], "c/b.jpg"), (nil, "b.jpg", ["d"], "d"),
        ] as [(String?, String?, [String], String?)])
    func `the key of a store that does not say it is the one that was sent`(
        signed: String?, filename: String?, own: [String], key: String?
    ) throws {
        let presigned = PresignedForm(
            url: try #require(URL(string: "https://a.example/")), fields: signed.map { ["Key": $0] } ?? [:])
        var form = MultipartForm()
        for text in own { form.append(text, named: "key") }
        let object = UploadedObject(Self.response(204, ""), key: presigned.key(of: form, filename: filename))
        #expect(object.key == key)
    }
}
