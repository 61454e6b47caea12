import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardTestSupport
import Testing

@Suite struct EnqueueingTests {
    private static func address() throws -> URL { try #require(URL(string: "http://127.0.0.1:1/uploads")) }

    @Test func `uploads are there after reopening, in order`() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("a.jpg", size: 1000)
        let address = try Self.address()
        let form = QueuedForms.form("초코", file)
        let length = try #require(try form.layout().contentLength)
        do {
            let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
            for _ in 0..<3 { try await queue.enqueue(form, to: address) }
        }
        let uploads = try await UploadQueue(directory: folder.url.appending(path: "queue")).uploads()
        #expect(uploads.map(\.id) == [1, 2, 3])
        #expect(uploads.allSatisfy { $0.state == .waiting && $0.url == address && $0.totalBytes == length })
        #expect(uploads.allSatisfy { $0.attempts == 0 && $0.bytesSent == 0 && $0.method == .post })
    }

    @Test func `a form that cannot be enqueued leaves nothing`() async throws {
        let folder = try TemporaryFolder()
        let directory = folder.url.appending(path: "queue")
        let queue = UploadQueue(directory: directory)
        var form = MultipartForm()
        form.append(Data(repeating: 1, count: 100_000), named: "large", filename: "large.bin")
        form.append(FormStream(length: 3) { AsyncStream { $0.finish() } }, named: "log", filename: "log")
        let short = form
        await #expect(throws: FormError.self) { try await queue.enqueue(short, to: Self.address()) }
        let missing = QueuedForms.form("초코", folder.url.appending(path: "missing.jpg"))
        await #expect(throws: FormError.self) { try await queue.enqueue(missing, to: Self.address()) }
        let file = try #require(URL(string: "file:///etc/hosts"))
        let error = await #expect(throws: UploadError.self) { try await queue.enqueue(MultipartForm(), to: file) }
        #expect(error?.code == .invalidURL)
        #expect(try await queue.uploads().isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.appending(path: "bodies").path).isEmpty)
    }

    @Test func `a form that breaks the queue's rules is not enqueued`() async throws {
        let folder = try TemporaryFolder()
        let rules = try FormRules(files: ["image": FormRules.File(maximumBytes: 10)], otherParts: .allowed)
        let queue = UploadQueue(directory: folder.url, rules: rules)
        let form = QueuedForms.form("초코", try folder.file("a.jpg", size: 1000))
        let error = await #expect(throws: UploadError.self) { try await queue.enqueue(form, to: Self.address()) }
        #expect(error?.code == .brokenRule)
        #expect(try await queue.uploads().isEmpty)
    }

    /// Replaces files with new ones as large as the server accepts.
    private struct Shrinking: FormPreparation {
        let followsServerLimit = true
        var fails = false
        /// Where the folder of the prepared files is noted.
        let notes: URL

        func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart] {
            try Data(context.folder.path.utf8).write(to: notes)
            return try parts.map { part in
                var part = part
                let file = context.folder.appending(component: "small.jpg")
                let most = context.limits.maximumBytes(ofFileNamed: part.name) ?? 500
                try Data(count: Int(most)).write(to: file)
                if fails { throw CocoaError(.fileReadCorruptFile) }
                (part.content, part.filename) = (.file(file), "small.jpg")
                return part
            }
        }
    }

    @Test(arguments: [false, true])
    func `a form is prepared for the queue's rules when it is enqueued, and leaves no files`(fails: Bool) async throws {
        let folder = try TemporaryFolder()
        let rules = try FormRules(files: ["image": FormRules.File(maximumBytes: 70)], otherParts: .allowed)
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"), rules: rules)
        let preparation = Shrinking(fails: fails, notes: folder.url.appending(path: "notes"))
        var form = QueuedForms.form()
        form.append(
            FormPart(
                name: "image", filename: "a.heic", content: .file(try folder.file("a.heic", size: 1000)),
                preparation: preparation))
        if fails {
            let failing = form
            await #expect(throws: CocoaError.self) { try await queue.enqueue(failing, to: Self.address()) }
            #expect(try await queue.uploads().isEmpty)
        } else {
            let id = try await queue.enqueue(form, to: Self.address())
            let part = try await queue.upload(id)?.parts.last
            #expect(part?.filename == "small.jpg" && part?.content.count == 70)
        }
        let used = String(decoding: try Data(contentsOf: preparation.notes), as: UTF8.self)
        #expect(!used.isEmpty && !FileManager.default.fileExists(atPath: used))
    }

    @Test func `a form is on disk once, and its files may be removed`() async throws {
        let folder = try TemporaryFolder()
        let directory = folder.url.appending(path: "queue")
        let queue = UploadQueue(directory: directory)
        let photo = try folder.file("photo.jpg", size: 10_000_000)
        let id = try await queue.enqueue(QueuedForms.form("초코", photo), to: Self.address())
        try FileManager.default.removeItem(at: photo)
        #expect(try await queue.bodyExists(id))
        let upload = try #require(try await queue.upload(id))
        #expect(upload.parts.map(\.name) == ["name", "image"] && upload.parts.last?.filename == "photo.jpg")
        #expect(upload.parts.last?.content.count == 10_000_000)
        let used = try FileManager.default.subpathsOfDirectory(atPath: directory.path).reduce(0) { sum, path in
            sum
                + (try FileManager.default.attributesOfItem(atPath: directory.appending(path: path).path)[.size] as? Int
                    ?? 0)
        }
        #expect(used <= 10_500_000)
    }

    @Test(arguments: [
        ("no database", Data("hello, this is a text".utf8)), ("cut off", Data("SQLite format 3\0".utf8)),
    ])
    func `a file that is not a queue's database is reported and not changed`(name: String, content: Data) async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("queue.sqlite", content)
        let error = await #expect(throws: UploadQueueError.self) { try await UploadQueue(directory: folder.url).open() }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains(file.path) == true)
        #expect(try Data(contentsOf: file) == content)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["queue.sqlite"])
    }

    @Test func `a database of a newer version is reported and not changed`() async throws {
        let folder = try TemporaryFolder()
        try await UploadQueue(directory: folder.url).open()
        let file = folder.url.appending(path: "queue.sqlite")
        var content = try Data(contentsOf: file)
        content[63] = 9
        try content.write(to: file)
        let error = await #expect(throws: UploadQueueError.self) { try await UploadQueue(directory: folder.url).open() }
        #expect(error?.code == .newer)
        #expect(error?.message.contains("version 9") == true)
        #expect(try Data(contentsOf: file) == content)
    }

    @Test func `a damaged database is reported and not changed`() async throws {
        let folder = try TemporaryFolder()
        do {
            let queue = UploadQueue(directory: folder.url)
            try await queue.enqueue(MultipartForm(), to: try Self.address())
        }
        let file = folder.url.appending(path: "queue.sqlite")
        var content = try Data(contentsOf: file)
        #expect(content.count > 8192)
        content.replaceSubrange(100..<content.count, with: Data(repeating: 0xA5, count: content.count - 100))
        try content.write(to: file)
        let error = await #expect(throws: UploadQueueError.self) { try await UploadQueue(directory: folder.url).open() }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains(file.path) == true)
        #expect(try Data(contentsOf: file) == content)
    }

    @Test func `only uploads that have ended are cleared`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let address = try Self.address()
        let file = try folder.file("a.jpg", size: 100_000)
        var ids: [QueuedUpload.ID] = []
        for _ in 0..<3 { ids.append(try await queue.enqueue(QueuedForms.form("초코", file), to: address)) }
        let files = folder.url.appending(path: "bodies").path
        #expect(try FileManager.default.contentsOfDirectory(atPath: files).count == 3)
        try await queue.cancel(ids[1])
        #expect(try await queue.clear(.ended) == 1)
        #expect(try await queue.uploads().map(\.id) == [ids[0], ids[2]])
        #expect(try FileManager.default.contentsOfDirectory(atPath: files).count == 2)
        await #expect(throws: UploadQueueError.self) { try await queue.cancel(ids[1]) }
        await #expect(throws: UploadQueueError.self) { try await queue.retry(ids[0]) }
    }
}
