import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import PostcardTestSupport
import Synchronization
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct CutUploadTests {
    @Test func `the offset is answered beside an append that goes on byte by byte, which ends`() async throws {
        try await withCurlSender { sender, receiver in
            let created = try await sender.create("--b\r\n".utf8, isComplete: false)
            let location = try #require(created.head.fields["location"])
            let port = receiver.port
            let socket = try await onThread {
                let socket = try RawSocket(port: port)
                let fields = [
                    "PATCH \(location) HTTP/1.1", "Host: a", "Content-Type: application/partial-upload",
                    "Upload-Complete: ?0", "Upload-Offset: 5", "Content-Length: 99999999",
                ]
                try socket.send(fields.joined(separator: "\r\n") + "\r\n\r\n")
                return socket
            }
            // Ends when the server closes the connection.
            let dripping = Task {
                try? await onThread {
                    while true {
                        try socket.send("x")
                        RawSocket.pause(milliseconds: 5)
                    }
                }
            }
            let body = receiver.directory.appending(".unfinished").appending(String(location.suffix(32)))
                .appending("body")
            try await eventually { (try? Data(contentsOf: URL(filePath: body.string)).count) ?? 0 > 5 }
            let offset = try #require(try await sender.head(location).offset)
            #expect(offset > 5)
            _ = await dripping.value
            // The offset is still the one to resume at.
            #expect(try await sender.append("y".utf8, at: offset, isComplete: false, to: location).status == 204)
        }
    }

    /// The request that begins or continues an upload, up to its body.
    private static func head(_ line: String, _ fields: [String], contentLength: Int) -> String {
        ([line + " HTTP/1.1", "Host: a", "Content-Length: \(contentLength)"] + fields).joined(separator: "\r\n")
            + "\r\n\r\n"
    }

    private static func creation(contentLength: Int) -> String {
        head(
            "POST /uploads", [Form.contentType, "Upload-Complete: ?1", "Upload-Draft-Interop-Version: 8"],
            contentLength: contentLength)
    }

    private static func append(
        _ location: String, at offset: Int64, contentLength: Int, fields: [String] = []
    ) -> String {
        let own = ["Content-Type: application/partial-upload", "Upload-Complete: ?1", "Upload-Offset: \(offset)"]
        return head("PATCH \(location)", own + fields, contentLength: contentLength)
    }

    /// Continues an upload, and returns once its bytes are asked for.
    private static func beginAppend(
        _ form: LargeForm, to location: String, at offset: Int64, of receiver: RunningReceiver
    ) async throws -> RawSocket {
        let socket = try RawSocket(port: receiver.port)
        let length = form.bytes.count - Int(offset)
        let head = append(location, at: offset, contentLength: length, fields: ["Expect: 100-continue"])
        try await socket.send(head)
        let text = try await socket.receiveHead()
        #expect(text.hasPrefix("HTTP/1.1 100"))
        return socket
    }

    private static func location(in text: String) throws -> String {
        let line = try #require(text.split(separator: "\r\n").first { $0.lowercased().hasPrefix("location:") })
        return String(try #require(line.split(separator: " ").last))
    }

    /// Begins an upload and leaves it after some bytes of its body, with the connection open.
    private static func begin(
        _ form: LargeForm, bytes: Int, at receiver: RunningReceiver
    ) async throws -> (socket: RawSocket, location: String) {
        let socket = try RawSocket(port: receiver.port)
        try await socket.send(creation(contentLength: form.bytes.count))
        let text = try await socket.receiveHead()
        #expect(text.hasPrefix("HTTP/1.1 104 Upload Resumption Supported\r\n"))
        try await socket.send(Array(form.bytes[..<bytes]))
        return (socket, try location(in: text))
    }

    @Test func `fifty cuts in one upload end in the record of the original`() async throws {
        let form = LargeForm(bytes: 2_000_000)
        // On a busy machine a sender may be slower than a receiver usually accepts.
        try await withCurlSender(.newest) {
            $0.connections.gracePeriod = .seconds(300)
        } _: { sender, receiver in
            var generator = SeededGenerator(seed: 7)
            let (first, location) = try await Self.begin(form, bytes: 10_000, at: receiver)
            first.abort()
            var silent: [RawSocket] = []
            var last: Int64 = 0
            for cut in 0..<50 {
                let offset = try #require(try await sender.head(location).offset)
                #expect(offset >= last)
                last = offset
                let count = Int.random(in: 0...80_000, using: &generator)
                let end = min(Int(offset) + count, form.bytes.count - 1)
                let socket = try RawSocket(port: receiver.port)
                let head = Self.append(location, at: offset, contentLength: form.bytes.count - Int(offset))
                try await socket.send(Array(head.utf8) + form.bytes[Int(offset)..<end])
                // Some are cut by a reset, some half-closed, and some just stay silent.
                switch cut % 3 {
                case 0: socket.abort()
                case 1: socket.closeInput()
                default: break
                }
                silent.append(socket)
            }
            var offset = try #require(try await sender.head(location).offset)
            var response = try await sender.append(
                form.bytes[Int(offset)...], at: offset, isComplete: true, to: location)
            // The server may have started with the last cut request only after the question, which overtook it.
            if response.status == 409 {
                offset = try #require(response.offset)
                response = try await sender.append(
                    form.bytes[Int(offset)...], at: offset, isComplete: true, to: location)
            }
            #expect(response.status == 201)
            let record = try UploadRecord(json: Data(response.body.utf8))
            let file = try await receiver.curl(receiver.url + record.files[0].url)
            #expect(Array(file.output) == form.content)
            #expect(try receiver.records.count == 1)
        }
    }

    @Test func `asking for the offset ends an append that its sender has given up, and keeps what came`() async throws {
        let form = LargeForm(bytes: 500_000)
        // On a busy machine the server may have the time to report progress.
        let configure: (inout Receiver) -> Void = { $0.uploads.resumption?.progressInterval = .seconds(3600) }
        try await withCurlSender(.newest, configure) { sender, receiver in
            let (socket, location) = try await Self.begin(form, bytes: 400_000, at: receiver)
            let body = receiver.directory.appending(".unfinished").appending(String(location.suffix(32)))
                .appending("body")
            // An append that is overtaken gets a fifth of a second for what has arrived, which a busy machine may need.
            try await eventually { (try? Data(contentsOf: URL(filePath: body.string)).count) == 400_000 }
            // What has left the sender is taken first; what was answered does not change any more.
            let offset = try #require(try await sender.head(location).offset)
            #expect(offset == 400_000)
            #expect(try await socket.receiveRest() == "")
            #expect(try await sender.head(location).offset == offset)
            let response = try await sender.append(
                form.bytes[Int(offset)...], at: offset, isComplete: true, to: location)
            #expect(response.status == 201)
        }
    }

    @Test func `an append ends the one before, and cancelling ends it too`() async throws {
        let form = LargeForm(bytes: 500_000)
        try await withCurlSender { sender, receiver in
            let (first, location) = try await Self.begin(form, bytes: 100_000, at: receiver)
            let offset = try #require(try await sender.head(location).offset)
            let second = try await Self.beginAppend(form, to: location, at: offset, of: receiver)
            try await second.send(Array(form.bytes[Int(offset)..<(Int(offset) + 1000)]))
            let third = try await sender.append("x".utf8, at: 499_999, isComplete: false, to: location)
            #expect(third.status == 409)
            #expect(try await second.receiveRest() == "")
            let rest = try #require(third.offset)
            let fourth = try await Self.beginAppend(form, to: location, at: rest, of: receiver)
            #expect(try await sender.request("DELETE", location).status == 204)
            #expect(try await fourth.receiveRest() == "")
            #expect(try await sender.head(location).status == 404)
            #expect(try receiver.records.isEmpty)
            #expect(receiver.unfinished.isEmpty)
            first.abort()
        }
    }

    @Test func `many requests for one upload at once come to one record`() async throws {
        let form = LargeForm(bytes: 300_000)
        try await withCurlSender { sender, receiver in
            let location = try #require(
                try await sender.create(form.bytes, isComplete: false).head.fields["location"])
            let length = Int64(form.bytes.count)
            let bodies = try await withThrowingTaskGroup { group in
                for index in 0..<30 {
                    group.addTask {
                        switch index % 3 {
                        case 0: return try? await sender.append([], at: length, isComplete: true, to: location)
                        case 1: return try? await sender.head(location)
                        default: return try? await sender.append([], at: 1, isComplete: true, to: location)
                        }
                    }
                }
                return try await group.reduce(into: Set<String>()) { bodies, response in
                    if let response, response.status == 201 { bodies.insert(response.body) }
                }
            }
            let last = try await sender.append([], at: length, isComplete: true, to: location)
            // One of the others may have completed the upload. If its connection was then ended, nobody has the record.
            #expect(last.status == 201 || (last.status == 400 && last.body.contains("completed-upload")))
            let kept = try await sender.request("GET", location)
            #expect(kept.status == 201)
            #expect(bodies.isSubset(of: [kept.body]))
            #expect(try receiver.records.count == 1)
        }
    }

    @Test func `the sender's key holds for its form however it comes`() async throws {
        try await withCurlSender { sender, receiver in
            let plain = try await receiver.exchange(
                Form.request(body: Form.small, fields: ["Idempotency-Key: \"k\""]))
            #expect(plain.status == 201)
            let body = Array(Form.small.utf8)
            let created = try await sender.create(body[..<10], isComplete: false, fields: ["Idempotency-Key: k"])
            let location = try #require(created.head.fields["location"])
            let last = try await sender.append(body[10...], at: 10, isComplete: true, to: location)
            #expect(last.status == 201)
            #expect(last.body == plain.body)
            #expect(try receiver.records.count == 1)
        }
    }

    @Test func `an upload is looked at by its rules and screening, and what fails for now can be asked again`()
        async throws
    {
        let isBroken = Flag()
        try await withCurlSender(.newest) { receiver in
            receiver.uploads.screen = { _ in
                if isBroken.isSet { throw CancellationError() }
                return .accepted
            }
        } _: { sender, receiver in
            let form = LargeForm(bytes: 1000)
            let location = try #require(
                try await sender.create(form.bytes, isComplete: false).head.fields["location"])
            isBroken.isSet = true
            let failed = try await sender.append(
                [], at: Int64(form.bytes.count), isComplete: true, to: location)
            #expect(failed.status == 503)
            #expect(failed.isComplete(in: .newest) == false)
            #expect(try await sender.head(location).isComplete(in: .newest) == false)
            isBroken.isSet = false
            let last = try await sender.append([], at: Int64(form.bytes.count), isComplete: true, to: location)
            #expect(last.status == 201)
            #expect(try receiver.records.count == 1)
        }
    }
}

extension RawSocket {
    fileprivate func receiveHead() async throws -> String { try await receive(until: "\r\n\r\n") }

    /// What comes until the end; a reset is one too.
    fileprivate func receiveRest() async throws -> String {
        do {
            return String(decoding: try await receiveAll(), as: UTF8.self)
        } catch Errno.connectionReset {
            return ""
        }
    }
}

/// A switch that a test turns while a receiver looks at it.
private final class Flag: Sendable {
    private let value = Mutex(false)

    var isSet: Bool {
        get { value.withLock { $0 } }
        set { value.withLock { $0 = newValue } }
    }
}
