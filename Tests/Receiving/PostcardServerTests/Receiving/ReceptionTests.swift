import Crypto
import Foundation
import Hummingbird
import PostcardForm
import PostcardReceiver
import PostcardServer
import PostcardTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import PostcardReceivingSupport

/// A store that says when a record is read from it.
private struct WatchedStore: ForwardingUploadStore {
    let base: MemoryStore
    let onRead: @Sendable () -> Void

    func record(_ id: UploadID) async throws -> UploadRecord? {
        onRead()
        return try await base.record(id)
    }
}

@Suite(.timeLimit(.minutes(10)))
struct ReceptionTests {
    @Test
    func `a form of curl with Korean text, Korean filenames and repeated names becomes its record`() async throws {
        try await withReceiver { receiver in
            let picture = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            let path = receiver.directory.appending("..").appending("초코 사진.png").string
            try picture.write(to: URL(filePath: path))
            let result = try await receiver.curl(
                "-i", "-F", "이름=초코", "-F", "메모=안녕, 세상!", "-F", "사진=@\(path);type=image/png", "-F", "메모=둘째",
                "-F", "사진=@\(path);filename=\"a\\\"b;c.jpg\"", "\(receiver.url)/uploads")
            #expect(result.text.hasPrefix("HTTP/1.1 201"))
            let json = try #require(result.text.split(separator: "\r\n\r\n").last)
            let record = try UploadRecord(json: Data(json.utf8))
            #expect(result.text.lowercased().contains("location: /uploads/\(record.id)\r\n"))
            #expect(record.fields.map(\.name) == ["이름", "메모", "메모"])
            #expect(record.fields.map(\.value) == ["초코", "안녕, 세상!", "둘째"])
            #expect(record.files.map(\.name) == ["사진", "사진"])
            #expect(record.files.map(\.filename) == ["초코 사진.png", "a\"b;c.jpg"])
            #expect(record.files.first?.contentType == "image/png")
            let digest = SHA256.hash(data: picture).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            #expect(record.files.map(\.sha256) == [digest, digest])
            #expect(record.files.map(\.size) == [300_000, 300_000])
            #expect(record.files.map(\.url) == ["/uploads/\(record.id)/files/0", "/uploads/\(record.id)/files/1"])
            #expect(try receiver.records == [record.id.text])
            #expect(try receiver.incoming.isEmpty)

            let again = try await receiver.curl("\(receiver.url)/uploads/\(record.id)")
            #expect(try UploadRecord(json: again.output) == record)
            let fetched = try await receiver.curl(receiver.url + record.files[1].url)
            #expect(fetched.output == picture)
        }
    }

    @Test
    func `a form that breaks the rules is refused with what it broke, and leaves nothing behind`() async throws {
        let rules = try FormRules(
            json: Data(
                #"{"fields":{"name":{"atLeast":1}},"files":{"picture":{"atMost":1,"types":["image/png"]}}}"#.utf8))
        try await withReceiver({ $0.uploads.rules = rules }) { receiver in
            let cases = [
                (["-F", "name=a", "-F", "other=b"], "unexpected-field"),
                (["-F", "picture=@/bin/sh;type=image/png"], "file-content-not-accepted"),
                (["-F", "name=a"], nil),
            ]
            for (arguments, code) in cases {
                let result = try await Program.run("curl", ["-sS"] + arguments + ["\(receiver.url)/uploads"])
                let response = try #require(try JSONSerialization.jsonObject(with: result.output) as? [String: Any])
                #expect(response["code"] as? String == code)
            }
            #expect(try receiver.records.count == 1)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test
    func `a form cut off by a client that vanishes leaves nothing behind, and the server keeps running`() async throws {
        try await withReceiver { receiver in
            let port = receiver.port
            for _ in 0..<5 {
                let socket = try RawSocket(port: port)
                try await socket.send(Form.head(contentLength: 10_000_000))
                try await socket.send(Form.fileHeader + String(repeating: "x", count: 1_000_000))
                try await eventually { try !receiver.incoming.isEmpty }
                socket.abort()
                try await eventually { try receiver.incoming.isEmpty }
            }
            #expect(try receiver.records.isEmpty)
            #expect(try await receiver.curl("\(receiver.url)/health").text == "ok")
            let response = try await receiver.curl("-F", "a=b", "\(receiver.url)/uploads")
            #expect(try UploadRecord(json: response.output).fields.map(\.value) == ["b"])
        }
    }

    @Test(arguments: [
        ("../../../tmp/evil", "evil"), ("/etc/passwd", "passwd"), (#"C:\boot.ini"#, "boot.ini"),
        (#"C:\\boot.ini"#, #"C:\boot.ini"#),
        ("..%2F..%2Fevil", "..%2F..%2Fevil"), ("a\u{202E}gpj.exe", "a\u{202E}gpj.exe"), (".", "."),
    ])
    func `a filename is data and never a path`(name: String, shown: String) async throws {
        try await withReceiver { receiver in
            let body =
                "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"\(name)\"\r\n\r\ncontent\r\n--b--\r\n"
            let response = try await receiver.exchange(Form.request(body: body))
            #expect(response.status == 201)
            let record = try UploadRecord(json: Data(response.body.utf8))
            #expect(record.files[0].filename == shown)
            let stored = receiver.directory.appending(record.id.text)
            let names = try FileManager.default.contentsOfDirectory(atPath: stored.string).sorted()
            #expect(names == ["0", "record.json"])
            #expect(try receiver.records == [record.id.text])
        }
    }

    @Test
    func `empty files and two hundred parts keep their order and their bytes`() async throws {
        try await withReceiver { receiver in
            var body = ""
            for index in 0..<100 {
                body += "--b\r\nContent-Disposition: form-data; name=\"t\"\r\n\r\n\(index)\r\n"
                body += "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"\(index)\"\r\n\r\n"
                body += String(repeating: "z", count: index % 3) + "\r\n"
            }
            let response = try await receiver.exchange(Form.request(body: body + "--b--\r\n"))
            let record = try UploadRecord(json: Data(response.body.utf8))
            let numbers: [String] = (0..<100).map { "\($0)" }
            let sizes: [Int64] = (0..<100).map { (index: Int) in Int64(index % 3) }
            #expect(record.fields.map(\.value) == numbers)
            #expect(record.files.map(\.filename) == numbers)
            #expect(record.files.map(\.size) == sizes)
            #expect(record.files.allSatisfy { $0.contentType == "application/octet-stream" })
            #expect(record.parts == (0..<100).flatMap { [.field($0), .file($0)] })
            // An empty file is not written.
            let stored = receiver.directory.appending(record.id.text)
            let names = Set(try FileManager.default.contentsOfDirectory(atPath: stored.string))
            let written = zip(numbers, sizes).filter { $0.1 > 0 }.map(\.0)
            #expect(numbers.filter { names.contains($0) } == written)
            let empty = try await receiver.curl("-i", receiver.url + record.files[3].url)
            #expect(empty.text.hasPrefix("HTTP/1.1 200"))
            let full = try await receiver.curl(receiver.url + record.files[5].url)
            #expect(full.text == "zz")
        }
    }

    @Test(
        arguments: [
            (.recordBoth, 201, "image/jpeg", "image/heic"), (.correct, 201, "image/heic", nil),
            (.refuse, 415, nil, nil),
        ] as [(ContentTypePolicy, Int, String?, String?)])
    func `a file whose first bytes contradict its type is recorded with both, corrected or refused`(
        policy: ContentTypePolicy, status: Int, type: String?, detected: String?
    ) async throws {
        try await withReceiver({ $0.uploads.contentTypePolicy = policy }) { receiver in
            let header = "Content-Disposition: form-data; name=\"f\"; filename=\"a.jpg\"\r\nContent-Type: image/jpeg"
            let content = "\0\0\0\u{18}ftypheic\0\0\0\0mif1heic"
            let response = try await receiver.exchange(Form.request(body: Form.part(header, content)))
            #expect(response.status == status)
            #expect(response.problem?.code == (status == 415 ? "content-contradicts-type" : nil))
            let file = try? UploadRecord(json: Data(response.body.utf8)).files.first
            #expect(file?.contentType == type && file?.detectedType == detected)
        }
    }

    @Test
    func `a file whose first bytes contradict its type is refused while the rest is still to come`() async throws {
        try await withReceiver({ $0.uploads.contentTypePolicy = .refuse }) { receiver in
            let header = "Content-Disposition: form-data; name=\"f\"; filename=\"a.jpg\"\r\nContent-Type: image/jpeg"
            let start = "%PDF-" + String(repeating: "x", count: MediaType.firstBytesCount - 5)
            let sent = "--b\r\n\(header)\r\n\r\n\(start)"
            let socket = try RawSocket(port: receiver.port)
            try await socket.send(Form.head(contentLength: 1_000_000) + sent)
            let refusal = try await socket.receive(until: "}\n")
            #expect(refusal.hasPrefix("HTTP/1.1 415"))
            #expect(refusal.contains("\"code\":\"content-contradicts-type\""))
            #expect(refusal.contains("\"offset\":\(sent.utf8.count),\"part\":0"))
        }
    }

    /// What `/status` says of uploads.
    private struct Status: Decodable {
        struct Uploads: Decodable {
            let received: Int
            let files: Int
            let bodyBytes: Int
            let underWay: Int
            let refused: Int
            let refusals: [String: Int]
        }

        let uploads: Uploads
    }

    @Test
    func `the bytes of all forms are counted, and each refusal once, by its code`() async throws {
        try await withReceiver { receiver in
            let forms = [Form.small, Form.fileHeader + "content" + Form.end, Form.fileHeader + "cut off", ""]
            for form in forms { _ = try await receiver.exchange(Form.request(body: form)) }
            _ = try await receiver.exchange(Form.request(body: "{}", contentType: "Content-Type: application/json"))
            let response = try await receiver.curl("\(receiver.url)/status").output
            let uploads = try JSONDecoder().decode(Status.self, from: response).uploads
            #expect(uploads.received == 2)
            #expect(uploads.files == 1)
            #expect(uploads.bodyBytes == forms.joined().utf8.count)
            #expect(uploads.underWay == 0)
            #expect(uploads.refused == 3)
            #expect(uploads.refusals == ["missing-close-delimiter": 1, "delimiter-not-found": 1, "not-form-data": 1])
        }
    }

    @Test(arguments: [(4096, 0), (4097, 1)])
    func `the response to a form has a record of up to 4 KiB from memory, and reads a larger one from the store`(
        bytes: Int, reads: Int
    ) async throws {
        let count = Mutex(0)
        let store = WatchedStore(base: MemoryStore(disk: MemoryStore.Disk())) { count.withLock { $0 += 1 } }
        let router = Router()
        router.addUploads(to: store)
        try await withApplication(router: router) { receiver in
            // The name and what is around both are the rest of the record.
            let around = UploadRecord(
                id: UploadID(earliestAt: 0), received: Date(timeIntervalSince1970: 0),
                fields: [UploadRecord.Field(name: "a", value: "")], files: []
            ).json().count
            let value = String(repeating: "x", count: bytes - around)
            let response = try await receiver.exchange(
                Form.request(body: Form.part("Content-Disposition: form-data; name=\"a\"", value)))
            #expect(response.status == 201)
            let record = try UploadRecord(json: Data(response.body.utf8))
            #expect(record.json().count == bytes)
            #expect(record.fields.map(\.value) == [value])
            #expect(count.withLock { $0 } == reads)
        }
    }

    @Test
    func `forms are posted where the options say, and read under /uploads`() async throws {
        try await withReceiver {
            $0.uploads.path = "/api/v1/images"
        } _: { receiver in
            let response = try await receiver.curl("-F", "a=b", "\(receiver.url)/api/v1/images")
            let record = try UploadRecord(json: response.output)
            let again = try await receiver.curl("\(receiver.url)/uploads/\(record.id)")
            #expect(try UploadRecord(json: again.output) == record)
            let refused = try await receiver.exchange(Form.request(body: Form.small))
            #expect(refused.status == 405)
            #expect(refused.headers["allow"] == "GET, HEAD")
            let page = try await receiver.curl("\(receiver.url)/")
            #expect(page.text.contains(#"action="/api/v1/images""#))
        }
    }

    @Test(arguments: [("/", "<!doctype html>"), ("/health", "ok"), ("/uploads/", #"{"uploads":[{"#)])
    func `forms can be posted to a path that the receiver answers itself, and it still answers there`(
        path: String, start: String
    ) async throws {
        try await withReceiver {
            $0.uploads.path = path
        } _: { receiver in
            let response = try await receiver.exchange(Form.request(body: Form.small, to: path))
            #expect(response.status == 201)
            let read = try await receiver.curl("\(receiver.url)\(path)")
            #expect(read.text.hasPrefix(start), "\(read.text)")
        }
    }

    @Test(arguments: [("//a//b/", "/a/b/"), ("a", "/a"), ("/", "/"), ("", "/"), ("/api/v1", "/api/v1")])
    func `a path for forms begins with one slash and has no empty segments`(path: String, normalized: String) {
        var options = UploadOptions()
        options.path = path
        #expect(options.path == normalized)
    }

    @Test
    func `what is offered beside receiving can be switched off`() async throws {
        try await withReceiver {
            $0.uploads.access = .none
        } _: { receiver in
            let response = try await receiver.curl("-F", "a=b", "\(receiver.url)/uploads")
            let record = try UploadRecord(json: response.output)
            for request in ["GET /uploads", "GET \(record.url)", "DELETE \(record.url)"] {
                let refused = try await receiver.exchange("\(request) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                #expect([404, 405].contains(refused.status))
            }
            #expect(try receiver.records == [record.id.text])
        }
    }
}
