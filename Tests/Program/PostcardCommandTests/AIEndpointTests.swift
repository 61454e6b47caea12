import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import PostcardClient
import PostcardForm
import PostcardSamples
import PostcardServer
import PostcardTestSupport
import ServiceLifecycle
import Testing

/// A service with the documented rules of OpenAI's endpoints for forms. Its answers say what it has received.
private enum Service {
    struct Recording: Decodable {
        var model: String
        var granularities: [String]?
        var file: FormFile

        enum CodingKeys: String, CodingKey { case model, granularities = "timestamp_granularities", file }
    }

    struct Document: Decodable {
        struct Expiry: Decodable {
            var anchor: String
            var seconds: Int
        }

        var purpose: String
        var expiry: Expiry
        var file: FormFile

        enum CodingKeys: String, CodingKey { case purpose, expiry = "expires_after", file }
    }

    static func router() throws -> Router<BasicRequestContext> {
        let router = Router()
        router.add(middleware: ProblemMiddleware())
        var options = FormReadingOptions()
        options.rules = try Transcription.rules()
        router.post("v1/audio/transcriptions") { [options] request, _ in
            guard request.headers[.authorization] == "Bearer token" else { throw HTTPError(.unauthorized) }
            let recording = try await request.decodeForm(Recording.self, options: options)
            let words = [recording.model, recording.file.filename, digest(of: try recording.file.data())]
            return ["text": (words + (recording.granularities ?? [])).joined(separator: " ")]
        }
        addEdits(to: router) { edit in
            let digests = try edit.image.map { try digest(of: $0.data()) }
            return Data(([edit.model, edit.prompt] + digests).joined(separator: " ").utf8)
        }
        router.post("v1/files") { request, _ in
            let document = try await request.decodeForm(Document.self)
            let (expiry, name) = (document.expiry, document.file.filename)
            return ["filename": "\(document.purpose) \(expiry.anchor) \(expiry.seconds) \(name)"]
        }
        return router
    }
}

private func digest(of bytes: Data) -> String {
    SHA256.hash(data: bytes).prefix(8).map { String($0, radix: 16) }.joined()
}

@Suite("Forms for AI endpoints", .timeLimit(.minutes(10)))
struct AIEndpointTests {
    private let folder: TemporaryFolder
    private let recording: URL
    private let pictures: [URL]

    init() throws {
        folder = try TemporaryFolder()
        let sound = Data("\0\0\0\u{20}ftypM4A ".utf8) + Data(repeating: 7, count: 100_000)
        recording = try folder.file("memo.m4a", sound)
        pictures = try SamplePictures.all().filter { $0.pathExtension == "png" || $0.pathExtension == "jpg" }
    }

    private func withService(_ body: (URL) async throws -> Void) async throws {
        let (ports, continuation) = AsyncStream<Int>.makeStream()
        let application = Application(
            router: try Service.router(), server: .uploads(),
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in continuation.yield(channel.localAddress?.port ?? 0) },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let group = ServiceGroup(services: [application], logger: application.logger)
        let running = Task {
            defer { continuation.finish() }
            try await group.run()
        }
        if let port = await ports.first(where: { _ in true }) {
            do {
                try await body(#require(URL(string: "http://127.0.0.1:\(port)/v1")))
            } catch {
                await group.triggerGracefulShutdown()
                throw error
            }
            await group.triggerGracefulShutdown()
        }
        try await running.value
    }

    @Test
    func `a service receives what OpenAI's client for Python sends`() async throws {
        let python = Repository.url(".build/receivers/bin/python")
        let script = Repository.url("Tests/Senders/send_openai.py")
        try Tool.require(python.path)
        try await withService { url in
            let ending = try await Program.run(
                python.path, [script.path, url.absoluteString, recording.path] + pictures.map(\.path))
            #expect(ending.status == 0, "\(ending.messages)")
            let lines = ending.text.split(separator: "\n")
            try #require(lines.count == 3)
            let sound = try digest(of: Data(contentsOf: recording))
            #expect(lines[0] == "gpt-transcribe memo.m4a \(sound) word segment")
            let edit = try #require(Data(base64Encoded: String(lines[1])))
            #expect(String(decoding: edit, as: UTF8.self) == (try expectedEdit(prompt: "모자")))
            #expect(lines[2] == "user_data created_at 3600 memo.m4a")
        }
    }

    private func expectedEdit(prompt: String) throws -> String {
        (["gpt-image-2", prompt] + (try pictures.map { try digest(of: Data(contentsOf: $0)) })).joined(separator: " ")
    }

    @Test
    func `the article's endpoints send what such a service receives`() async throws {
        try await withService { url in
            let transcript = try await transcribed(recording, by: url, of: Account())
            #expect(transcript.text == "gpt-transcribe memo.m4a \(try digest(of: Data(contentsOf: recording)))")
            let edit = PictureEdit(baseURL: url, prompt: "모자", pictures: pictures)
            let answer = try await UploadClient().upload(edit)
            let edited = try #require(answer.data.first.flatMap { Data(base64Encoded: $0.base64) })
            #expect(String(decoding: edited, as: UTF8.self) == (try expectedEdit(prompt: "모자")))
        }
    }

    @Test(arguments: ["flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"])
    func `each documented extension passes the article's rules`(name: String) throws {
        let type = try #require(MediaType.forExtension(of: "memo.\(name)"))
        let types = try #require(try Transcription.rules().files["file"]?.types)
        #expect(types.contains(MediaRange(type)), "\(type)")
    }

    @Test
    func `another type or too many bytes are an error that says what to do, before anything is sent`() async throws {
        let nowhere = try #require(URL(string: "http://127.0.0.1:1/v1"))
        let other = try folder.file("memo.aac", [0xFF, 0xF1, 0x50, 0x80])
        let large = try folder.file("large.m4a", Data("\0\0\0\u{20}ftypM4A ".utf8))
        let handle = try FileHandle(forWritingTo: large)
        try handle.truncate(atOffset: 25_000_001)
        try handle.close()
        for (file, words) in [(other, "audio/flac"), (large, "25000000")] {
            let error = await #expect(throws: UploadError.self) {
                try await transcribed(file, by: nowhere, of: Account())
            }
            #expect(error?.code == .brokenRule)
            let said = [error?.message, error?.advice].compactMap(\.self).joined(separator: " ")
            #expect(said.contains(words), "\(said)")
        }
    }
}
