import Foundation
import PostcardTestSupport
import Testing

@testable import PostcardForm

@Suite struct FormPreparationTests {
    /// Replaces the parts with others that share the bytes that they may have. Notes what it was given in the folder.
    private struct Filling: FormPreparation {
        var followsServerLimit = true
        var name = "a"
        var losesParts = false

        func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart] {
            let share = Int(context.maximumBytes ?? 10 * Int64(parts.count)) / parts.count
            let prepared = try parts.enumerated().map { index, part in
                var part = part
                let file = context.folder.appending(component: "\(name)\(index).jpg")
                try Data(repeating: 7, count: share).write(to: file)
                part.content = .file(file)
                part.filename = part.filename.map { "\($0).longer-name-than-it-was.jpg" }
                return part
            }
            return losesParts ? prepared.dropLast() : prepared
        }
    }

    private static func part(_ bytes: Int, _ preparation: Filling?) -> FormPart {
        FormPart(
            name: "image", filename: "초코 \"1\".heic", content: .bytes(Data(count: bytes)), preparation: preparation)
    }

    /// What is left of the folder and what was sent, once a form was prepared.
    private static func outcome(
        of form: MultipartForm, within limits: FormSizeLimits = FormSizeLimits()
    ) async throws -> FormLayout {
        var folders: [URL] = []
        let layout = try await form.withPreparedParts(within: limits) { prepared in
            #expect(!prepared.needsPreparation && prepared.boundary == form.boundary)
            for case .file(let url) in prepared.parts.map(\.content) {
                folders.append(url.deletingLastPathComponent())
                #expect(FileManager.default.fileExists(atPath: url.path))
            }
            return try prepared.layout()
        }
        for folder in folders { #expect(!FileManager.default.fileExists(atPath: folder.path)) }
        return layout
    }

    @Test func `forms are prepared in the folder for temporary files, which only its owner can use`() async throws {
        let folder = try PreparationFolder()
        #expect(folder.url.deletingLastPathComponent().path == FormPart.temporaryFolder.path)
        for url in [folder.url, FormPart.temporaryFolder] {
            let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
        }
        await folder.remove()
    }

    @Test func `what a process that is gone has prepared is removed, and nothing that is in use`() async throws {
        let kept = try PreparationFolder()
        let abandoned = FormPart.temporaryFolder.appending(component: "prepared-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: abandoned, withIntermediateDirectories: true)
        try Data([1]).write(to: abandoned.appending(component: "a.jpg"))
        try await PreparationFolder().remove()
        #expect(!FileManager.default.fileExists(atPath: abandoned.path))
        #expect(FileManager.default.fileExists(atPath: kept.url.path))
        await kept.remove()
    }

    @Test func `a form that was not prepared is not laid out`() async throws {
        var form = MultipartForm()
        form.append("초코", named: "name")
        #expect(!form.needsPreparation)
        form.append(Self.part(9, Filling()))
        #expect(form.needsPreparation)
        let sent = form
        let error = #expect(throws: FormError.self) { try sent.layout() }
        #expect(error?.code == .notPrepared && error?.partIndex == 1)
        #expect(try await Self.outcome(of: form).parts.map(\.contentLength) == [6, 10])
    }

    @Test(arguments: [(1, 0), (2, 0), (3, 2), (5, 1)])
    func `parts get all the bytes that the rest of the body leaves`(count: Int, others: Int) async throws {
        var form = MultipartForm(lineBreaks: .normalized)
        form.append("line\nline", named: "text")
        for index in 0..<count {
            form.append(Self.part(100_000, Filling()))
            if index < others { form.append(Data(count: 333), named: "other", filename: "other.bin") }
        }
        let layout = try await Self.outcome(of: form, within: FormSizeLimits(maximumBodyBytes: 20_000))
        let length = try #require(layout.contentLength)
        #expect(length <= 20_000 && length > 20_000 - Int64(count) * 129)
        let files = try await Self.outcome(of: form, within: FormSizeLimits(maximumBytesOfAllFiles: 9000))
        let bytes = files.parts.filter { $0.filename != nil }.compactMap(\.contentLength).reduce(0, +)
        #expect(bytes <= 9000 && bytes > 9000 - Int64(count))
    }

    @Test func `different preparations share by the size of their parts`() async throws {
        var form = MultipartForm()
        form.append(Self.part(30_000, Filling(name: "a")))
        form.append(Self.part(10_000, Filling(name: "b")))
        form.append(Self.part(5, Filling(followsServerLimit: false, name: "c")))
        let layout = try await Self.outcome(of: form, within: FormSizeLimits(maximumBodyBytes: 9000))
        #expect(try #require(layout.contentLength) <= 9000)
        let lengths = layout.parts.compactMap(\.contentLength)
        #expect(lengths.count == 3 && lengths[0] > 2 * lengths[1] && lengths[1] > 1000)
    }

    @Test func `a preparation that loses a part fails, and its files are removed`() async throws {
        var form = MultipartForm()
        form.append(Self.part(9, Filling(losesParts: true)))
        let sent = form
        let error = await #expect(throws: FormError.self) { try await sent.withPreparedParts { _ in } }
        #expect(error?.code == .preparationFailed)
    }

    @Test func `limits are those that a form exceeds`() throws {
        var form = MultipartForm()
        form.append(Data(count: 1000), named: "image", filename: "a.jpg")
        form.append(Data(count: 500), named: "image", filename: "b.jpg")
        let layout = try form.layout()
        let length = try #require(layout.contentLength)
        let kept = FormSizeLimits(
            maximumBodyBytes: length, maximumFileBytes: 1000, maximumBytesOfAllFiles: 1500,
            maximumBytesByName: ["image": 1000, "other": 1])
        #expect(kept.exceeded(by: layout) == nil)
        let exceeded = FormSizeLimits(
            maximumBodyBytes: length - 1, maximumFileBytes: 999, maximumBytesOfAllFiles: 1499,
            maximumBytesByName: ["image": 999])
        #expect(exceeded.exceeded(by: layout) == exceeded)
        #expect(kept.lowered(by: exceeded).exceeded(by: layout) == exceeded)
        #expect(FormSizeLimits(maximumBodyBytes: -1).exceeded(by: layout) == nil)
        #expect(kept.maximumBytes(ofFileNamed: "other") == 1 && kept.maximumBytes(ofFileNamed: "none") == 1000)
    }
}
