import Foundation
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ResumptionLimitTests {
    private static func limit(_ count: Int, share: Double) -> (inout Receiver) -> Void {
        { receiver in
            receiver.uploads.resumption?.maximumUnfinished = count
            receiver.uploads.clientShare = share
        }
    }

    private static func location(of response: CurlResponse) throws -> String {
        try #require(response.head.fields["location"], "\(response)")
    }

    /// The beginning of a form that is worth keeping for longer than a test takes.
    private static let valuable = LargeForm(bytes: 2_000_000).bytes.prefix(1_000_000)

    @Test func `an upload makes room for another once it is older than its bytes take to send, the oldest first`()
        async throws
    {
        try await withCurlSender(.newest, Self.limit(3, share: 1)) { sender, receiver in
            func created(_ bytes: some Collection<UInt8>) async throws -> String {
                try Self.location(of: try await sender.create(bytes, isComplete: false))
            }
            func exists(_ locations: [String]) async throws -> [Bool] {
                var exist: [Bool] = []
                for location in locations { exist.append(try await sender.head(location).status == 204) }
                return exist
            }
            let kept = try await created(Self.valuable)
            let (first, second) = (try await created([]), try await created("--b".utf8))
            let third = try await created([])
            #expect(try await exists([kept, first, second, third]) == [true, false, true, true])
            _ = try await created(Self.valuable)
            #expect(try await exists([kept, second, third]) == [true, false, true])
            _ = try await created(Self.valuable)
            #expect(try await exists([kept, third]) == [true, false])
            // Nothing is left that could make room.
            #expect(try await sender.create([], isComplete: false).status == 503)
            #expect(receiver.unfinished.count == 3)
        }
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `uploads of a few bytes, from many addresses, keep no room from a newcomer`() async throws {
        try await withCurlSender(.newest, Self.limit(16, share: 0.25)) { sender, receiver in
            var other = sender
            for address in 2...9 {
                other.options = ["--interface", "127.0.0.\(address)"]
                for _ in 0..<4 { _ = try await other.create("--b\r\n".utf8, isComplete: false) }
            }
            #expect(receiver.unfinished.count > 10)
            let first = try Self.location(of: try await sender.create(Self.valuable, isComplete: false))
            for _ in 0..<10 { #expect(try await sender.create("--b\r\n".utf8, isComplete: false).status == 201) }
            #expect(try await sender.head(first).status == 204)
            #expect(receiver.unfinished.count <= 16)
        }
    }

    @Test func `an upload without bytes makes room after a restart too`() async throws {
        try await withTemporaryDirectory { directory in
            for _ in 0..<2 {
                try await withReceiver(in: directory, Self.limit(2, share: 1)) { receiver in
                    let sender = try CurlSender(to: receiver)
                    defer { sender.removeFiles() }
                    for _ in 0..<3 { _ = try Self.location(of: try await sender.create([], isComplete: false)) }
                    #expect(receiver.unfinished.count == 2)
                }
            }
        }
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `the unfinished uploads of one address leave room for another's`() async throws {
        try await withCurlSender(.newest, Self.limit(8, share: 0.25)) { sender, receiver in
            var other = sender
            other.options = ["--interface", "127.0.0.2"]
            let empty = try Self.location(of: try await other.create([], isComplete: false))
            for _ in 0..<10 { #expect(try await sender.create([], isComplete: false).status == 201) }
            #expect(receiver.unfinished.count == 3)
            #expect(try await other.head(empty).status == 204)
            for _ in 0..<2 { _ = try await sender.create(Self.valuable, isComplete: false) }
            let refused = try await sender.create("0123456789".utf8, isComplete: false)
            #expect(refused.status == 429)
            #expect(refused.problem?.code == "too-many-unfinished-uploads-of-client")
            #expect(refused.problem?.limit?.name == "maximumUnfinishedOfClient")
            #expect(try await other.create("0123456789".utf8, isComplete: false).status == 201)
        }
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `the bytes of one address's unfinished uploads leave room for another's`() async throws {
        let configure: (inout Receiver) -> Void = {
            $0.uploads.resumption?.maximumUnfinishedBytes = 10_000_000
            $0.uploads.clientShare = 0.25
        }
        try await withCurlSender(.newest, configure) { sender, _ in
            let form = LargeForm(bytes: 6_000_000)
            let announcing = ["Upload-Length: 1000000"]
            let first = try Self.location(of: try await sender.create(form.bytes[..<2_000_000], isComplete: false))
            let announced = try await sender.create([], isComplete: false, fields: announcing)
            #expect(announced.status == 429)
            #expect(announced.problem?.code == "too-many-unfinished-uploads-of-client")
            #expect(announced.problem?.limit?.name == "maximumUnfinishedBytesOfClient")
            #expect(announced.problem?.limit?.value == 2_250_000)
            let empty = try Self.location(of: try await sender.create([], isComplete: false))
            let late = try await sender.append([], at: 0, isComplete: false, to: empty, fields: announcing)
            #expect(late.status == 429)
            let unannounced = try await sender.append(form.bytes[..<1_000_000], at: 0, isComplete: false, to: empty)
            #expect(unannounced.status == 429)
            #expect(try #require(try await sender.head(empty).offset) <= 250_000)
            // A single upload may be larger than the share.
            var other = sender
            other.options = ["--interface", "127.0.0.2"]
            #expect(try await other.create(form.bytes[..<3_000_000], isComplete: false).status == 201)
            _ = try await sender.request("DELETE", first)
            #expect(try await sender.create([], isComplete: false, fields: announcing).status == 201)
        }
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `uploads of an address make no room for the bytes of another`() async throws {
        let configure: (inout Receiver) -> Void = { $0.uploads.resumption?.maximumUnfinishedBytes = 100_000 }
        try await withCurlSender(.newest, configure) { sender, _ in
            var (large, small) = (sender, sender)
            large.options = ["--interface", "127.0.0.2"]
            small.options = ["--interface", "127.0.0.3"]
            let form = LargeForm(bytes: 100_000).bytes
            _ = try Self.location(of: try await large.create(form[..<40_000], isComplete: false))
            // It is soon worth little.
            let kept = try Self.location(of: try await small.create("--b".utf8, isComplete: false))
            let announced = try await sender.create([], isComplete: false, fields: ["Upload-Length: 40000"])
            #expect(announced.status == 503)
            #expect(announced.problem?.code == "too-many-unfinished-uploads")
            let created = try Self.location(of: try await sender.create([], isComplete: false))
            let sent = try await sender.append(form[..<40_000], at: 0, isComplete: false, to: created)
            #expect([429, 503].contains(sent.status))
            #expect(try await small.head(kept).status == 204)
        }
    }

    @Test func `bytes that arrive make the uploads of their address give way that are worth less`() async throws {
        let configure: (inout Receiver) -> Void = { $0.uploads.resumption?.maximumUnfinishedBytes = 1000 }
        try await withCurlSender(.newest, configure) { sender, _ in
            let form = LargeForm(bytes: 10_000).bytes
            let first = try Self.location(of: try await sender.create(form[..<100], isComplete: false))
            let second = try Self.location(of: try await sender.create(form[..<100], isComplete: false))
            // Two together may have a quarter, and one alone half.
            while try #require(try await sender.head(second).offset) < 400 {
                let offset = try #require(try await sender.head(second).offset)
                _ = try await sender.append(form[Int(offset)..<400], at: offset, isComplete: false, to: second)
            }
            #expect(try await sender.head(first).status == 404)
        }
    }

    @Test func `a length that is announced without bytes makes room for another`() async throws {
        let configure: (inout Receiver) -> Void = { $0.uploads.resumption?.maximumUnfinishedBytes = 100_000 }
        try await withCurlSender(.newest, configure) { sender, _ in
            var locations: [String] = []
            for _ in 0..<3 {
                let created = try await sender.create([], isComplete: false, fields: ["Upload-Length: 10000"])
                locations.append(try Self.location(of: created))
            }
            #expect(try await sender.head(locations[0]).status == 404)
            for location in locations[1...] { #expect(try await sender.head(location).status == 204) }
        }
    }

    @Test func `a length that is announced later makes uploads of its address give way too`() async throws {
        let configure: (inout Receiver) -> Void = { $0.uploads.resumption?.maximumUnfinishedBytes = 100_000 }
        try await withCurlSender(.newest, configure) { sender, _ in
            let abandoned = try await sender.create([], isComplete: false, fields: ["Upload-Length: 20000"])
            let location = try Self.location(of: try await sender.create([], isComplete: false))
            let form = LargeForm(bytes: 15_000).bytes
            #expect(try await sender.append(form, at: 0, isComplete: true, to: location).status == 201)
            #expect(try await sender.head(try Self.location(of: abandoned)).status == 404)
        }
    }

    @Test func `as many uploads are kept as may be, and a form that needs no keeping is taken all the same`()
        async throws
    {
        try await withCurlSender(.newest, Self.limit(2, share: 1)) { sender, receiver in
            let first = try await sender.create(Self.valuable, isComplete: false)
            _ = try await sender.create(Self.valuable, isComplete: false)
            let third = try await sender.create([], isComplete: false)
            #expect(third.status == 503)
            #expect(third.problem?.code == "too-many-unfinished-uploads")
            #expect(third.head.fields["retry-after"] == "60")
            let whole = try await sender.create(Form.small.utf8, isComplete: true)
            #expect(whole.status == 201)
            #expect(whole.interim.isEmpty)
            let location = try #require(first.head.fields["location"])
            #expect(try await sender.request("DELETE", location).status == 204)
            #expect(try await sender.create([], isComplete: false).status == 201)
            #expect(try receiver.records.count == 1)
        }
    }

    @Test func `bytes are kept up to the limit, and the upload resumes when there is room again`() async throws {
        let form = LargeForm(bytes: 100_000)
        let configure: @Sendable (inout Receiver) -> Void = {
            $0.uploads.resumption?.maximumUnfinishedBytes = 120_000
            $0.uploads.clientShare = 1
        }
        try await withCurlSender(.newest, configure) { sender, receiver in
            let other = try #require(
                try await sender.create(form.bytes[..<50_000], isComplete: false).head.fields["location"])
            let location = try #require(try await sender.create([], isComplete: false).head.fields["location"])
            // The last bytes announce the length, and are refused before they are read.
            for isComplete in [true, false] {
                let refused = try await sender.append(form.bytes, at: 0, isComplete: isComplete, to: location)
                #expect(refused.status == 503)
                #expect(refused.problem?.code == "too-many-unfinished-uploads")
                if isComplete { #expect(try await sender.head(location).offset == 0) }
            }
            let offset = try #require(try await sender.head(location).offset)
            #expect(offset <= 70_000)
            _ = try await sender.request("DELETE", other)
            let last = try await sender.append(
                form.bytes[Int(offset)...], at: offset, isComplete: true, to: location)
            #expect(last.status == 201)
            #expect(try receiver.records.count == 1)
        }
    }

    @Test func `the longest length there is has no room, even if a body may have any length`() async throws {
        try await withCurlSender(.newest, { $0.uploads.limits.maximumBodyBytes = .max }) { sender, receiver in
            let location = try Self.location(of: try await sender.create("--b".utf8, isComplete: false))
            let head = [
                "PATCH \(location) HTTP/1.1", "Host: a", "Content-Type: application/partial-upload",
                "Upload-Complete: ?1", "Upload-Offset: 3", "Content-Length: \(Int64.max)",
            ]
            let refused = try await receiver.exchange(
                head.joined(separator: "\r\n") + "\r\n\r\n", closingInput: true)
            #expect(refused.status == 429)
            #expect(refused.problem?.code == "too-many-unfinished-uploads-of-client")
            #expect(try await sender.head(location).offset == 3)
        }
    }

    @Test func `as many responses are kept as may be, the oldest forgotten first`() async throws {
        try await withCurlSender(.interop8, { $0.uploads.resumption?.maximumKeptResponses = 1 }) { sender, receiver in
            var locations: [String] = []
            for _ in 0..<2 {
                let response = try await sender.create(Form.small.utf8, isComplete: true)
                locations.append(try #require(response.interim.first?.fields["location"]))
            }
            #expect(try await sender.head(locations[0]).status == 404)
            #expect(try await sender.head(locations[1]).status == 204)
            #expect(receiver.unfinished.count == 1)
            #expect(try receiver.records.count == 2)
        }
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `a client that finishes many uploads pushes out no other client's response`() async throws {
        try await withCurlSender(.interop8, { $0.uploads.resumption?.maximumKeptResponses = 3 }) { sender, receiver in
            let response = try await sender.create(Form.small.utf8, isComplete: true)
            let location = try #require(response.interim.first?.fields["location"])
            let request = Form.request(
                body: Form.small, fields: ["Upload-Draft-Interop-Version: 8", "Upload-Complete: ?1"])
            for _ in 0..<6 {
                let status = try await onThread {
                    let socket = try RawSocket(port: receiver.port, from: "127.0.0.2")
                    try socket.send(request)
                    return try RawResponse(socket.receiveAll()).status
                }
                #expect(status == 201)
            }
            #expect(receiver.unfinished.count == 3)
            #expect(try await sender.head(location).status == 204)
        }
    }

    @Test func `no response is kept if none may be`() async throws {
        try await withCurlSender(.interop8, { $0.uploads.resumption?.maximumKeptResponses = 0 }) { sender, receiver in
            for count in 1...2 {
                let response = try await sender.create(Form.small.utf8, isComplete: true)
                #expect(response.status == 201)
                let location = try #require(response.interim.first?.fields["location"])
                try await eventually { receiver.unfinished.isEmpty }
                #expect(try await sender.head(location).status == 404)
                #expect(try receiver.records.count == count)
            }
        }
    }

    @Test func `the recorded requests do not show the address of an upload`() async throws {
        try await withCurlSender { sender, receiver in
            let created = try await sender.create(Form.small.utf8, isComplete: false)
            let location = try #require(created.head.fields["location"])
            _ = try await sender.append("x".utf8, at: 1, isComplete: false, to: location)
            let list = try await receiver.curl(receiver.url + "/requests").text
            let last = try await receiver.curl(receiver.url + "/requests/2").text
            #expect(list.contains("/uploads/resumable/***"))
            #expect(last.contains("mismatching-upload-offset"))
            for text in [list, last] { #expect(!text.contains(location.suffix(32))) }
        }
    }

    @Test func `an upload whose time is over is gone, at once and after a restart`() async throws {
        try await withTemporaryDirectory { directory in
            var location = ""
            try await withReceiver(in: directory) { receiver in
                let sender = try CurlSender(to: receiver)
                defer { sender.removeFiles() }
                location = try #require(
                    try await sender.create("0123456789".utf8, isComplete: false).head.fields["location"])
            }
            let folder = directory.appending(".unfinished").appending(String(location.suffix(32)))
            let facts = folder.appending("upload.json").string
            let json = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: facts)))
            var object = try #require(json as? [String: Any])
            object["expires"] = 0
            try JSONSerialization.data(withJSONObject: object).write(to: URL(filePath: facts))
            try await withReceiver(in: directory, { $0.uploads.resumption?.lifetime = .zero }) { receiver in
                let sender = try CurlSender(to: receiver)
                defer { sender.removeFiles() }
                #expect(!FileManager.default.fileExists(atPath: folder.string))
                #expect(try await sender.head(location).status == 404)
                let created = try await sender.create("0123456789".utf8, isComplete: false)
                #expect(created.head.fields["upload-limit"]?.hasSuffix("max-age=0") == true)
                #expect(try await sender.head(try #require(created.head.fields["location"])).status == 404)
                #expect(receiver.unfinished.isEmpty)
            }
        }
    }

    @Test(.enabled(if: SmallDisk.isPossible, "A small disk cannot be mounted here."))
    func `a full disk keeps what there is room for, and the upload resumes when there is more`() async throws {
        try await SmallDisk.with(megabytes: 4) { disk in
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = 0 }) { receiver in
                let sender = try CurlSender(to: receiver)
                defer { sender.removeFiles() }
                let form = LargeForm(bytes: 1_000_000)
                let location = try #require(
                    try await sender.create([], isComplete: false).head.fields["location"])
                let filler = disk.appending("filler").string
                _ = try await Program.run("dd", ["if=/dev/zero", "of=\(filler)", "bs=64k", "count=55"])
                let full = try await sender.append(form.bytes, at: 0, isComplete: true, to: location)
                #expect(full.status == 503)
                #expect(full.problem?.code == "store-full")
                let offset = try #require(try await sender.head(location).offset)
                #expect(offset < form.bytes.count)
                try FileManager.default.removeItem(atPath: filler)
                let last = try await sender.append(
                    form.bytes[Int(offset)...], at: offset, isComplete: true, to: location)
                #expect(last.status == 201)
                let record = try UploadRecord(json: Data(last.body.utf8))
                let file = try await receiver.curl(receiver.url + record.files[0].url)
                #expect(Array(file.output) == form.content)
            }
        }
    }
}
