import Crypto
import Foundation
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import PostcardTestSupport
import Testing

/// Forms whose bytes are compared with digests (RFC 9530).
@Suite(.timeLimit(.minutes(10)))
struct DigestTests {
    private static func digest(_ bytes: some DataProtocol) -> String {
        "sha-256=:\(Data(SHA256.hash(data: bytes)).base64EncodedString()):"
    }

    private static let form = Array(Form.small.utf8)
    private static let right = digest(form)
    private static let wrong = digest([1])

    /// What a request says of its body, and what comes of it.
    private static let fields: [(fields: [String], status: Int, code: String?)] = [
        (["Content-Digest: \(right)"], 201, nil),
        (["Repr-Digest: \(right)"], 201, nil),
        (["Content-Digest: \(right)", "Repr-Digest: \(right)"], 201, nil),
        (["Content-Digest: md5=:AAAA:"], 201, nil),
        (["Content-Digest: md5=:AAAA:, \(right)"], 201, nil),
        (["Content-Digest: \(wrong)"], 400, "digest-mismatch"),
        (["Repr-Digest: \(wrong)"], 400, "digest-mismatch"),
        (["Content-Digest: \(right)", "Repr-Digest: \(wrong)"], 400, "digest-mismatch"),
        (["Content-Digest: \(right)", "Content-Digest: \(wrong)"], 400, "digest-mismatch"),
        (["Content-Digest: sha-256=:AAAA:"], 400, "malformed-digest"),
        (["Content-Digest: sha-256=\"\(right)\""], 400, "malformed-digest"),
        (["Repr-Digest: sha-256"], 400, "malformed-digest"),
    ]

    @Test(arguments: fields.indices, [nil, true])
    func `a form is compared with its digests before it is stored`(row: Int, isComplete: Bool?) async throws {
        let (fields, status, code) = Self.fields[row]
        try await withCurlSender { sender, receiver in
            let response = try await sender.create(Self.form, isComplete: isComplete, fields: fields)
            #expect(response.status == status, "\(response)")
            #expect(response.problem?.code == code)
            #expect(try receiver.records.count == (status == 201 ? 1 : 0))
        }
    }

    /// What a request says of digests, the first field whose digest is wrong, and whether the response has one.
    private static let announcements: [(fields: [String], wrong: String?, isAnswered: Bool)] = [
        ([], nil, false),
        (["Content-Digest: \(right)"], nil, false),
        (["Content-Digest: \(right)", "Repr-Digest: \(right)", "Want-Repr-Digest: sha-256=10"], nil, true),
        (["Want-Repr-Digest: sha-256=10"], nil, true),
        (["Content-Digest: \(wrong)", "Want-Repr-Digest: sha-256=10"], "Content-Digest", false),
        (["Repr-Digest: \(wrong)"], "Repr-Digest", false),
        (["Content-Digest: \(right)", "Repr-Digest: \(wrong)"], "Repr-Digest", false),
        (["Content-Digest: \(wrong)", "Repr-Digest: \(wrong)"], "Content-Digest", false),
    ]

    @Test(arguments: announcements)
    func `the digest that a form does not match is named, and a client that asks for its form's digest gets it`(
        fields: [String], wrong: String?, isAnswered: Bool
    ) async throws {
        try await withReceiver { receiver in
            let response = try await receiver.exchange(Form.request(body: Form.small, fields: fields))
            #expect(response.status == (wrong == nil ? 201 : 400))
            let size = Form.small.utf8.count
            let detail = wrong.map { "The form's \(size) bytes do not match \($0). They changed in transit." }
            #expect(response.problem?.detail == detail)
            #expect(response.headers["repr-digest"] == (isAnswered ? Self.right : nil))
            #expect(try receiver.records.count == (wrong == nil ? 1 : 0))
            #expect(try receiver.incoming.isEmpty)
        }
    }

    /// Changes to a form, and why it is then refused if its digest is right.
    private static let changes: [(from: String, to: String, code: String)] = [
        ("name=", "mame=", "missing-name"), ("Disposition:", "Disposition;", "malformed-header-field"),
    ]

    @Test(arguments: changes, [0, 100_000])
    func `a form that became malformed on the way is compared with its digest first`(
        change: (from: String, to: String, code: String), more: Int
    ) async throws {
        let rest = String(repeating: "x", count: more)
        let body = Array((Form.small.replacing(change.from, with: change.to) + rest).utf8)
        try await withCurlSender { sender, receiver in
            for (digest, code) in [(Self.right, "digest-mismatch"), (Self.digest(body), change.code)] {
                let refused = try await sender.create(body, isComplete: nil, fields: ["Content-Digest: \(digest)"])
                #expect(refused.status == 400)
                #expect(refused.problem?.code == code)
            }
            #expect(try receiver.records.isEmpty)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test(arguments: [(1000, "digest-mismatch"), (1001, "malformed-header-field")])
    func `a malformed form of the largest size that is allowed is compared with its digest`(
        size: Int, code: String
    ) async throws {
        try await withReceiver({ $0.uploads.limits.maximumBodyBytes = 1000 }) { receiver in
            let body = "--b\r\n a: b\r\n\r\n".padding(toLength: size, withPad: "x", startingAt: 0)
            let chunks = "\(String(size, radix: 16))\r\n\(body)\r\n0\r\n\r\n"
            let digest = "Connection: close\r\nContent-Digest: \(Self.wrong)\r\nTransfer-Encoding"
            let request = Form.chunked(chunks).replacing("Transfer-Encoding", with: digest)
            let refused = try await receiver.exchange(request)
            #expect(refused.problem?.code == code)
        }
    }

    @Test func `a malformed form that is cut off is refused as malformed`() async throws {
        try await withReceiver { receiver in
            let start = "--b\r\n a: b\r\n\r\n"
            let head = Form.head(contentLength: 1000, fields: ["Content-Digest: \(Self.wrong)"])
            let refusal = try await receiver.exchange(head + start, closingInput: true)
            #expect(refusal.problem?.code == "malformed-header-field")
        }
    }

    @Test func `a body without an end is refused at the limit, whatever its digest`() async throws {
        try await withReceiver({ $0.uploads.limits.maximumBodyBytes = 1000 }) { receiver in
            let socket = try RawSocket(port: receiver.port)
            try await socket.send(
                "POST /uploads HTTP/1.1\r\nHost: a\r\n\(Form.contentType)\r\nContent-Digest: \(Self.wrong)\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n")
            let start = "--b\r\n a: b\r\n\r\n"
            for start in [start, ""] {
                let chunk = start.padding(toLength: 600, withPad: "x", startingAt: 0)
                try await socket.send("258\r\n\(chunk)\r\n")
            }
            let refusal = try await socket.receive(until: "}\n")
            #expect(refusal.hasPrefix("HTTP/1.1 400") && refusal.contains("malformed-header-field"))
            socket.abort()
        }
    }

    @Test(arguments: [nil, true])
    func `a client that asks for the digest of its form gets it`(isComplete: Bool?) async throws {
        try await withCurlSender { sender, _ in
            let asked = try await sender.create(
                Self.form, isComplete: isComplete, fields: ["Want-Repr-Digest: sha-256=10"])
            #expect(asked.head.fields["repr-digest"] == Self.right)
            for other in ["Want-Repr-Digest: sha-256=0", "Want-Repr-Digest: sha-512=10", "X: 1"] {
                let response = try await sender.create(Self.form, isComplete: isComplete, fields: [other])
                #expect(response.head.fields["repr-digest"] == nil)
            }
        }
    }

    @Test func `OPTIONS says that digests are compared`() async throws {
        try await withCurlSender { sender, _ in
            let fields = try await sender.request("OPTIONS", "/uploads").head.fields
            #expect(fields["want-content-digest"] == "sha-256=10")
            #expect(fields["want-repr-digest"] == "sha-256=10")
        }
    }

    @Test func `bytes that changed on the way are not appended, and can be sent again`() async throws {
        let form = LargeForm(bytes: 100_000)
        let piece = Array(form.bytes[1000..<60_000])
        try await withCurlSender { sender, receiver in
            let created = try await sender.create(form.bytes[..<1000], isComplete: false)
            let location = try #require(created.head.fields["location"])
            var flipped = piece
            flipped[30_000] ^= 1
            let refused = try await sender.append(
                flipped, at: 1000, isComplete: false, to: location, fields: ["Content-Digest: \(Self.digest(piece))"])
            #expect(refused.status == 400)
            #expect(refused.problem?.code == "digest-mismatch")
            #expect(refused.offset == 1000)
            #expect(refused.isComplete(in: .newest) == false)
            #expect(try await sender.head(location).offset == 1000)
            let appended = try await sender.append(
                piece, at: 1000, isComplete: false, to: location, fields: ["Content-Digest: \(Self.digest(piece))"])
            #expect(appended.status == 204)
            let last = try await sender.append(form.bytes[60_000...], at: 60_000, isComplete: true, to: location)
            #expect(last.status == 201)
            let record = try UploadRecord(json: Data(last.body.utf8))
            let file = try await receiver.curl(receiver.url + record.files[0].url)
            #expect(Array(file.output) == form.content)
        }
    }

    @Test func `bytes that make the form malformed are judged by their digest first`() async throws {
        try await withCurlSender { sender, _ in
            let created = try await sender.create(Self.form[..<5], isComplete: false)
            let location = try #require(created.head.fields["location"])
            let rest = Self.form[5...]
            var flipped = Array(rest)
            flipped[0] = 0
            let digest = ["Content-Digest: \(Self.digest(rest))"]
            let refused = try await sender.append(flipped, at: 5, isComplete: false, to: location, fields: digest)
            #expect(refused.problem?.code == "digest-mismatch")
            #expect(try await sender.append(rest, at: 5, isComplete: true, to: location, fields: digest).status == 201)
        }
    }

    @Test(arguments: [true, false])
    func `a form in pieces is compared with the digest of the whole`(isRight: Bool) async throws {
        try await withCurlSender { sender, receiver in
            let created = try await sender.create(
                Self.form[..<10], isComplete: false,
                fields: ["Repr-Digest: \(isRight ? Self.right : Self.wrong)", "Want-Repr-Digest: sha-256=1"])
            let location = try #require(created.head.fields["location"])
            let last = try await sender.append(Self.form[10...], at: 10, isComplete: true, to: location)
            #expect(last.status == (isRight ? 201 : 400))
            #expect(last.isComplete(in: .newest) == true)
            #expect(last.head.fields["repr-digest"] == (isRight ? Self.right : nil))
            #expect(last.problem?.code == (isRight ? nil : "digest-mismatch"))
            #expect(try receiver.records.count == (isRight ? 1 : 0))
        }
    }

    @Test func `files and records say their digests`() async throws {
        let form = LargeForm(bytes: 1000)
        try await withCurlSender { sender, receiver in
            let created = try await sender.create(form.bytes, isComplete: nil)
            let record = try UploadRecord(json: Data(created.body.utf8))
            for fields in [[], ["Range: bytes=0-9"]] {
                let file = try await sender.request("GET", record.files[0].url, fields: fields)
                #expect(file.head.fields["repr-digest"] == Self.digest(form.content))
            }
            let wanting = ["Want-Repr-Digest: sha-256=10"]
            let stored = try await sender.request("GET", record.url, fields: wanting)
            #expect(stored.head.fields["repr-digest"] == Self.digest(Array(stored.body.utf8)))
            #expect(try await sender.request("GET", record.url).head.fields["repr-digest"] == nil)
        }
    }
}
