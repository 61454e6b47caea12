import Foundation
import Logging
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ArchiveTests {
    private struct Listing: Decodable {
        struct Record: Decodable { let id: String }
        let uploads: [Record]
        let next: String?
    }

    private func listing(_ receiver: RunningReceiver, _ query: String = "") async throws -> Listing {
        let response = try await receiver.curl("\(receiver.url)/uploads\(query)")
        return try JSONDecoder().decode(Listing.self, from: response.output)
    }

    private func post(_ content: String, to receiver: RunningReceiver) async throws -> UploadRecord {
        let part = "Content-Disposition: form-data; name=\"f\"; filename=\"f.txt\"\r\nContent-Type: text/plain"
        let response = try await receiver.exchange(Form.request(body: Form.part(part, content)))
        return try UploadRecord(json: Data(response.body.utf8))
    }

    private func get(
        _ path: String, _ receiver: RunningReceiver, method: String = "GET", _ fields: String...
    ) async throws -> RawResponse {
        let lines = ["\(method) \(path) HTTP/1.1", "Host: a", "Connection: close"] + fields
        return try await receiver.exchange(lines.joined(separator: "\r\n") + "\r\n\r\n")
    }

    @Test
    func `a listing has pages, newest uploads first`() async throws {
        try await withReceiver { receiver in
            #expect(try await listing(receiver).uploads.isEmpty)
            var ids: [String] = []
            for index in 0..<5 { ids.insert(try await post("\(index)", to: receiver).id.text, at: 0) }
            let whole = try await listing(receiver)
            #expect(whole.uploads.map(\.id) == ids)
            #expect(whole.next == nil)
            let first = try await listing(receiver, "?limit=2")
            #expect(first.uploads.map(\.id) == Array(ids[0..<2]))
            #expect(first.next == ids[1])
            let second = try await listing(receiver, "?limit=2&after=\(ids[1])")
            #expect(second.uploads.map(\.id) == Array(ids[2..<4]))
            let last = try await listing(receiver, "?limit=2&after=\(ids[3])")
            #expect(last.uploads.map(\.id) == [ids[4]])
            #expect(last.next == nil)
        }
    }

    @Test(arguments: [true, false])
    func `a stored file that is missing or truncated is not served`(isGone: Bool) async throws {
        try await withReceiver { receiver in
            let record = try await post("content", to: receiver)
            let path = receiver.directory.appending(record.id.text).appending("0").string
            try FileManager.default.removeItem(atPath: path)
            if !isGone { try Data("cont".utf8).write(to: URL(filePath: path)) }
            let response = try await get(record.files[0].url, receiver)
            #expect(response.status == 503)
            #expect(response.problem?.code == "store-unavailable")
        }
    }

    @Test(arguments: ["limit=0", "limit=1001", "limit=x", "limit=-1", "limit=", "after=x", "after=../../etc"])
    func `an invalid query is refused`(query: String) async throws {
        try await withReceiver { receiver in
            let response = try await get("/uploads?\(query)", receiver)
            #expect(response.status == 400)
            #expect(response.problem?.code == "invalid-query")
        }
    }

    @Test
    func `a range of a file gets a 206, and a range beyond its end a 416`() async throws {
        try await withReceiver { receiver in
            let record = try await post("0123456789", to: receiver)
            let url = record.files[0].url
            let whole = try await get(url, receiver)
            #expect(whole.status == 200)
            #expect(whole.body == "0123456789")
            #expect(whole.headers["accept-ranges"] == "bytes")
            #expect(whole.headers["etag"] == "\"\(record.files[0].sha256)\"")
            #expect(whole.headers["x-content-type-options"] == "nosniff")
            #expect(whole.headers["content-security-policy"] == "sandbox; default-src 'none'")
            #expect(whole.headers["content-type"] == "text/plain")
            let part = try await get(url, receiver, "Range: bytes=2-4")
            #expect(part.status == 206)
            #expect(part.body == "234")
            #expect(part.headers["content-range"] == "bytes 2-4/10")
            #expect(part.headers["content-length"] == "3")
            let beyond = try await get(url, receiver, "Range: bytes=10-")
            #expect(beyond.status == 416)
            #expect(beyond.headers["content-range"] == "bytes */10")
            #expect(beyond.problem?.code == "range-not-satisfiable")
        }
    }

    @Test
    func `If-None-Match and If-Range apply only if the content is the same`() async throws {
        try await withReceiver { receiver in
            let record = try await post("0123456789", to: receiver)
            let url = record.files[0].url
            let etag = "\"\(record.files[0].sha256)\""
            #expect(try await get(url, receiver, "If-None-Match: \(etag)").status == 304)
            #expect(try await get(url, receiver, "If-None-Match: \"other\"").status == 200)
            #expect(try await get(url, receiver, "Range: bytes=2-4", "If-Range: \(etag)").status == 206)
            #expect(try await get(url, receiver, "Range: bytes=2-4", "If-Range: \"other\"").body == "0123456789")
            let head = try await get(url, receiver, method: "HEAD")
            #expect(head.status == 200)
            #expect(head.headers["content-length"] == "10")
            #expect(head.body.isEmpty)
        }
    }

    @Test
    func `a large file is downloaded as it was sent, also in ranges`() async throws {
        try await withReceiver { receiver in
            let content = String((0..<700_000).map { _ in "0123456789abcdef".randomElement() ?? "0" })
            let record = try await post(content, to: receiver)
            let url = receiver.url + record.files[0].url
            #expect(try await receiver.curl(url).text == content)
            let first = try await receiver.curl("-r", "0-399999", url).text
            let second = try await receiver.curl("-r", "400000-", url).text
            #expect(first + second == content)
        }
    }

    @Test(arguments: ["", #"{"id":"#])
    func `a damaged record is left out of the listing, and a request for it is refused`(content: String) async throws {
        let lines = CapturedLog.Lines()
        try await withReceiver({ $0.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) } }) { receiver in
            let first = try await post("first", to: receiver)
            let damaged = try await post("second", to: receiver)
            let last = try await post("third", to: receiver)
            let path = receiver.directory.appending(damaged.id.text).appending("record.json")
            try Data(content.utf8).write(to: URL(filePath: path.string))
            let refused = try await get(damaged.url, receiver)
            #expect(refused.status == 503)
            #expect(refused.problem?.detail == "What was stored could not be read.")
            #expect(try await listing(receiver).uploads.map(\.id) == [last.id.text, first.id.text])
            #expect(try await get(damaged.url, receiver).status == 404)
            let aside = receiver.directory.appending(".damaged").appending(damaged.id.text)
            #expect(try FileManager.default.contentsOfDirectory(atPath: aside.string).sorted() == ["0", "record.json"])
            #expect(lines.all.count { $0["upload"] == .string(damaged.id.text) && $0["error"] != nil } == 1)
            #expect(try await get("/status", receiver).body.contains(#""damagedUploads":1,"#))
            // The folder for damaged uploads exists by now.
            let other = receiver.directory.appending(last.id.text).appending("record.json")
            try Data(content.utf8).write(to: URL(filePath: other.string))
            #expect(try await [get(last.url, receiver).status, get(last.url, receiver).status] == [503, 404])
            #expect(try await get("/status", receiver).body.contains(#""damagedUploads":2,"#))
        }
    }

    @Test(arguments: [10, 100_000])
    func `the response for a record is the stored bytes`(fieldBytes: Int) async throws {
        try await withReceiver { receiver in
            let field = Form.part(
                "Content-Disposition: form-data; name=\"a\"", String(repeating: "\u{1}", count: fieldBytes))
            let posted = try await receiver.exchange(Form.request(body: field))
            let record = try UploadRecord(json: Data(posted.body.utf8))
            #expect(record.fields.first?.value.utf8.count == fieldBytes)
            let path = receiver.directory.appending(record.id.text).appending("record.json").string
            let stored = try String(contentsOfFile: path, encoding: .utf8)
            #expect(posted.body == stored)
            #expect(try await get(record.url, receiver).body == stored)
            // An encoder would write it differently.
            let other = stored.replacing(#""value":"\u0001"#, with: #""value":"\u0041"#)
            try Data(other.utf8).write(to: URL(filePath: path))
            #expect(try await get(record.url, receiver).body == other)
            let head = try await get(record.url, receiver, method: "HEAD")
            #expect(head.headers["content-length"] == String(other.utf8.count))
            #expect(head.body.isEmpty)
            let list = try await receiver.curl("\(receiver.url)/uploads").text
            #expect(list.contains(other))
        }
    }

    @Test
    func `the files of a record are found in it even if its text looks like JSON`() async throws {
        try await withReceiver { receiver in
            let trap = #"],"files":[{"size":1},"]}\""#
            let text = String(repeating: trap, count: 5000)
            var body = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\(text)\r\n"
            let names = ["}]", #"],"files":["#, "초코", "{", #""}"#]
            for name in names {
                body += "--b\r\nContent-Disposition: form-data; name=\"f\"; "
                body += "filename=\"\(name.replacing("\"", with: "%22"))\"\r\n\r\n\(name)\r\n"
            }
            let posted = try await receiver.exchange(Form.request(body: body + "--b--\r\n"))
            let record = try UploadRecord(json: Data(posted.body.utf8))
            #expect(record.files.count == names.count)
            for (index, name) in names.enumerated() {
                #expect(try await get(record.files[index].url, receiver).body == name)
            }
            for index in [names.count, .max, -1, .min] {
                let missing = try await get("\(record.url)/files/\(index)", receiver)
                #expect(missing.status == 404)
                #expect(missing.problem?.detail == "The upload has no such file.")
            }
        }
    }

    /// What someone with access to the directory may put in place of a file.
    private enum Planted: CaseIterable {
        case pipe, linkToFile, linkToFolder

        func put(at path: FilePath, insteadOf content: FilePath) throws {
            let files = FileManager.default
            try files.moveItem(atPath: path.string, toPath: content.string)
            switch self {
            case .pipe:
                guard mkfifo(path.string, 0o600) == 0 else { throw Errno(rawValue: errno) }
            case .linkToFile:
                try files.createSymbolicLink(atPath: path.string, withDestinationPath: content.string)
            case .linkToFolder:
                try files.moveItem(atPath: content.string, toPath: path.string)
                let folder = path.removingLastComponent()
                try files.moveItem(atPath: folder.string, toPath: content.string)
                try files.createSymbolicLink(atPath: folder.string, withDestinationPath: content.string)
            }
        }
    }

    @Test(arguments: ["0", "record.json"])
    func `a pipe or link in place of a stored file is not served, and delays no other request`(name: String)
        async throws
    {
        for planted in Planted.allCases {
            try await withReceiver { receiver in
                let record = try await post("content", to: receiver)
                let kept = receiver.directory.removingLastComponent().appending("kept")
                try planted.put(at: receiver.directory.appending(record.id.text).appending(name), insteadOf: kept)
                let url = name == "0" ? record.files[0].url : record.url
                // More requests than there are threads that could block.
                let statuses = try await withThrowingTaskGroup(of: Int.self) { tasks in
                    for _ in 0..<40 { tasks.addTask { try await get(url, receiver).status } }
                    return try await tasks.reduce(into: Set()) { $0.insert($1) }
                }
                // A replaced record is set aside by the first of them.
                #expect(statuses.contains(503) && statuses.isSubset(of: [503, 404]), "\(planted)")
                _ = try await post("another", to: receiver)
                #expect(try await get("/health", receiver).status == 200)
            }
        }
    }

    @Test
    func `a receiver that cannot store anything is not healthy, and reports why`() async throws {
        try await withReceiver { receiver in
            try FileManager.default.removeItem(atPath: receiver.directory.appending(".incoming").string)
            #expect(try await get("/health", receiver).status == 200)
            try FileManager.default.removeItem(atPath: receiver.directory.string)
            let response = try await get("/health", receiver)
            #expect(response.status == 503)
            #expect(response.problem?.code == "store-unavailable")
        }
        try await withReceiver({ $0.keptFreeBytes = .max }) { receiver in
            let response = try await get("/health", receiver)
            #expect(response.status == 503)
            #expect(response.problem?.code == "store-full")
        }
    }

    @Test
    func `a deleted upload is gone, and deleting it again is refused`() async throws {
        try await withReceiver { receiver in
            let record = try await post("content", to: receiver)
            let other = try await post("other", to: receiver)
            let deleted = try await get(record.url, receiver, method: "DELETE")
            #expect(deleted.status == 204)
            #expect(try await get(record.url, receiver).status == 404)
            #expect(try await get(record.files[0].url, receiver).status == 404)
            #expect(try await get(record.url, receiver, method: "DELETE").problem?.code == "not-found")
            #expect(try await listing(receiver).uploads.map(\.id) == [other.id.text])
            #expect(try receiver.records == [other.id.text])
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test(arguments: [
        "/uploads/x", "/uploads/..%2F..", "/uploads/.incoming", "/uploads/ID/files/9", "/uploads/ID/files/-1",
        "/uploads/ID/files/record.json", "/uploads/ID/files/..%2frecord.json", "/uploads/ID/record.json", "/x",
    ])
    func `unknown paths are refused with 404`(path: String) async throws {
        try await withReceiver { receiver in
            let record = try await post("content", to: receiver)
            let response = try await get(path.replacing("ID", with: record.id.text), receiver)
            #expect(response.status == 404)
            #expect(response.problem?.code == "not-found")
        }
    }

    @Test
    func `the page, the health check and their methods`() async throws {
        try await withReceiver { receiver in
            let health = try await get("/health", receiver)
            #expect(health.status == 200)
            #expect(health.body == "ok")
            let page = try await get("/", receiver)
            #expect(page.headers["content-type"] == "text/html; charset=utf-8")
            #expect(page.body.contains(#"method="post" enctype="multipart/form-data" action="/uploads""#))
            let refused = try await get("/health", receiver, method: "DELETE")
            #expect(refused.status == 405)
            #expect(refused.headers["allow"] == "GET, HEAD")
        }
    }
}
