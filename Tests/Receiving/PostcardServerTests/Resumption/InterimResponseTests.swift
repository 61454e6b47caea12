import PostcardReceiver
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import PostcardTestSupport
import Testing

/// Which requests get an interim response, and what becomes of their connections.
@Suite(.timeLimit(.minutes(10)))
struct InterimResponseTests {
    private static let version = "Upload-Draft-Interop-Version: 8"
    private static let form = LargeForm(bytes: 10_000)

    /// A request whose body stops before its end, if it has one.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var line = "POST /uploads HTTP/1.1"
        var fields = [version, "Upload-Complete: ?1"]
        var length = form.bytes.count
        var setting = UnfinishedUploadOptions.InterimResponses.auto
        /// Whether the first response is an interim one.
        let isTold: Bool
    }

    private static let cases = [
        Case(testDescription: "a form that takes a while", isTold: true),
        Case(testDescription: "only the beginning of a form", fields: [version, "Upload-Complete: ?0"], isTold: true),
        Case(
            testDescription: "a form that takes a while, as iOS 17 sends it",
            fields: ["Upload-Draft-Interop-Version: 3", "Upload-Incomplete: ?0"], isTold: true),
        Case(testDescription: "no version", fields: ["Upload-Complete: ?1"], isTold: false),
        Case(testDescription: "nothing that asks for an upload", fields: [version], isTold: false),
        Case(testDescription: "switched off", setting: .never, isTold: false),
        Case(testDescription: "HTTP/1.0", line: "POST /uploads HTTP/1.0", isTold: false),
        Case(
            testDescription: "an empty creation", fields: [version, "Upload-Complete: ?0"], length: 0, isTold: false),
    ]

    @Test(arguments: cases)
    func `the address is sent to a client that knows the status and takes a while`(_ one: Case) async throws {
        try await withReceiver { receiver in
            receiver.uploads.resumption?.announcementDelay = .zero
            receiver.uploads.resumption?.progressInterval = .seconds(1000)
            receiver.uploads.resumption?.interimResponses = one.setting
        } _: { receiver in
            let fields = ["Host: a", Form.contentType, "Content-Length: \(one.length)"] + one.fields
            let head = ([one.line] + fields).joined(separator: "\r\n") + "\r\n\r\n"
            let body = one.length > 0 ? Array(Self.form.bytes.prefix(100)) : []
            let socket = try RawSocket(port: receiver.port)
            try await socket.send(Array(head.utf8) + body)
            socket.closeInput()
            let text = String(decoding: try await socket.receiveAll(), as: UTF8.self)
            let first = text.prefix { $0 != "\r\n" }
            #expect(first.contains(" 104 ") == one.isTold, "\(text)")
            let beginning = text.prefix(upTo: text.firstRange(of: "\r\n\r\n")?.lowerBound ?? text.endIndex)
            #expect(beginning.contains("/uploads/resumable/") == (one.isTold || one.length == 0))
        }
    }

    @Test func `a small form gets none, and keeps its connection`() async throws {
        try await withReceiver { receiver in
            receiver.uploads.resumption?.announcementDelay = .seconds(1000)
            receiver.uploads.resumption?.progressInterval = .seconds(1000)
        } _: { receiver in
            let socket = try RawSocket(port: receiver.port)
            for _ in 0..<2 {
                let head = Form.head(
                    contentLength: Form.small.utf8.count, fields: [Self.version, "Upload-Complete: ?1"])
                try await socket.send(head + Form.small)
                let response = try await socket.receive(until: "}")
                #expect(response.hasPrefix("HTTP/1.1 201 "))
                #expect(!response.lowercased().contains("connection: close"))
            }
        }
    }

    @Test func `the connection ends with the final response, for a proxy that took the interim one for it`()
        async throws
    {
        try await withReceiver { receiver in
            receiver.uploads.resumption?.announcementDelay = .milliseconds(1)
            receiver.uploads.resumption?.progressInterval = .seconds(1000)
        } _: { receiver in
            let socket = try RawSocket(port: receiver.port)
            let head = Form.head(contentLength: Self.form.bytes.count, fields: [Self.version, "Upload-Complete: ?1"])
            try await socket.send(head)
            #expect(try await socket.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 104 "))
            try await socket.send(Self.form.bytes)
            let rest = String(decoding: try await socket.receiveAll(), as: UTF8.self)
            #expect(rest.hasPrefix("HTTP/1.1 201 "))
            #expect(rest.lowercased().contains("connection: close"))
        }
    }

    @Test func `a long append is told from time to time how much is stored, and no address`() async throws {
        try await withCurlSender(.interop8) { receiver in
            receiver.uploads.resumption?.progressInterval = .zero
        } _: { sender, _ in
            let created = try await sender.create([], isComplete: false)
            #expect(created.interim.isEmpty)
            let location = try #require(created.head.fields["location"])
            let appended = try await sender.append(Self.form.bytes, at: 0, isComplete: false, to: location)
            #expect(!appended.interim.isEmpty)
            let offsets = appended.interim.map { $0.fields["upload-offset"].flatMap { Int($0) } ?? -1 }
            #expect(offsets == offsets.sorted() && offsets.allSatisfy { (0...Self.form.bytes.count).contains($0) })
            #expect(appended.interim.allSatisfy { $0.status == 104 && $0.fields["location"] == nil })
            #expect(appended.offset == Int64(Self.form.bytes.count))
        }
    }
}
