import Foundation
import PostcardForm
import Testing

@testable import DiaryKit

/// Importing photos, each of which can be cancelled.
@MainActor @Suite(.timeLimit(.minutes(1))) struct PhotoImporterTests {
    private struct NotLoadable: LocalizedError { let errorDescription: String? = "It is not there." }

    private let folder = URL(filePath: "/tmp")

    private static func photo(_ name: String) -> FormPart { FormPart(name: name, content: .text("content")) }

    /// A load that waits until it is cancelled.
    private static let endless: PhotoLoad = { _, _ in
        try await Task.sleep(for: .seconds(3600))
        throw NotLoadable()
    }

    @Test func `photos are imported in their order, and their progress is shown`() async {
        let importer = PhotoImporter()
        let parts = await importer.load(
            [
                { _, report in
                    report(0.5)
                    return Self.photo("a")
                },
                { _, _ in Self.photo("b") },
            ], into: folder)
        #expect(parts.map(\.name) == ["a", "b"])
        #expect(importer.imports.photos.map(\.state) == [.ready, .ready])
        #expect(importer.imports.problem == nil)
    }

    @Test func `a photo that is cancelled while it is downloaded is left out, and the others are imported`() async {
        let importer = PhotoImporter()
        let loads: [PhotoLoad] = [Self.endless, { _, _ in Self.photo("b") }, Self.endless]
        let load = Task { await importer.load(loads, into: folder) }
        while importer.imports.photos.first?.state != .importing(fraction: nil) { await Task.yield() }
        importer.cancel(2)
        importer.cancel(0)
        #expect(await load.value.map(\.name) == ["b"])
        #expect(importer.imports.photos.map(\.state) == [.cancelled, .ready, .cancelled])
        #expect(importer.imports.problem == nil)
    }

    @Test func `an entry with a photo that failed is not sent`() async {
        let importer = PhotoImporter()
        let parts = await importer.load([{ _, _ in throw NotLoadable() }, { _, _ in Self.photo("b") }], into: folder)
        #expect(parts.map(\.name) == ["b"])
        #expect(importer.imports.problem == "It is not there.")
    }

    @Test func `an entry without photos is not sent`() async {
        let importer = PhotoImporter()
        let load = Task { await importer.load([Self.endless], into: folder) }
        while importer.imports.photos.first?.state != .importing(fraction: nil) { await Task.yield() }
        importer.cancel(0)
        #expect(await load.value.isEmpty)
        #expect(importer.imports.problem == DiaryText.nothingToSend.rawValue)
        importer.clear()
        #expect(importer.imports.problem == nil)
    }

    @Test func `stopping ends the import that is under way, and begins no other`() async {
        let importer = PhotoImporter()
        let load = Task { await importer.load([Self.endless, Self.endless], into: folder) }
        while importer.imports.photos.first?.state != .importing(fraction: nil) { await Task.yield() }
        load.cancel()
        #expect(await load.value.isEmpty)
        #expect(importer.imports.photos.map(\.state) == [.cancelled, .waiting])
    }

    @Test func `progress never goes back, and ends with the photo`() {
        var imports = PhotoImports(2)
        #expect(imports.next() == 0)
        imports.note(0.5, of: 0)
        imports.note(0.2, of: 0)
        imports.note(0.7, of: 1)
        #expect(imports.photos.map(\.fraction) == [0.5, 0])
        imports.note(2, of: 0)
        #expect(imports.photos[0].fraction == 1)
        imports.cancel(0)
        imports.end(0, .ready)
        imports.note(0.9, of: 0)
        imports.cancel(7)
        #expect(imports.photos.map(\.state) == [.cancelled, .waiting])
        #expect(!imports.photos[0].canBeCancelled && imports.photos[1].canBeCancelled)
        #expect(imports.next() == 1 && imports.next() == nil)
    }
}
