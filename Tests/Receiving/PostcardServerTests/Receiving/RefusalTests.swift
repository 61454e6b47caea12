import Foundation
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import Testing

/// What is sent, and what is refused with which status and code.
struct Refusal: Sendable, CustomTestStringConvertible {
    let name: String
    let request: String
    let status: Int
    let code: String
    var limit: String?
    var part: Int?
    /// Whether the client closes its side behind the request.
    var closesInput = false

    var testDescription: String { name }

    static let limits: FormLimits = {
        var limits = FormLimits()
        limits.maximumBodyBytes = 100_000
        limits.maximumFileBytes = 50_000
        limits.maximumFieldBytes = 1000
        limits.maximumParts = 3
        limits.maximumHeaderBytes = 500
        limits.maximumHeaderFields = 4
        limits.maximumPreambleBytes = 100
        limits.maximumEpilogueBytes = 100
        return limits
    }()

    static let maximumRecordBytes = 2000

    /// The limits that a refusal names for a form that is too large.
    static let sizeLimits = [
        "maximumBodyBytes 100000", "maximumFileBytes 50000", "maximumFieldBytes 1000", "maximumParts 3",
    ]

    private static let field = #"Content-Disposition: form-data; name="a""#
    private static let file = #"Content-Disposition: form-data; name="a"; filename="a""#

    static let all: [Refusal] = contentTypes + forms + overLimit + requests

    static let contentTypes = [
        Refusal(
            name: "no Content-Type", request: Form.request(body: Form.small, contentType: ""), status: 415,
            code: "missing-content-type"),
        Refusal(
            name: "another Content-Type",
            request: Form.request(body: "{}", contentType: "Content-Type: application/json"), status: 415,
            code: "not-form-data"),
        Refusal(
            name: "two Content-Types",
            request: Form.request(body: Form.small, fields: [Form.contentType]), status: 400,
            code: "duplicate-content-type"),
        Refusal(
            name: "no boundary",
            request: Form.request(body: Form.small, contentType: "Content-Type: multipart/form-data"), status: 400,
            code: "missing-boundary"),
        Refusal(
            name: "two boundaries",
            request: Form.request(body: Form.small, contentType: Form.contentType + "; boundary=c"), status: 400,
            code: "duplicate-boundary"),
        Refusal(
            name: "a boundary of 71 characters",
            request: Form.request(
                body: Form.small,
                contentType: "Content-Type: multipart/form-data; boundary=" + String(repeating: "b", count: 71)),
            status: 400, code: "invalid-boundary"),
        Refusal(
            name: "a compressed body",
            request: Form.request(body: Form.small, fields: ["Content-Encoding: gzip"]), status: 415,
            code: "unsupported-content-encoding"),
    ]

    static let forms = [
        Refusal(
            name: "another boundary than announced",
            request: Form.request(body: Form.small.replacing("--b", with: "--c")), status: 400,
            code: "boundary-mismatch"),
        Refusal(name: "an empty body", request: Form.request(body: ""), status: 400, code: "delimiter-not-found"),
        Refusal(
            name: "a form without its end", request: Form.request(body: Form.fileHeader + "content"), status: 400,
            code: "missing-close-delimiter", part: 0),
        Refusal(
            name: "a form without its close delimiter",
            request: Form.request(body: Form.fileHeader + "content\r\n"), status: 400, code: "missing-close-delimiter",
            part: 0),
        Refusal(
            name: "a part without a name",
            request: Form.request(body: Form.part("Content-Disposition: form-data")), status: 400,
            code: "missing-name", part: 0),
        Refusal(
            name: "a part without a Content-Disposition", request: Form.request(body: Form.part("Content-Type: a/b")),
            status: 400, code: "missing-content-disposition", part: 0),
        Refusal(
            name: "a header line that begins with a blank", request: Form.request(body: Form.part(" a: b\r\n" + field)),
            status: 400, code: "malformed-header-field", part: 0),
    ]

    static let overLimit = [
        Refusal(
            name: "a body announced over the limit", request: Form.head(contentLength: 100_001), status: 413,
            code: "body-too-large", limit: "maximumBodyBytes"),
        Refusal(
            name: "a chunked body over the limit",
            request: Form.chunked(
                "20000\r\n" + Form.fileHeader + String(repeating: "x", count: 0x20000 - Form.fileHeader.utf8.count)),
            status: 413, code: "file-too-large", limit: "maximumFileBytes", part: 0),
        Refusal(
            name: "a file over the limit",
            request: Form.request(body: Form.part(file, String(repeating: "x", count: 50_001))), status: 413,
            code: "file-too-large", limit: "maximumFileBytes", part: 0),
        Refusal(
            name: "a field over the limit",
            request: Form.request(body: Form.part(field, String(repeating: "x", count: 1001))), status: 413,
            code: "field-too-large", limit: "maximumFieldBytes", part: 0),
        Refusal(
            name: "a part too many",
            request: Form.request(
                body: String(repeating: "--b\r\n\(field)\r\n\r\nx\r\n", count: 4) + "--b--\r\n"), status: 413,
            code: "too-many-parts", limit: "maximumParts"),
        Refusal(
            name: "a header over the limit",
            request: Form.request(body: Form.part("\(field)\r\nX: " + String(repeating: "x", count: 500))),
            status: 413, code: "header-too-large", limit: "maximumHeaderBytes", part: 0),
        Refusal(
            name: "texts over the limit together",
            request: Form.request(
                body: String(
                    repeating: "--b\r\n\(field)\r\n\r\n" + String(repeating: "x", count: 900) + "\r\n", count: 3)
                    + "--b--\r\n"), status: 413, code: "record-too-large", limit: "maximumRecordBytes", part: 2),
        Refusal(
            name: "texts and a filename over the limit together",
            request: Form.request(
                body: String(
                    repeating: "--b\r\n\(field)\r\n\r\n" + String(repeating: "x", count: 900) + "\r\n", count: 2)
                    + Form.part("\(field); filename=\"" + String(repeating: "n", count: 250) + "\"")), status: 413,
            code: "record-too-large", limit: "maximumRecordBytes", part: 2),
    ]

    static let requests = [
        Refusal(
            name: "a body cut off by its client", request: Form.head(contentLength: 1000) + Form.fileHeader + "content",
            status: 400, code: "truncated", closesInput: true),
        Refusal(
            name: "a body that is not sent", request: Form.head(contentLength: 1000), status: 400,
            code: "body-not-sent", closesInput: true),
        Refusal(
            name: "a chunk that is none", request: Form.chunked("5\r\n--b\r\n\r\nzz\r\n"), status: 400,
            code: "malformed-request"),
        Refusal(
            name: "a head that is none", request: "what is this\r\n\r\n", status: 400, code: "malformed-request"),
        Refusal(
            name: "two lengths", request: Form.request(body: Form.small, fields: ["Content-Length: 7"]), status: 400,
            code: "malformed-request"),
        Refusal(
            name: "a negative length",
            request: "POST /uploads HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", status: 400,
            code: "malformed-request"),
        Refusal(
            name: "a method that the path does not have",
            request: "PUT /uploads HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", status: 405,
            code: "method-not-allowed"),
        Refusal(
            name: "a method that no path has",
            request: "PROPFIND /uploads HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", status: 405,
            code: "method-not-allowed"),
        Refusal(
            name: "no Host", request: Form.request(body: Form.small).replacing("Host: a\r\n", with: ""), status: 400,
            code: "malformed-request"),
        Refusal(
            name: "two Hosts", request: Form.request(body: Form.small, fields: ["Host: b"]), status: 400,
            code: "malformed-request"),
        Refusal(
            name: "another Transfer-Encoding",
            request: Form.chunked("0\r\n\r\n").replacing("chunked", with: "gzip, chunked"), status: 501,
            code: "unsupported-transfer-encoding"),
        Refusal(
            name: "a length that no file has",
            request: "POST /uploads HTTP/1.1\r\nHost: a\r\n\(Form.contentType)\r\n"
                + "Content-Length: 9223372036854775808\r\n\r\n", status: 413, code: "body-too-large",
            limit: "maximumBodyBytes"),
        Refusal(
            name: "too many header fields",
            request: Form.request(body: "", fields: (0..<2000).map { "X\($0): x" }), status: 431,
            code: "request-head-too-large"),
        Refusal(
            name: "a long address",
            request: "GET /" + String(repeating: "x", count: 100_000) + " HTTP/1.1\r\nHost: a\r\n\r\n", status: 431,
            code: "request-head-too-large"),
        Refusal(
            name: "a path that is not there", request: Form.request(body: Form.small, to: "/nowhere"), status: 404,
            code: "not-found"),
    ]
}

@Suite(.timeLimit(.minutes(10)))
struct RefusalTests {
    @Test(arguments: Refusal.all)
    func `a refusal is a problem with its code, and leaves nothing behind`(refusal: Refusal) async throws {
        try await withReceiver {
            $0.uploads.limits = Refusal.limits
            $0.uploads.maximumRecordBytes = Refusal.maximumRecordBytes
        } _: { receiver in
            let response = try await receiver.exchange(refusal.request, closingInput: refusal.closesInput)
            #expect(response.status == refusal.status, "\(response.text)")
            #expect(response.headers["content-type"] == "application/problem+json")
            let problem = try #require(response.problem, "\(response.text)")
            #expect(problem.status == refusal.status)
            #expect(problem.code == refusal.code)
            #expect(problem.type == "urn:postcard:problem:\(refusal.code)")
            #expect(!problem.title.isEmpty && !problem.detail.isEmpty)
            #expect(problem.limit?.name == refusal.limit)
            let sizeLimits = refusal.status == 413 ? Refusal.sizeLimits : nil
            #expect(problem.limits?.map { "\($0.name) \($0.value)" } == sizeLimits)
            #expect(problem.part == refusal.part)
            #expect(try receiver.incoming.isEmpty)
            #expect(try receiver.records.isEmpty)
            let next = try await receiver.exchange(Form.request(body: Form.small))
            #expect(next.status == 201)
        }
    }

    /// Forms, and how many bytes their names, values and types have together.
    static let texts: [(body: String, bytes: Int)] = [
        (Form.small, 1 + 5),
        (Form.part("Content-Disposition: form-data; name=\"이름\"", "초코"), 6 + 6),
        (Form.part("Content-Disposition: form-data; name=\"a\"\r\nContent-Type: text/plain"), 1 + 5),
        (Form.fileHeader + "content" + Form.end, 1 + 5 + "application/octet-stream".utf8.count),
        (
            Form.part("Content-Disposition: form-data; name=\"a\"; filename=\"초코\"\r\nContent-Type: image/png", ""),
            1 + 6 + 9
        ),
    ]

    @Test(arguments: texts)
    func `names and values of exactly the allowed bytes are received, and one byte more is not`(
        body: String, bytes: Int
    ) async throws {
        for (limit, status) in [(bytes, 201), (bytes - 1, 413)] {
            try await withReceiver {
                $0.uploads.maximumRecordBytes = limit
            } _: { receiver in
                let response = try await receiver.exchange(Form.request(body: body))
                #expect(response.status == status)
                #expect(response.problem?.code == (status == 413 ? "record-too-large" : nil))
                #expect(response.problem?.limit?.value == (status == 413 ? Int64(limit) : nil))
                #expect(try receiver.records.count == (status == 413 ? 0 : 1))
            }
        }
    }

    @Test
    func `a body of exactly the allowed bytes is received, and one byte more is not`() async throws {
        let size = Int64(Form.small.utf8.count)
        for (limit, status) in [(size, 201), (size - 1, 413)] {
            try await withReceiver {
                $0.uploads.limits.maximumBodyBytes = limit
            } _: { receiver in
                let known = try await receiver.exchange(Form.request(body: Form.small))
                #expect(known.status == status)
                let chunk = "\(String(size, radix: 16))\r\n\(Form.small)\r\n0\r\n\r\n"
                let unknown = try await receiver.exchange(
                    Form.chunked(chunk).replacing("Host: a", with: "Host: a\r\nConnection: close"))
                #expect(unknown.status == status)
                #expect(unknown.problem?.limit?.value == (status == 413 ? limit : nil))
            }
        }
    }
}
