#if os(macOS) || os(Linux)
import PostcardReceiver
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

struct ThumbnailsTests {
    @Test func `a program that was killed may succeed another time, and its refusal is counted`() async throws {
        try await withReceiver({ $0.thumbnailCommand = ["/bin/sh", "-c", "kill -9 $$"] }) { receiver in
            let form = try await receiver.exchange(Form.request(body: Form.fileHeader + "content" + Form.end))
            #expect(form.status == 201)
            let path = "/uploads/\(try #require(try receiver.records.first))/files/0/thumbnail"
            let request = "GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            for count in 1...2 {
                let response = try await receiver.exchange(request)
                #expect(response.status == 503)
                #expect(response.problem?.code == "too-many-thumbnails")
                let status = try await receiver.curl("\(receiver.url)/status").text
                #expect(status.contains("\"too-many-thumbnails\":\(count)"))
            }
        }
    }

    @Test func `a program that is not there means that the file has no thumbnail`() async throws {
        try await withReceiver({ $0.thumbnailCommand = ["/nowhere/program"] }) { receiver in
            let form = try await receiver.exchange(Form.request(body: Form.fileHeader + "content" + Form.end))
            #expect(form.status == 201)
            let path = "/uploads/\(try #require(try receiver.records.first))/files/0/thumbnail"
            let response = try await receiver.exchange(
                "GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(response.status == 404)
            #expect(response.problem?.code == "no-thumbnail")
        }
    }
}
#endif
