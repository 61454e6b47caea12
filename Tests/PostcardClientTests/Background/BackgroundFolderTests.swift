import Foundation
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardClient

@Suite(.timeLimit(.minutes(10))) struct BackgroundFolderTests {
    private let temporary: TemporaryFolder
    private let directory: URL
    private let form: MultipartForm

    init() throws {
        temporary = try TemporaryFolder()
        directory = temporary.url.appending(component: "uploads")
        var form = MultipartForm()
        form.append("초코", named: "name")
        self.form = form
    }

    /// Writes an upload as a program left it that ended in the middle.
    private func leave(_ state: UploadManifest.State) async throws -> UploadManifest {
        let layout = try form.layout()
        let folder = try UploadsFolder(directory)
        let id = UUID()
        var manifest = try await folder.create(id, layout) { length in
            UploadManifest(
                id: id, url: URL(filePath: "/").appending(component: "nowhere"), method: .post,
                contentType: layout.contentType, headerFields: HTTPFields(), bodyLength: length, filenames: [],
                added: Date())
        }
        manifest.state = state
        try folder.write(manifest)
        return manifest
    }

    private func file(_ name: String, of manifest: UploadManifest) -> URL {
        directory.appending(path: "\(manifest.id.uuidString)/\(name)")
    }

    private func uploads() async throws(BackgroundUploadError) -> BackgroundUploads {
        try await BackgroundUploads(identifier: "test", directory: directory)
    }

    static let damages: [(what: String, text: String?, reason: String)] = [
        ("nothing", "", "not the JSON"), ("half of it", #"{"version": 1, "id": "#, "not the JSON"),
        ("another JSON", "[1]", "not the JSON"), ("a later version", #"{"version": 2}"#, "newer version"),
        ("gone", nil, "cannot be read"),
    ]

    @Test(arguments: [
        ("Authorization", true), ("Proxy-Authorization", true), ("Cookie", true), ("X-Api-Key", true),
        ("Ocp-Apim-Subscription-Key", true), ("X-CSRF-Token", true), ("X-Amz-Signature", true), ("X-Session-Id", true),
        ("X-Auth", true), ("Idempotency-Key", false), ("X-Author", false), ("Accept", false), ("X-Request-ID", false),
    ])
    func `header fields that let somebody in are not kept`(name: String, isSecret: Bool) throws {
        let field = HTTPField(name: try #require(HTTPField.Name(name)), value: "a")
        let manifest = UploadManifest(
            id: UUID(), url: directory, method: .post, contentType: "", headerFields: HTTPFields([field]),
            bodyLength: 0, filenames: [], added: Date())
        #expect(manifest.withheldFields == (isSecret ? [name] : []))
    }

    @Test(arguments: damages)
    func `a manifest that cannot be read is named and left as it is, and the others are found`(
        damage: (what: String, text: String?, reason: String)
    ) async throws {
        let whole = try await leave(.cancelled)
        let damaged = try await leave(.started)
        let manifest = file("manifest.json", of: damaged)
        if let text = damage.text {
            try Data(text.utf8).write(to: manifest)
        } else {
            try FileManager.default.removeItem(at: manifest)
        }
        let uploads = try await uploads()
        #expect(uploads.uploads.map(\.id) == [whole.id])
        let problem = try #require(uploads.problems.first)
        #expect(uploads.problems.count == 1)
        #expect(problem.code == .manifestUnreadable)
        #expect(problem.id == damaged.id)
        #expect(problem.path == manifest.path)
        #expect(problem.message.contains(damage.reason))
        await uploads.close()
        #expect(FileManager.default.fileExists(atPath: file("body", of: damaged).path))
        #expect((try? String(contentsOf: manifest, encoding: .utf8)) == damage.text)
    }

    @Test(arguments: ["gone", "cut"])
    func `a body that is not whole is never sent`(damage: String) async throws {
        let manifest = try await leave(.ready)
        let body = file("body", of: manifest)
        if damage == "gone" {
            try FileManager.default.removeItem(at: body)
        } else {
            try Data(try Data(contentsOf: body).dropLast()).write(to: body)
        }
        let uploads = try await uploads()
        #expect(uploads.problems.map(\.code) == [.bodyMissing])
        guard case .lost(mayHaveArrived: false) = uploads[manifest.id]?.state else {
            Issue.record("the upload is \(String(describing: uploads[manifest.id]?.state))")
            return
        }
        let error = await #expect(throws: BackgroundUploadError.self) { try await uploads.restart(manifest.id) }
        #expect(error?.code == .bodyMissing)
        #expect(error?.path == body.path)
        await uploads.close()
    }

    @Test func `a URL that nothing can be sent to is said, and the upload stays`() async throws {
        let manifest = try await leave(.ready)
        let uploads = try await uploads()
        #expect(uploads.problems.map(\.code) == [.notRestartable])
        #expect(uploads[manifest.id] != nil)
        await uploads.close()
    }

    @Test func `one object at a time has the folder, and a closed one does nothing more`() async throws {
        let first = try await uploads()
        let error = await #expect(throws: BackgroundUploadError.self) { try await uploads() }
        #expect(error?.code == .folderInUse)
        let id = UUID()
        #expect(throws: BackgroundUploadError.self) { try first.cancel(id) }
        await first.close()
        let closed = #expect(throws: BackgroundUploadError.self) { try first.cancel(id) }
        #expect(closed?.code == .closed)
        #expect(throws: BackgroundUploadError.self) { try first.remove(id) }
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let refused = await #expect(throws: BackgroundUploadError.self) { try await first.add(form, to: url) }
        #expect(refused?.code == .closed)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["lock"])
        await #expect(throws: BackgroundUploadError.self) { try await first.response(of: id) }
        for await _ in first.updates { Issue.record("a closed object has nothing to tell") }
        await (try uploads()).close()
    }

    @Test func `what a program left half-written is swept`() async throws {
        let half = directory.appending(component: ".new-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: half, withIntermediateDirectories: true)
        try Data("--".utf8).write(to: half.appending(component: "body"))
        let uploads = try await uploads()
        #expect(uploads.uploads.isEmpty)
        #expect(uploads.problems.isEmpty)
        await uploads.close()
        #expect(!FileManager.default.fileExists(atPath: half.path))
    }

    @Test func `a folder that cannot be made is said by its path`() async throws {
        let file = try temporary.file("file", size: 1)
        let error = await #expect(throws: BackgroundUploadError.self) {
            try await BackgroundUploads(identifier: "test", directory: file.appending(component: "uploads"))
        }
        #expect(error?.code == .folderUnusable)
        #expect(error?.message.contains(file.path) == true)
    }
}
