import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardPictures

/// The photos of a form, which are prepared when it is sent.
@Suite struct PictureFittingTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A codec whose JPEGs have as many bytes as their quality and edge say.
    private struct ScaledCodec: PictureCodec, DecodedPicture {
        let fixedBytes: Int64 = 0

        func complete(_ head: PictureHead, of source: PictureSource) throws -> PictureHead {
            throw PictureFitError.unsupported(head.type)
        }

        func open(
            _ source: PictureSource, head: PictureHead, edge: Int, maximumBytes: Int64
        ) throws -> any DecodedPicture { self }

        func encode(_ encoding: PictureFit.Encoding) throws -> EncodedPicture {
            let bytes = encoding.edge * encoding.quality / 10
            return EncodedPicture(
                bytes: Data(count: bytes), size: PictureSize(width: encoding.edge, height: encoding.edge))
        }
    }

    private func photo(_ name: String, edge: Int, bytes: Int) throws -> FormPart {
        let bytes = TestPicture.jpegHead(width: edge, height: edge, bytes: bytes)
        return FormPart(name: "petImage", content: .file(try folder.file(name, bytes)))
    }

    /// What photos become, with the limits that a server has.
    private func fitted(
        _ parts: [FormPart], _ fitting: PictureFitting, others: Int64? = 1000, room: Int64? = nil,
        limits: FormSizeLimits = FormSizeLimits()
    ) async throws -> [(name: String?, bytes: Int)] {
        let context = FormPreparationContext(
            otherBytes: others, maximumBytes: room, limits: limits, folder: folder.url.appending(path: "new"))
        return try await fitting.prepare(parts, in: context, by: PictureFitter(codec: ScaledCodec())).map { part in
            switch part.content {
            case .file(let url): (part.filename, try Data(contentsOf: url).count)
            case .bytes(let bytes): (part.filename, bytes.count)
            case .text(let text): (part.filename, text.utf8.count)
            case .stream, .picked: (part.filename, 0)
            }
        }
    }

    @Test func `photos that are appended fit, without their location`() throws {
        var form = MultipartForm()
        let photos = [URL(filePath: "/a/IMG_1.HEIC"), URL(filePath: "/a/b.png")]
        form.append(photos: photos, named: "petImage", fitting: PictureLimit(maximumBytes: 1000))
        form.append(photos: photos, named: "petImage", fitting: .serverLimit, metadata: .none)
        #expect(form.parts.map(\.metadata) == [.withoutLocation, .withoutLocation, .none, .none])
        #expect(form.parts.map(\.filename) == ["IMG_1.HEIC", "b.png", "IMG_1.HEIC", "b.png"])
        let fittings = form.parts.map { $0.preparation as? PictureFitting }
        #expect(fittings == [.each(PictureLimit(maximumBytes: 1000)), fittings[0], .serverLimit, .serverLimit])
        #expect(fittings.map { $0?.followsServerLimit } == [false, false, true, true])
    }

    @Test func `each photo fits a limit of its own, and other parts stay as they are`() async throws {
        let parts = [
            try photo("a.jpg", edge: 4000, bytes: 90_000), try photo("b.jpg", edge: 900, bytes: 9000),
            FormPart(name: "name", content: .text("초코")),
            FormPart(
                name: "memory", filename: "c.jpeg",
                content: .bytes(Data(TestPicture.jpegHead(width: 4000, height: 4000, bytes: 50_000)))),
        ]
        let result = try await fitted(parts, .each(PictureLimit(maximumBytes: 10_000)))
        #expect(result.map(\.name) == ["a.jpg", "b.jpg", nil, "c.jpeg"])
        #expect(
            result[0].bytes <= 10_000 && result[1].bytes == 9000 && result[2].bytes == 6 && result[3].bytes <= 10_000)
    }

    @Test func `all photos share the bytes of a form`() async throws {
        let parts = try (0..<4).map { try photo("\($0).jpg", edge: 4000, bytes: 30_000 * ($0 + 1)) }
        let result = try await fitted(parts, .form(maximumBytes: 41_000))
        let total = result.reduce(0) { $0 + $1.bytes }
        #expect(total <= 40_000 && total > 20_000)
        let error = await #expect(throws: PictureFitError.self) {
            try await fitted(parts, .form(maximumBytes: 41_000), others: nil)
        }
        #expect(error?.code == .cannotFit && error?.message.contains("stream") == true)
        let full = await #expect(throws: PictureFitError.self) {
            try await fitted(parts, .form(maximumBytes: 41_000), others: 50_000)
        }
        #expect(full?.code == .cannotFit && full?.message.hasPrefix("0.jpg: ") == true)
    }

    @Test func `photos share what a text with the same preparation leaves`() async throws {
        let text = FormPart(name: "story", content: .text(String(repeating: "a", count: 20_000)))
        let parts = try [photo("a.jpg", edge: 4000, bytes: 90_000), text, photo("b.jpg", edge: 4000, bytes: 90_000)]
        let result = try await fitted(parts, .form(maximumBytes: 41_000))
        #expect(result[1].bytes == 20_000)
        #expect(result.reduce(0) { $0 + $1.bytes } <= 40_000)
    }

    @Test func `without a known limit the original is sent, or scaled to the edge`() async throws {
        let part = try photo("a.jpg", edge: 4000, bytes: 90_000)
        let heic = FormPart(
            name: "petImage", filename: "a.heic", content: .bytes(Data(Fixtures.heic[1] ?? [])))
        let originals = try await fitted([part, heic], .serverLimit)
        #expect(originals.map(\.bytes) == [90_000, Fixtures.heic[1]?.count])
        #expect(originals.map(\.name) == ["a.jpg", "a.heic"])
        let scaled = try await fitted([part], .serverLimit(maximumEdge: 1000))
        #expect(scaled.map(\.bytes) == [8200])
    }

    @Test func `the server's limits apply to a file and to all of them`() async throws {
        let parts = try (0..<2).map { try photo("\($0).jpg", edge: 4000, bytes: 90_000) }
        let same = try await fitted(parts, .serverLimit, room: 180_000)
        #expect(same.map(\.bytes) == [90_000, 90_000])
        let all = try await fitted(parts, .serverLimit, room: 30_000)
        #expect(all.reduce(0) { $0 + $1.bytes } <= 30_000)
        let limits = FormSizeLimits(maximumFileBytes: 50_000, maximumBytesByName: ["petImage": 8000])
        let each = try await fitted(parts, .serverLimit, room: 180_000, limits: limits)
        #expect(each.allSatisfy { $0.bytes <= 8000 })
    }

    @Test func `what is no picture is an error with its name`() async throws {
        let text = FormPart(name: "a", content: .file(try folder.file("list.txt", Array("Dear Jeju".utf8))))
        let stream = FormPart(
            name: "a", filename: "live.jpg", content: .stream(FormStream(length: 1) { AsyncStream { $0.finish() } }))
        for (part, name) in [(text, "list.txt"), (stream, "live.jpg")] {
            let error = await #expect(throws: PictureFitError.self) {
                try await fitted([part], .each(PictureLimit(maximumBytes: 5)))
            }
            #expect(error?.message.contains(name) == true && error?.advice != nil)
        }
    }

    @Test(.enabled(if: PictureFitter.isAvailable))
    func `a HEIC photo and a PNG are sent as JPEGs that keep to the form's limit`() async throws {
        let pixels = TestPicture.quarterPixels(width: 300, height: 200)
        let png = TestPicture.png(width: 300, height: 200, samples: pixels)
        var form = MultipartForm()
        form.append("초코", named: "name")
        let photos = [
            try folder.file("IMG_1.HEIC", Fixtures.heic[6] ?? []), try folder.file("stamp.png", png),
        ]
        form.append(photos: photos, named: "petImage", fitting: .form(maximumBytes: 20_000))
        let layout = try await form.withPreparedParts { try $0.layout() }
        #expect(try #require(layout.contentLength) <= 20_000)
        #expect(layout.parts.map(\.filename) == [nil, "IMG_1.jpg", "stamp.jpg"])
        #expect(layout.parts.map(\.contentType) == [nil, .jpeg, .jpeg])
    }
}
