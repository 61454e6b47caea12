import Foundation
import GRDB
import PostcardClient
import PostcardForm
import PostcardFoundation
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// Items that the user has picked: recorded before they are copied, and copied by a later run if this one ends.
@Suite(.timeLimit(.minutes(5))) struct ImportingTests {
    private let folder: TemporaryFolder
    private let directory: URL
    private let address: URL

    init() throws {
        folder = try TemporaryFolder()
        directory = folder.url.appending(path: "queue")
        address = try #require(URL(string: "http://127.0.0.1:1/uploads"))
    }

    /// An item of a library, whose copy does what a test says first.
    private struct Item: PickedItem {
        let bytes: Data
        var record: Data?
        var before: @Sendable () async throws -> Void = {}

        func copy(to folder: URL) async throws -> PickedCopy {
            try await before()
            let file = folder.appending(component: UUID().uuidString + ".jpg")
            try bytes.write(to: file)
            return PickedCopy(file, filename: "IMG_1.jpg", contentType: .jpeg)
        }
    }

    /// A library in which a later run finds the items.
    private final class Library: PickedItemFinder {
        let items: [Data: Item]
        let found = Mutex<[Data]>([])

        init(_ items: [Data: Item] = [:]) {
            self.items = items
        }

        func item(recordedAs record: Data) -> (any PickedItem)? {
            found.withLock { $0.append(record) }
            return items[record]
        }

        func preparation(recordedAs record: Data) -> (any FormPreparation)? { Shouting(record: record) }
    }

    private struct Shouting: FormPreparation {
        let record: Data?
        let followsServerLimit = false

        func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart] {
            try parts.map { part in
                var part = part
                guard case .file(let url) = part.content else { return part }
                let text = try String(decoding: Data(contentsOf: url), as: UTF8.self)
                part.content = .bytes(Data(text.uppercased().utf8))
                return part
            }
        }
    }

    private static func photo(_ name: String) -> Data { Data("photo \(name)".utf8) }

    private func form(_ items: Item..., preparing preparation: (any FormPreparation)? = nil) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(Data("bytes".utf8), named: "bytes", filename: nil)
        form.append(fileAt: try folder.file("note.txt", Array("note".utf8)), named: "note")
        for item in items { form.append(FormPart(picked: item, named: "photo", preparation: preparation)) }
        return form
    }

    /// What the queue sends of an upload.
    private func body(of id: QueuedUpload.ID, in queue: UploadQueue) async throws -> String {
        let store = try await queue.opening.store()
        let row = try #require(try store.database.read { try $0.row(id) })
        return try String(decoding: Data(contentsOf: store.directory.bodyURL(row.uuid)), as: UTF8.self)
    }

    private var leftovers: [String] {
        get throws {
            try ["bodies", "imports"].flatMap {
                try FileManager.default.contentsOfDirectory(atPath: directory.appending(path: $0).path)
            }
        }
    }

    @Test func `what was picked is in the queue before it is copied, and in the form after that`() async throws {
        let queue = UploadQueue(directory: directory)
        let states = Mutex<[QueuedUpload.State]>([])
        let item = Item(bytes: Self.photo("1"), record: nil) {
            let state = try await queue.uploads().first?.state
            states.withLock { $0 += [state].compactMap(\.self) }
        }
        let id = try await queue.enqueue(try form(item), to: address, tag: "choco")
        #expect(states.withLock(\.self) == [.importing(because: nil)])
        let upload = try #require(try await queue.upload(id))
        #expect(upload.state == .waiting && upload.parts.map(\.filename) == [nil, nil, "note.txt", "IMG_1.jpg"])
        #expect(try upload.tag(as: String.self) == "choco")
        let body = try await body(of: id, in: queue)
        #expect(["초코", "bytes", "note", "photo 1"].allSatisfy(body.contains))
        #expect(Int64(body.utf8.count) == upload.totalBytes)
        #expect(try leftovers.count == 1)
    }

    /// Begins to enqueue a form, whose last item is not copied before the system suspends the app.
    private func suspended(_ queue: UploadQueue, _ system: SuspendingSystem, _ form: MultipartForm) async throws
        -> QueuedUpload.ID
    {
        let id = try await queue.enqueue(form, to: address)
        #expect(try await queue.upload(id)?.state == .importing(because: nil))
        system.resume()
        return id
    }

    @Test func `a later run copies what is missing, and nothing twice`() async throws {
        let system = SuspendingSystem()
        let records = ["1", "2"].map { Data($0.utf8) }
        let copied = Mutex(0)
        let first = Item(bytes: Self.photo("1"), record: records[0]) { copied.withLock { $0 += 1 } }
        let second = Item(bytes: Self.photo("2"), record: records[1]) { try await system.suspendUntilCancelled() }
        let id: QueuedUpload.ID
        do {
            let queue = UploadQueue(directory: directory, session: nil, service: nil, activity: system.activity)
            id = try await suspended(
                queue, system, try form(first, second, preparing: Shouting(record: Data("!".utf8))))
        }
        try FileManager.default.removeItem(at: folder.url.appending(path: "note.txt"))
        let library = Library([records[1]: Item(bytes: Self.photo("2 again"))])
        let queue = UploadQueue(directory: directory, finding: library)
        await queue.resumeImports()
        #expect(library.found.withLock(\.self) == [records[1]])
        #expect(copied.withLock(\.self) == 1)
        #expect(try await queue.upload(id)?.state == .waiting)
        let body = try await body(of: id, in: queue)
        #expect(["초코", "bytes", "note", "PHOTO 1", "PHOTO 2 AGAIN"].allSatisfy(body.contains))
        #expect(try leftovers.count == 1)
    }

    @Test func `the run that was suspended goes on with its own items, which no other finds`() async throws {
        let system = SuspendingSystem()
        let isSuspending = Mutex(true)
        let item = Item(bytes: Self.photo("1")) {
            if isSuspending.withLock(\.self) { try await system.suspendUntilCancelled() }
        }
        let queue = UploadQueue(directory: directory, session: nil, service: nil, activity: system.activity)
        let id = try await suspended(queue, system, try form(item))
        isSuspending.withLock { $0 = false }
        await queue.resumeImports()
        #expect(try await queue.upload(id)?.state == .waiting)
    }

    @Test(arguments: [true, false])
    func `what cannot be found again fails, is not forgotten, and can be tried again`(hasFinder: Bool) async throws {
        let system = SuspendingSystem()
        let record = Data("1".utf8)
        let id: QueuedUpload.ID
        do {
            let queue = UploadQueue(directory: directory, session: nil, service: nil, activity: system.activity)
            let item = Item(bytes: Self.photo("1"), record: record) { try await system.suspendUntilCancelled() }
            id = try await suspended(queue, system, try form(item))
        }
        let queue = UploadQueue(directory: directory, finding: hasFinder ? Library() : nil)
        await queue.resumeImports()
        guard case .failed(let failure) = try await queue.upload(id)?.state else {
            return #expect(Bool(false), "It has not failed.")
        }
        #expect(failure.code == .pickLost && failure.advice != nil && !failure.delivery.mayHaveArrived)
        // The user has given the permission to read the library.
        let allowed = UploadQueue(directory: directory, finding: Library([record: Item(bytes: Self.photo("1"))]))
        if hasFinder { try await allowed.retry(id) } else { try await allowed.retryAll() }
        try await allowed.wait { $0[id] == .waiting }
        #expect(try leftovers.count == 1)
    }

    private struct Refusal: PassingError { let mayPass: Bool }

    /// What a copy fails with, and how often it is tried.
    @Test(
        arguments: [
            (Refusal(mayPass: false), 1), (Refusal(mayPass: true), nil), (CocoaError(.fileReadUnknown), 10),
            (UploadQueueError.full("x", needed: 2, free: 1), nil),
        ] as [(any Error, Int?)])
    func `what may pass is tried again and again, what cannot is not, and the rest for some time`(
        error: any Error, tries: Int?
    ) async throws {
        let system = SuspendingSystem()
        let isFirst = Mutex(true)
        let copies = Mutex(0)
        let queue = UploadQueue(directory: directory, session: nil, service: nil, activity: system.activity)
        let item = Item(bytes: Self.photo("1")) {
            if isFirst.withLock(\.self) { try await system.suspendUntilCancelled() }
            copies.withLock { $0 += 1 }
            throw error
        }
        let id = try await suspended(queue, system, try form(item))
        isFirst.withLock { $0 = false }
        for _ in 0..<12 { await queue.resumeImports() }
        #expect(copies.withLock(\.self) == tries ?? 12)
        let state = try #require(try await queue.upload(id)?.state)
        #expect(state.name == (tries == nil ? "importing" : "failed"))
        if case .failed(let failure) = state {
            #expect(failure.code == .notImported && !failure.delivery.mayHaveArrived)
        }
    }

    @Test func `a form that the queue could not remove is not reported as refused`() async throws {
        let system = SuspendingSystem()
        let queue = UploadQueue(directory: directory, session: nil, service: nil, activity: system.activity)
        let item = Item(bytes: Self.photo("1")) {
            system.suspend()
            throw CocoaError(.fileReadNoSuchFile)
        }
        let id = try await queue.enqueue(try form(item), to: address)
        system.resume()
        #expect(try await queue.upload(id)?.state.name == "importing")
    }

    @Test func `a database that names more parts than the form has is no trap`() async throws {
        let system = SuspendingSystem()
        let isFirst = Mutex(true)
        let queue = UploadQueue(directory: directory, session: nil, service: nil, activity: system.activity)
        let item = Item(bytes: Self.photo("1")) {
            if isFirst.withLock(\.self) { try await system.suspendUntilCancelled() }
        }
        let id = try await suspended(queue, system, try form(item))
        isFirst.withLock { $0 = false }
        try await queue.opening.store().database.write { db in
            let form = try #require(try Data.fetchOne(db, sql: "SELECT form FROM import"))
            var object = try #require(try JSONSerialization.jsonObject(with: form) as? [String: Any])
            let parts = try #require(object["parts"] as? [Any])
            object["parts"] = parts + parts
            try db.execute(
                sql: "UPDATE import SET form = ?", arguments: [try JSONSerialization.data(withJSONObject: object)])
        }
        await queue.resumeImports()
        #expect(try await queue.upload(id)?.state.name == "failed")
    }

    @Test func `what could not be copied in a later run is tried again, and says why`() async throws {
        let system = SuspendingSystem()
        let record = Data("1".utf8)
        let id: QueuedUpload.ID
        do {
            let queue = UploadQueue(directory: directory, session: nil, service: nil, activity: system.activity)
            let item = Item(bytes: Self.photo("1"), record: record) { try await system.suspendUntilCancelled() }
            id = try await suspended(queue, system, try form(item))
        }
        let isOffline = Mutex(true)
        let item = Item(bytes: Self.photo("1")) {
            if isOffline.withLock(\.self) { throw CocoaError(.fileReadUnknown) }
        }
        let queue = UploadQueue(directory: directory, finding: Library([record: item]))
        await queue.resumeImports()
        guard case .importing(let failure?) = try await queue.upload(id)?.state else {
            return #expect(Bool(false), "It is not tried again.")
        }
        #expect(failure.code == .notImported)
        isOffline.withLock { $0 = false }
        await queue.resumeImports()
        #expect(try await queue.upload(id)?.state == .waiting)
    }

    @Test func `an item that cannot be copied is an error, and the queue has nothing of its form`() async throws {
        let queue = UploadQueue(directory: directory)
        let form = try form(Item(bytes: Self.photo("1")) { throw CocoaError(.fileReadNoSuchFile) })
        await #expect(throws: CocoaError.self) { try await queue.enqueue(form, to: address) }
        #expect(try await queue.uploads() == [])
        #expect(try leftovers == [])
    }

    @Test func `a form whose items are being copied can be cancelled, and retried then`() async throws {
        let queue = UploadQueue(directory: directory)
        let isCancelling = Mutex(true)
        let item = Item(bytes: Self.photo("1")) {
            guard isCancelling.withLock(\.self) else { return }
            try await queue.cancel(try #require(try await queue.uploads().last?.id))
        }
        let id = try await queue.enqueue(try form(item), to: address)
        #expect(try await queue.upload(id)?.state == .cancelled)
        isCancelling.withLock { $0 = false }
        try await queue.retry(id)
        try await queue.wait { $0[id] == .waiting }
        #expect(try leftovers.count == 1)
    }

    @Test func `a form that is removed while its items are copied leaves nothing`() async throws {
        let queue = UploadQueue(directory: directory)
        let imports = directory.appending(path: "imports")
        let item = Item(bytes: Self.photo("1")) {
            let folder = try #require(FileManager.default.contentsOfDirectory(atPath: imports.path).first)
            try await queue.remove(try #require(try await queue.uploads().last?.id))
            // As a library does that downloads.
            try FileManager.default.createDirectory(
                at: imports.appending(path: folder), withIntermediateDirectories: true)
        }
        _ = try? await queue.enqueue(try form(item), to: address)
        #expect(try await queue.uploads() == [])
        #expect(try leftovers == [])
        let forms = queue.imports.withLock { $0.count }
        #expect(forms == 0)
    }

    @Test func `what no upload has is swept, and what is being copied is not`() async throws {
        let queue = UploadQueue(directory: directory)
        try await queue.open()
        for hasLock in [true, false] {
            let abandoned = directory.appending(path: "imports/\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: abandoned, withIntermediateDirectories: true)
            try Data(count: 10).write(to: abandoned.appending(component: "0"))
            if hasLock { try Data().write(to: abandoned.appending(component: "lock")) }
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -100_000)], ofItemAtPath: abandoned.path)
        }
        let item = Item(bytes: Self.photo("1")) { try await queue.store.sweep(at: Date()) }
        let id = try await queue.enqueue(try form(item), to: address)
        #expect(try await queue.upload(id)?.state == .waiting)
        #expect(try leftovers.count == 1)
    }

    @Test func `a name in the database leads to no file outside the folder`() async throws {
        let system = SuspendingSystem()
        let id: QueuedUpload.ID
        do {
            let queue = UploadQueue(directory: directory, session: nil, service: nil, activity: system.activity)
            let first = Item(bytes: Self.photo("1"))
            let second = Item(bytes: Self.photo("2"), record: Data()) { try await system.suspendUntilCancelled() }
            id = try await suspended(queue, system, try form(first, second))
            let store = try await queue.opening.store()
            try store.database.write { db in
                let form = try #require(try Data.fetchOne(db, sql: "SELECT form FROM import"))
                let text = String(decoding: form, as: UTF8.self).replacing("\"1\"", with: "\"../../queue.sqlite\"")
                try db.execute(sql: "UPDATE import SET form = ?", arguments: [Data(text.utf8)])
            }
        }
        let queue = UploadQueue(directory: directory, finding: Library([Data(): Item(bytes: Self.photo("2"))]))
        await queue.resumeImports()
        #expect(try await queue.upload(id)?.state.name == "failed")
    }

    // MARK: - Space

    @Test func `a form that needs more than is free is not written`() async throws {
        let queue = UploadQueue(directory: directory, session: nil, service: nil, freeBytes: { _ in 300 })
        var form = QueuedForms.form()
        try await queue.enqueue(form, to: address)
        form.append(fileAt: try folder.file("large.bin", size: 1000), named: "file")
        let large = form
        let error = try await #require(throws: UploadQueueError.self) { try await queue.enqueue(large, to: address) }
        #expect(error.code == .full && error.freeBytes == 300)
        #expect(error.neededBytes == (try large.layout().contentLength))
        #expect(error.message.contains("300") && error.advice != nil)
        #expect(try leftovers.count == 1)
    }
}
