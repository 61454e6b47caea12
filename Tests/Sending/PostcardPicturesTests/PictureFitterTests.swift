import Foundation
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardPictures

/// How the fitter carries out what is decided, with a codec whose pictures have as many bytes as a test says.
@Suite struct PictureFitterTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func file(_ name: String, width: Int, height: Int, bytes: Int = 2000) throws -> URL {
        try folder.file(name, TestPicture.jpegHead(width: width, height: height, bytes: bytes))
    }

    private var results: URL { folder.url.appending(component: "results") }

    private func filesLeft() -> [String] { (try? FileManager.default.contentsOfDirectory(atPath: results.path)) ?? [] }

    @Test func `a picture that fits is passed without its codec`() async throws {
        let photo = try file("a.jpg", width: 2560, height: 1000)
        let fitter = PictureFitter(codec: AbsentCodec())
        let fitted = try await fitter.fit(photo, to: PictureLimit(maximumBytes: 2000), in: results)
        #expect(fitted.isOriginal && fitted.encodings == 0 && fitted.quality == nil)
        #expect(fitted.bytes == 2000 && fitted.contentType == .jpeg)
        #expect(fitted.size == PictureSize(width: 2560, height: 1000))
        guard case .file(let url) = fitted.content else {
            Issue.record("not a file")
            return
        }
        #expect(url == photo)
    }

    @Test func `the best encoding is the one that is saved`() async throws {
        let photo = try file("a.jpg", width: 4000, height: 3000, bytes: 5_000_000)
        let fitter = PictureFitter(codec: SimulatedCodec { 1_300_000 * Double($0.quality) / 82 })
        let fitted = try await fitter.fit(photo, to: PictureLimit(maximumBytes: 1_000_000), in: results)
        guard case .file(let url) = fitted.content else {
            Issue.record("not a file")
            return
        }
        let saved = try Data(contentsOf: url)
        let quality = try #require(fitted.quality)
        #expect(saved.count == fitted.bytes)
        #expect(saved.first == UInt8(quality))
        #expect(fitted.bytes > 900_000 && fitted.bytes <= 1_000_000)
        #expect(!fitted.isOriginal && (2...6).contains(fitted.encodings))
        #expect(filesLeft().count == 1)
        // A photo is no one else's business, on a machine with several users.
        for (url, permissions) in [(url, 0o600), (results, 0o700)] {
            let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
            #expect(attributes[.posixPermissions] as? Int == permissions)
        }
    }

    @Test func `bytes in memory give bytes in memory`() async throws {
        let photo = Data(TestPicture.jpegHead(width: 4000, height: 3000, bytes: 3000))
        let fitted = try await PictureFitter(codec: SimulatedCodec { _ in 900 })
            .fit(photo, to: PictureLimit(maximumBytes: 1000))
        guard case .bytes(let bytes) = fitted.content else {
            Issue.record("not bytes")
            return
        }
        #expect(bytes.count == 900 && fitted.encodings == 1)
    }

    @Test func `a picture that cannot fit is an error that says how near it came`() async throws {
        let photo = try file("a.jpg", width: 4000, height: 3000, bytes: 90_000)
        let fitter = PictureFitter(codec: SimulatedCodec { _ in 5000 })
        let error = await #expect(throws: PictureFitError.self) {
            try await fitter.fit(photo, to: PictureLimit(maximumBytes: 4000), in: results)
        }
        #expect(error?.code == .cannotFit)
        #expect(error?.message.contains("5000 bytes with quality") == true)
        #expect(filesLeft().isEmpty)
    }

    @Test func `a picture with too many pixels is an error that says which limit it exceeds`() async throws {
        for (width, limit) in [(65_501, "65500"), (20_000, "100000000")] {
            let photo = try file("\(width).jpg", width: width, height: 20_000)
            let error = await #expect(throws: PictureFitError.self) {
                try await PictureFitter(codec: AbsentCodec()).fit(photo, to: PictureLimit(maximumBytes: 100))
            }
            #expect(error?.code == .tooManyPixels && error?.message.contains(limit) == true)
        }
    }

    @Test(arguments: [
        ("cut.jpg", [0xFF, 0xD8, 0xFF, 0xE0, 0x00], PictureFitError.Code.damaged),
        ("notes.jpg", Array("Dear Jeju".utf8), .unsupported), ("empty.jpg", [], .unsupported),
    ])
    func `the original is passed if the caller said so`(
        name: String, bytes: [UInt8], code: PictureFitError.Code
    ) async throws {
        let photo = try folder.file(name, bytes)
        let fitter = PictureFitter()
        var limit = PictureLimit(maximumBytes: 1)
        let (asked, results) = (limit, results)
        let error = await #expect(throws: PictureFitError.self) {
            try await fitter.fit(photo, to: asked, in: results)
        }
        #expect(error?.code == code || (!PictureFitter.isAvailable && error?.code == .builtWithoutPictures))
        #expect(error?.advice != nil)
        limit.onFailure = .sendOriginal
        let fitted = try await fitter.fit(photo, to: limit, in: results)
        #expect(fitted.isOriginal && fitted.bytes == bytes.count)
    }

    @Test func `a file that is not there is an error, and a folder too`() async throws {
        let limit = PictureLimit(maximumBytes: 1000)
        for url in [folder.url.appending(component: "none.jpg"), folder.url] {
            let error = await #expect(throws: PictureFitError.self) { try await PictureFitter().fit(url, to: limit) }
            #expect(error?.code == .unreadable)
        }
    }

    @Test func `a folder that cannot be written to is an error`() async throws {
        let photo = try file("a.jpg", width: 4000, height: 3000)
        let fitter = PictureFitter(codec: SimulatedCodec { _ in 900 })
        let error = await #expect(throws: PictureFitError.self) {
            try await fitter.fit(photo, to: PictureLimit(maximumBytes: 1000), in: photo)
        }
        #expect(error?.code == .notWritable)
    }

    @Test func `a build without codecs says how to get them`() async throws {
        let photo = try file("a.jpg", width: 4000, height: 3000)
        let error = await #expect(throws: PictureFitError.self) {
            try await PictureFitter(codec: AbsentCodec()).fit(photo, to: PictureLimit(maximumBytes: 100))
        }
        #expect(error?.code == .builtWithoutPictures)
        #expect(error?.advice?.contains("Scripts/set-up pictures") == true)
        #expect(error?.advice?.contains("libtiff 4.5 or newer") == true)
        // It fits, but nothing may be sent of this type.
        let heic = try folder.file("a.heic", Fixtures.heic[1] ?? [])
        let type = await #expect(throws: PictureFitError.self) {
            try await PictureFitter(codec: AbsentCodec()).fit(heic, to: PictureLimit(maximumBytes: 100_000))
        }
        #expect(type?.code == .builtWithoutPictures && type?.message.contains("not of an accepted type") == true)
    }

    @Test func `pictures are prepared one at a time`() async throws {
        let photo = try file("a.jpg", width: 4000, height: 3000)
        let codec = SimulatedCodec { _ in 900 }
        let fitter = PictureFitter(codec: codec)
        try await withThrowingTaskGroup { group in
            for _ in 0..<8 {
                group.addTask { try await fitter.fit(photo, to: PictureLimit(maximumBytes: 1000), in: results) }
            }
            try await group.waitForAll()
        }
        #expect(codec.mostAtOnce == 1)
        #expect(filesLeft().count == 8)
    }

    @Test func `cancelling ends between two encodings, and leaves no file`() async throws {
        let photo = try file("a.jpg", width: 4000, height: 3000)
        let task = Mutex<Task<FittedPicture, any Error>?>(nil)
        let fitter = PictureFitter(
            codec: SimulatedCodec { _ in
                task.withLock { $0?.cancel() }
                return 1200
            })
        let start = AsyncStream.makeStream(of: Void.self)
        let fitting = Task {
            for await _ in start.stream { break }
            return try await fitter.fit(photo, to: PictureLimit(maximumBytes: 1000), in: results)
        }
        task.withLock { $0 = fitting }
        start.continuation.yield()
        await #expect(throws: CancellationError.self) { try await fitting.value }
        #expect(filesLeft().isEmpty)
    }

    @Test func `cancelling a picture that waits for its turn lets the others go on`() async throws {
        let turns = PictureTurns(1)
        try await turns.wait()
        let waiting = Task { try await turns.wait() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        let next = Task { try await turns.wait() }
        turns.finish()
        try await next.value
        turns.finish()
        try await turns.wait()
    }

    @Test(arguments: [
        ("IMG_0001.HEIC", "IMG_0001.jpg"), ("cat.jpeg", "cat.jpeg"), ("cat", "cat.jpg"), ("", "picture.jpg"),
        ("a.b.png", "a.b.jpg"), ("version 1.2", "version 1.2.jpg"), (".png", "picture.jpg"),
    ])
    func `a new picture is named for what it is`(name: String, expected: String) {
        func picture(isOriginal: Bool) -> FittedPicture {
            FittedPicture(
                content: .text(""), bytes: 0, size: nil, quality: nil, contentType: nil, isOriginal: isOriginal,
                encodings: 0)
        }
        #expect(picture(isOriginal: false).filename(for: name) == expected)
        #expect(picture(isOriginal: true).filename(for: name) == name)
    }
}

@Suite struct PictureFitErrorTests {
    @Test func `every code has a text and advice in English and Korean, and there are no others`() throws {
        let catalog = try StringCatalog(of: "PostcardPictures")
        #expect(catalog.keys.flatMap(catalog.mistakes) == [])
        var keys: [String] = []
        for (type, path, count) in [
            ("PictureFitError", "Deciding/PictureFitError.swift", 10),
            ("PictureError", "Picking/PictureError.swift", 4),
        ] {
            let codes = try StringCatalog.codes(in: path, of: "PostcardPictures")
            #expect(codes.count >= count)
            keys += codes.flatMap { ["\(type).\($0)", "\(type).\($0).advice"] }
        }
        #expect(keys.sorted() == catalog.keys)
    }
}

/// A codec without pixels.
private final class SimulatedCodec: PictureCodec {
    private let bytes: @Sendable (PictureFit.Encoding) -> Double
    private let open = Mutex((now: 0, most: 0))

    init(bytes: @escaping @Sendable (PictureFit.Encoding) -> Double) {
        self.bytes = bytes
    }

    var mostAtOnce: Int { open.withLock { $0.most } }

    func complete(_ head: PictureHead, of source: PictureSource) throws -> PictureHead {
        throw PictureFitError.unsupported(head.type)
    }

    func open(
        _ source: PictureSource, head: PictureHead, edge: Int, maximumBytes: Int64
    ) throws -> any DecodedPicture {
        open.withLock {
            $0.now += 1
            $0.most = max($0.most, $0.now)
        }
        return Picture(codec: self)
    }

    private final class Picture: DecodedPicture {
        private let codec: SimulatedCodec
        let fixedBytes: Int64 = 0

        init(codec: SimulatedCodec) {
            self.codec = codec
        }

        deinit {
            codec.open.withLock { $0.now -= 1 }
        }

        func encode(_ encoding: PictureFit.Encoding) throws -> EncodedPicture {
            let bytes = Data(repeating: UInt8(encoding.quality), count: Int(codec.bytes(encoding)))
            return EncodedPicture(bytes: bytes, size: PictureSize(width: encoding.edge, height: encoding.edge))
        }
    }
}
