import Crypto
import Foundation
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

/// Large uploads to `postcard serve` that are cut, and whose receiver is killed.
@Suite(.timeLimit(.minutes(10))) struct ResumedUploadTests {
    private struct Record: Decodable {
        struct File: Decodable {
            let size: Int
            let sha256: String
        }
        let files: [File]
    }

    private static func setting(_ name: String, unless value: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap(Int.init) ?? value
    }

    private static var size: Int { setting("POSTCARD_RESUMED_MB", unless: 32) << 20 }

    /// The share of a form that may be sent twice: 2 % where nothing else runs. It is checked only on request, since a
    /// receiver that gets no processor time has megabytes unread when its sender is cut off.
    private static var waste: Double? {
        ProcessInfo.processInfo.environment["POSTCARD_WASTED_PERCENT"].flatMap(Double.init).map { $0 / 100 }
    }

    private static func client(_ carrier: Carrier) -> UploadClient {
        var client = UploadClient(transport: carrier.transport())
        client.resumption = ResumptionPolicy(retryPolicy: RetryPolicy(maximumAttempts: 1000))
        client.resumption?.retryPolicy.firstDelay = .milliseconds(10)
        client.resumption?.retryPolicy.maximumDelay = .milliseconds(100)
        return client
    }

    /// Uploads a form, and checks that what is recorded is what was sent, and that no append repeats what the receiver
    /// had already stored.
    private static func upload(
        _ carrier: Carrier, through proxy: FaultProxy, from folder: TemporaryFolder
    ) async throws {
        let random = try FileHandle(forReadingFrom: URL(filePath: "/dev/urandom"))
        let content = try #require(try random.read(upToCount: size))
        let file = try folder.file("film.mov", content)
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: file, named: "film")
        let length = try #require(try form.layout().contentLength)
        let witness = ProgressWitness()
        let response = try await client(carrier).upload(form, to: proxy.uploads) { witness.note($0.bytesSent) }
        let sent = try #require(try response.decode(Record.self).files.first)
        #expect(sent.size == content.count)
        #expect(sent.sha256 == SHA256.hash(data: content).map { String(format: "%02x", $0) }.joined())
        #expect(!witness.hasFallen && witness.last == length)
        let offsets = proxy.seen.filter { $0.method == "PATCH" }.compactMap { $0["Upload-Offset"].flatMap(Int.init) }
        #expect(offsets == offsets.sorted() && (offsets.last ?? 0) > 0, "\(offsets)")
        guard let waste else { return }
        let wasted = proxy.receivedBytes - Int(length)
        #expect(Double(wasted) < waste * Double(length), "\(wasted) of \(length) bytes, \(response.attempts) attempts")
    }

    @Test(arguments: Carrier.allCases)
    func `cut at any bytes, a form arrives as it was, and resumes where it was cut`(carrier: Carrier) async throws {
        let cuts = Cuts(Self.setting("POSTCARD_CUTS", unless: 3), in: Self.size)
        let folder = try TemporaryFolder()
        let receiver = try await ReceivingServer()
        try await FaultProxy.run(before: receiver.url) {
            cuts.fault(of: $0)
        } while: { proxy in
            try await Self.upload(carrier, through: proxy, from: folder)
        }
        #expect(cuts.left == 0)
        #expect(try await receiver.end().records.count == 1)
    }

    @Test func `a form passes a proxy with a limit that no one announced, and is refused once`() async throws {
        let limit = 10_000_000
        let folder = try TemporaryFolder()
        let receiver = try await ReceivingServer()
        let refusals = Mutex(0)
        try await FaultProxy.run(before: receiver.url) { request in
            guard let length = request["Content-Length"].flatMap(Int.init), length > limit else { return .none }
            refusals.withLock { $0 += 1 }
            return .earlyResponse(Fault.Response(413, ["Server": "nginx"]), atByte: 0, .reading)
        } while: { proxy in
            try await Self.upload(.asyncHTTP, through: proxy, from: folder)
            let appends = proxy.seen.filter { $0.method == "PATCH" }
                .compactMap { $0["Content-Length"].flatMap(Int.init) }
            #expect(appends.dropFirst().allSatisfy { $0 <= 8_000_000 }, "\(appends)")
        }
        #expect(refusals.withLock { $0 } == 1)
        #expect(try await receiver.end().records.count == 1)
    }

    @Test(arguments: Carrier.allCases)
    func `a receiver that is killed again and again goes on from what it had`(carrier: Carrier) async throws {
        let kills = Self.setting("POSTCARD_RECEIVER_KILLS", unless: 3)
        let folder = try TemporaryFolder()
        let received = folder.url.appending(path: "received")
        let port = try ReservedPort()
        let options = ["serve", "--port", "\(port.number)", "--directory", received.path]
        let first = try await RunningServer(options)
        let address = try #require(URL(string: first.address))
        let last = try await FaultProxy.run(before: address) { _ in
            .none
        } while: { proxy in
            let killing = Task {
                var receiver = first
                for byte in (0..<kills).map({ _ in Int.random(in: Self.size / 4..<Self.size * 9 / 10) }).sorted() {
                    await proxy.waitForBody(of: byte)
                    if Task.isCancelled { break }
                    receiver.kill()
                    receiver = try await RunningServer(options)
                }
                return receiver
            }
            defer { killing.cancel() }
            try await Self.upload(carrier, through: proxy, from: folder)
            return try await killing.value
        }
        _ = await last.terminate()
        withExtendedLifetime(port) {}
        let names = try FileManager.default.contentsOfDirectory(atPath: received.path).filter { !$0.hasPrefix(".") }
        #expect(names.count == 1)
    }

    @Test(arguments: ["async-http", "urlsession"])
    func `postcard send goes on after a cut`(transport: String) async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("film.mov", size: 3_000_000)
        let cuts = Cuts(at: [1_000_000])
        let receiver = try await ReceivingServer()
        try await FaultProxy.run(before: receiver.url) {
            cuts.fault(of: $0)
        } while: { proxy in
            let ending = try await Program.run([
                "send", proxy.uploads.absoluteString, "-F", "film=@\(file.path)", "--resumable", "--transport",
                transport,
                "--json",
            ])
            #expect(ending.status == 0, "\(ending.messages)")
            let report = try ending.json()
            #expect(report["attempts"] as? Int == 2 && report["status"] as? Int == 201)
            #expect(report["bytesSent"] as? Int ?? 0 > 3_000_000)
        }
        #expect(try await receiver.end().records.count == 1)
    }
}
