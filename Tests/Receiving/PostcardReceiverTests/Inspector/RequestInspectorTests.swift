import Foundation
import Logging
import PostcardReceivingSupport
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardReceiver
@testable import PostcardReception
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct RequestInspectorTests {
    private func requests(_ receiver: RunningReceiver) async throws -> [[String: Any]] {
        let listing = try await receiver.curl("\(receiver.url)/requests").output
        let object = try #require(try JSONSerialization.jsonObject(with: listing) as? [String: Any])
        return try #require(object["requests"] as? [[String: Any]])
    }

    private func request(
        _ id: String, _ receiver: RunningReceiver, showsValues: Bool = true
    ) async throws -> [String: Any] {
        let query = showsValues ? "?values=shown" : ""
        let response = try await receiver.curl("\(receiver.url)/requests/\(id)\(query)").output
        return try #require(try JSONSerialization.jsonObject(with: response) as? [String: Any])
    }

    @Test
    func `every request is kept with its outcome, newest first`() async throws {
        try await withReceiver { receiver in
            _ = try await receiver.curl("-F", "a=b", "\(receiver.url)/uploads")
            _ = try await receiver.curl("-d", "a=b", "\(receiver.url)/uploads")
            _ = try await receiver.curl("-X", "PUT", "-F", "a=b", "\(receiver.url)/uploads")
            _ = try await receiver.curl("-F", "a=b", "\(receiver.url)/upload")
            _ = try await receiver.curl("\(receiver.url)/uploads")
            let kept = try await requests(receiver)
            #expect(kept.map { $0["status"] as? Int } == [404, 405, 415, 201])
            #expect(kept.map { $0["code"] as? String } == ["not-found", "method-not-allowed", "not-form-data", nil])
            #expect(kept.map { $0["id"] as? String } == ["4", "3", "2", "1"])
            #expect(try receiver.records == [kept.last?["upload"] as? String])
        }
    }

    @Test func `a request whose upload was deleted before it ended is not kept`() throws {
        let told = Mutex(0)
        let inspector = RequestInspector(options: InspectionOptions()) { _ in told.withLock { $0 += 1 } }
        func request(_ upload: UploadID) -> RecordedRequest {
            RecordedRequest(
                received: Date(), duration: .zero, client: nil, method: "POST", scheme: "http", host: "a",
                path: "/uploads", fields: [], contentType: nil, ending: .responded(status: 201, upload: upload),
                notes: .none)
        }
        let deleted = try #require(UploadID(String(repeating: "0", count: 26)))
        let kept = try #require(UploadID(String(repeating: "1", count: 26)))
        inspector.forget(deleted)
        for upload in [deleted, kept] { inspector.keep(request(upload)) }
        #expect(inspector.requests.map(\.upload) == [kept])
        #expect(told.withLock { $0 } == 1)
    }

    @Test func `a client with many requests pushes out no other client's`() throws {
        var options = InspectionOptions()
        options.maximumRequests = 3
        let inspector = RequestInspector(options: options) { _ in }
        for number in 0..<10 {
            inspector.keep(
                RecordedRequest(
                    received: Date(), duration: .zero, client: IPAddress(text: number == 0 ? "::1" : "192.0.2.1"),
                    method: "POST", scheme: "http", host: "a", path: "/uploads", fields: [], contentType: nil,
                    ending: .cutOff, notes: .none))
        }
        #expect(inspector.requests.map(\.id) == [10, 9, 1])
    }

    @Test(arguments: [
        (path: "/api/v1/images", methods: ["HEAD", "GET", "DELETE"]), (path: "/uploads", methods: ["DELETE"]),
        (path: "/", methods: ["DELETE"]),
    ])
    func `requests without a form are recorded at the path of forms, except where records or the page are read`(
        path: String, methods: [String]
    ) async throws {
        try await withReceiver({ $0.uploads.path = path }) { receiver in
            for method in ["DELETE", "GET"] { _ = try await receiver.curl("-X", method, "\(receiver.url)\(path)") }
            _ = try await receiver.curl("--head", "\(receiver.url)\(path)")
            _ = try await receiver.curl("\(receiver.url)\(path)/other")
            #expect(try await requests(receiver).map { $0["method"] as? String } == methods)
        }
    }

    @Test
    func `a refused form is described: its parts, its problem, the bytes around it, and all that came`() async throws {
        try await withReceiver { receiver in
            let body =
                Form.part("Content-Disposition: form-data; name=\"a\"").dropLast(6)
                + "--b\r\nContent-Disposition: form-data; filename=\"x\"\r\n\r\nrest\r\n--b--\r\n"
            _ = try await receiver.exchange(Form.request(body: String(body), fields: ["Authorization: Bearer x.y"]))
            let described = try await request("1", receiver)
            #expect(described["code"] as? String == "missing-name")
            let headers = try #require(described["headers"] as? [[String]])
            #expect(headers.contains(["Authorization", "***"]))
            let parts = try #require(described["parts"] as? [[String: Any]])
            #expect(parts.map { $0["name"] as? String } == ["a"])
            #expect(parts.first?["size"] as? Int == 5)
            #expect(parts.first?["text"] as? String == "value")
            let problem = try #require((described["problems"] as? [[String: Any]])?.first)
            #expect(problem["code"] as? String == "missing-name")
            #expect((problem["fix"] as? String)?.isEmpty == false)
            let around = try #require(problem["around"] as? [String: Any])
            let bytes = try #require(Data(base64Encoded: around["base64"] as? String ?? ""))
            #expect(String(decoding: bytes, as: UTF8.self).contains("filename=\"x\""))
            let kept = try #require((described["body"] as? [String: Any])?["first"] as? [String: Any])
            #expect(Data(base64Encoded: kept["base64"] as? String ?? "") == Data(body.utf8))
        }
    }

    @Test(arguments: [
        (header: "\r\nContent-Transfer-Encoding: binary", status: 201, code: "content-transfer-encoding"),
        (header: "\r\nContent-Type : text/plain", status: 400, code: "blank-before-colon"),
    ])
    func `the same problem in many parts is one, with how often it is there and the first places`(
        header: String, status: Int, code: String
    ) async throws {
        try await withReceiver { receiver in
            let part = "--b\r\nContent-Disposition: form-data; name=\"a\"\(header)\r\n\r\n1\r\n"
            let body = String(repeating: part, count: 500) + "--b--\r\n"
            let response = try await receiver.exchange(Form.request(body: body))
            #expect(response.status == status)
            let described = try await request("1", receiver)
            let problems = try #require(described["problems"] as? [[String: Any]])
            let alike = problems.filter { $0["code"] as? String == code }
            let problem = try #require(alike.first)
            #expect(alike.count == 1, "\(problems.map { $0["code"] ?? "" })")
            #expect(problem["count"] as? Int == 500)
            let also = try #require(problem["also"] as? [[String: Any]])
            #expect(also.map { $0["part"] as? Int } == [1, 2, 3, 4, 5, 6])
        }
    }

    @Test
    func `the line for curl sends the very bytes again, and takes secrets from the shell`() async throws {
        try await withReceiver { receiver in
            let body = Form.part(
                "Content-Disposition: form-data; name=\"it's %s \\ 한글\"\u{1}", "$(id) `id`\0\u{202E}\u{FF}")
            _ = try await receiver.exchange(
                Form.request(body: body, fields: ["Authorization: Bearer x", "X-Odd: a'b\"c$d"]))
            let first = try await request("1", receiver)
            let curl = try #require(first["curl"] as? [String: Any])
            #expect(curl["exact"] as? Bool == true)
            let line = try #require(curl["line"] as? String)
            #expect(line.contains(#"-H "Authorization: $AUTHORIZATION""#) && !line.contains("Bearer"))
            for shell in ["sh", "bash"] {
                let pipe = line.replacing("http://a/", with: "\(receiver.url)/")
                _ = try await Program.run(shell, ["-c", pipe])
            }
            for id in ["2", "3"] {
                let again = try await request(id, receiver)
                #expect(again["code"] as? String == first["code"] as? String)
                #expect((again["body"] as? NSDictionary) == (first["body"] as? NSDictionary))
                let headers = try #require(again["headers"] as? [[String]])
                #expect(headers.contains(["X-Odd", "a'b\"c$d"]))
            }
        }
    }

    @Test
    func `an accepted form is repeated part by part, and removed from the inspector with its upload`() async throws {
        try await withReceiver { receiver in
            let response = try await receiver.curl(
                "-F", "t=@/etc/hostname;filename=a b.txt;type=text/plain", "--form-string", "m=@안녕 'x'; y",
                "\(receiver.url)/uploads")
            let line = try #require((try await request("1", receiver)["curl"] as? [String: Any])?["line"] as? String)
            #expect(line.hasSuffix(#"-F 't=@"a b.txt";type=text/plain' --form-string 'm=@안녕 '\''x'\''; y'"#))
            let send = try #require(try await request("1", receiver)["send"] as? String)
            #expect(send.hasPrefix("postcard send http://") && send.hasSuffix(line.suffix(20)))
            let record = try UploadRecord(json: response.output)
            _ = try await receiver.curl("-X", "DELETE", receiver.url + record.url)
            #expect(try await requests(receiver).isEmpty)
            #expect(try await receiver.curl("\(receiver.url)/requests/1").text.contains("\"not-found\""))
        }
    }

    private static let early: [(request: String, status: Int, code: String)] = [
        (
            "POST /uploads HTTP/1.1\r\nHost: a\r\nX-Token: s3cret\r\nAuthorization s3cret\r\n\r\n", 400,
            "malformed-request"
        ),
        ("POST /uploads HTTP/1.1\r\nX-Token: s3cret\r\n\r\n", 400, "malformed-request"),
        (
            "POST /uploads HTTP/1.1\r\nX-Token: a\r\nAuthorization:\r\n Bearer s3cret\r\nno field\r\n\r\n", 400,
            "malformed-request"
        ),
        ("POST /uploads HTTP/1.1\r\nX-Token: a\r\nCookie : s3cret\r\n\r\n", 400, "malformed-request"),
        ("POST /uploads HTTP/1.1\r\nX-Token: a\r\nX: y\rAuthorization: s3cret\r\n\r\n", 400, "malformed-request"),
        (
            "POST /uploads HTTP/1.1\r\nX-Token: s3cret\r\nX-Long: " + String(repeating: "x", count: 100_000)
                + "\r\n\r\n", 431, "request-head-too-large"
        ),
    ]

    @Test(arguments: early)
    func `what is refused before it is a request is counted and kept too`(
        request: String, status: Int, code: String
    ) async throws {
        try await withReceiver { receiver in
            let response = try await receiver.exchange(request)
            #expect(response.status == status)
            let counts = try await receiver.curl("\(receiver.url)/status").text
            #expect(counts.contains("\"\(code)\":1"))
            let kept = try await requests(receiver)
            #expect(kept.map { $0["status"] as? Int } == [status])
            #expect(kept.map { $0["code"] as? String } == [code])
            let described = try await self.request("1", receiver)
            #expect(((described["problems"] as? [[String: Any]])?.first?["fix"] as? String)?.isEmpty == false)
            let text = try await receiver.curl("\(receiver.url)/requests/1").text
            #expect(!text.contains("s3cret"))
            guard status == 400 else { return }
            #expect(kept.map { "\($0["method"] ?? "") \($0["path"] ?? "")" } == ["POST /uploads"])
            let headers = try #require(described["headers"] as? [[String]])
            #expect(headers.contains(["X-Token", "***"]))
        }
    }

    @Test func `bytes from the middle of a form are not taken for the beginning of a request`() async throws {
        let log = CapturedLog.Lines()
        try await withReceiver {
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: log) }
        } _: { receiver in
            // Wherever the server reads, it reads in the middle of the secrets.
            let secrets = String(repeating: "s3cret /s3cret ", count: 4000)
            let form = "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n\(secrets)\r\n--b--\r\n"
            let request = Form.request(body: form).replacing("Connection: close\r\n", with: "")
            let socket = try RawSocket(port: receiver.port)
            try await socket.send(request + "--b--\r\n\r\n")
            try await eventually {
                try await receiver.curl("\(receiver.url)/status").text.contains("malformed-request")
            }
            #expect(try await !receiver.curl("\(receiver.url)/requests").text.contains("s3cret"))
            #expect(log.all.allSatisfy { !"\($0)".contains("s3cret") })
            socket.abort()
        }
    }

    @Test func `a request without a token is counted and recorded too`() async throws {
        try await withReceiver({ $0.tokens.reading = ["t"] }) { receiver in
            _ = try await receiver.curl("\(receiver.url)/uploads")
            let kept = try await receiver.curl("-H", "Authorization: Bearer t", "\(receiver.url)/requests").text
            #expect(kept.contains("\"code\":\"token-missing\""))
            let counts = try await receiver.curl("-H", "Authorization: Bearer t", "\(receiver.url)/status").text
            #expect(counts.contains("\"token-missing\":1"))
        }
    }

    @Test
    func `of a long body both ends are kept, and of many requests the last ones`() async throws {
        func limit(_ receiver: inout Receiver) {
            receiver.inspection?.maximumRequests = 3
            receiver.inspection?.maximumEndBytes = 100
        }
        try await withReceiver(limit) { receiver in
            let long = String(repeating: "0123456789", count: 2000)
            // Read to its end, and only there refused.
            let body = String(Form.part("Content-Disposition: form-data; name=\"a\"", long).dropLast(3))
            _ = try await receiver.exchange(Form.request(body: body))
            let kept = try #require(try await request("1", receiver)["body"] as? [String: Any])
            let length = try #require(kept["length"] as? Int)
            for (name, range) in [("first", 0..<100), ("last", (length - 100)..<length)] {
                let end = try #require(kept[name] as? [String: Any])
                #expect(end["offset"] as? Int == range.lowerBound)
                #expect(Data(base64Encoded: end["base64"] as? String ?? "") == Data(body.utf8)[range])
            }
            for _ in 0..<4 { _ = try await receiver.curl("-d", "", "\(receiver.url)/uploads") }
            #expect(try await requests(receiver).map { $0["id"] as? String } == ["5", "4", "3"])
        }
    }

    @Test
    func `all together is bounded, whatever comes`() async throws {
        func limit(_ receiver: inout Receiver) { receiver.inspection?.maximumBytes = 30_000 }
        try await withReceiver(limit) { receiver in
            let body = Form.part("no field", String(repeating: "x", count: 10_000))
            for _ in 0..<5 { _ = try await receiver.exchange(Form.request(body: body)) }
            #expect(try await requests(receiver).map { $0["id"] as? String } == ["5", "4"])
        }
    }

    @Test
    func `without inspection nothing is recorded, and the page does not show it`() async throws {
        try await withReceiver({ $0.inspection = nil }) { receiver in
            _ = try await receiver.curl("-F", "a=b", "\(receiver.url)/uploads")
            #expect(try await receiver.curl("\(receiver.url)/requests").text.contains("\"not-found\""))
            #expect(try await receiver.curl("\(receiver.url)/").text.contains("\"showsRequests\":false"))
        }
    }

    private static let secretBodies: [(type: String, body: String)] = [
        (
            Form.contentType,
            "--b\r\nContent-Disposition: form-data; name=\"password\"\r\nX-Token: s3cret\r\n\r\ns3cret\r\n"
                + "--b\r\nContent-Disposition: form-data; filename=\"x\"\r\n\r\nrest\r\n"
                + "--b\r\nContent-Disposition: form-data; name=\"pin\"\r\n\r\ns3cret\r\n--b--\r\n"
        ),
        // Refused at its end: only the beginning and the end are kept.
        (
            Form.contentType,
            "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n"
                + String(repeating: "s3cret", count: 50_000) + "\r\n--b"
        ),
        ("Content-Type: application/x-www-form-urlencoded", "a=b&password=s3cret"),
        ("Content-Type: application/json", "{\"password\": \"s3cret\"}"),
    ]

    @Test(arguments: secretBodies)
    func `secrets of a refused request are in nothing that is shown of it`(type: String, body: String) async throws {
        try await withReceiver { receiver in
            let fields = [
                "Ocp-Apim-Subscription-Key: s3cret", "DPoP: s3cret", "Referer: https://s3cret:s3cret@h/?pass=s3cret",
            ]
            _ = try await receiver.exchange(
                Form.request(body: body, contentType: type, fields: fields, to: "/uploads?pass=s3cret"))
            let described = try await request("1", receiver)
            #expect(described["code"] != nil)
            let listing = try await receiver.curl("\(receiver.url)/requests").text
            let text = try await receiver.curl("\(receiver.url)/requests/1").text
            #expect(!text.contains("s3cret") && !listing.contains("s3cret"))
            var bytes: [[String: Any]?] = (described["problems"] as? [[String: Any]] ?? []).map {
                $0["around"] as? [String: Any]
            }
            let kept = try #require(described["body"] as? [String: Any])
            bytes += [kept["first"] as? [String: Any], kept["last"] as? [String: Any]]
            for case let piece? in bytes {
                let text = try #require(piece["base64"] as? String)
                let data = try #require(Data(base64Encoded: text))
                #expect(!String(decoding: data, as: UTF8.self).contains("s3cret"))
            }
        }
    }

    @Test func `values that may not be harmless are shown to who asks for them, and names, sizes and places always`()
        async throws
    {
        try await withReceiver { receiver in
            let body =
                "--b\r\nContent-Disposition: form-data; name=\"contraseña\"\r\nX-Note: hidden\r\n\r\nhidden\r\n"
                + "--b\r\nContent-Disposition: form-data; filename=\"x\"\r\n\r\nhidden\r\n--b--hidden\r\n"
            let fields = ["X-Client-Cert: hidden", "User-Agent: a"]
            _ = try await receiver.exchange(
                Form.request(body: body, fields: fields, to: "/uploads?a=hidden&b%3dhidden"))
            let text = try await receiver.curl("\(receiver.url)/requests/1").text
            let listing = try await receiver.curl("\(receiver.url)/requests").text
            #expect(!text.contains("hidden") || text.contains("valuesHidden\":true"))
            #expect(!listing.contains("hidden"))
            let described = try await request("1", receiver, showsValues: false)
            #expect(described["path"] as? String == "/uploads?a=***&b***")
            let headers = try #require(described["headers"] as? [[String]])
            #expect(headers.contains(["User-Agent", "a"]) && headers.contains(["X-Client-Cert", "***"]))
            let part = try #require((described["parts"] as? [[String: Any]])?.first)
            #expect(part["name"] as? String == "contraseña" && part["size"] as? Int == 6)
            #expect(part["text"] as? String == "***")
            let kept = try #require((described["body"] as? [String: Any])?["first"] as? [String: Any])
            let bytes = String(decoding: Data(base64Encoded: kept["base64"] as? String ?? "") ?? Data(), as: UTF8.self)
            #expect(bytes == body.replacing(" hidden", with: "*******").replacing("hidden", with: "******"))
            let shown = try await request("1", receiver)
            #expect((shown["headers"] as? [[String]])?.contains(["X-Client-Cert", "hidden"]) == true)
            #expect(shown["valuesHidden"] as? Bool == false)
        }
    }

    @Test func `of a body that is no form, punctuation alone is shown to who does not ask`() async throws {
        try await withReceiver { receiver in
            let body = #"{"clave": "oculto"}"#
            _ = try await receiver.exchange(Form.request(body: body, contentType: "Content-Type: application/json"))
            let described = try await request("1", receiver, showsValues: false)
            let kept = (described["body"] as? [String: Any])?["first"] as? [String: Any]
            #expect(Data(base64Encoded: kept?["base64"] as? String ?? "") == Data(#"{"*****": "******"}"#.utf8))
        }
    }

    @Test func `secrets of an accepted form are not shown, and their values are left out of the line for curl`()
        async throws
    {
        try await withReceiver { receiver in
            _ = try await receiver.curl("-F", "password=s3cret", "-F", "a=shown", "\(receiver.url)/uploads")
            let described = try await request("1", receiver)
            let parts = try #require(described["parts"] as? [[String: Any]])
            #expect(parts.map { $0["text"] as? String } == ["***", "shown"])
            #expect(parts.map { $0["size"] as? Int } == [6, 5])
            let line = try #require((described["curl"] as? [String: Any])?["line"] as? String)
            #expect(line.contains(#"password=<"password.txt""#) && line.contains("a=shown"))
        }
    }
}
