import Foundation
import NIOCore
import PostcardReceivingSupport
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardStore

/// Which bytes are there after the receiver, or the system, was started again.
extension UnfinishedUploadTests {
    static let form = UnfinishedForm(
        contentType: "multipart/form-data; boundary=b", key: UploadKey("key", scope: ""), length: nil)

    /// Creates an upload, as a request does that then ends.
    static func create(
        in store: LocalUploadStore, bytes: String = "", for client: PeerAddress? = nil,
        expires: Date = .distantFuture, now: Date = Date()
    ) async throws -> LocalUnfinishedUpload {
        var form = form
        form.client = client
        let upload = try await store.unfinished.create(.random(), of: form, expires: expires, now: now)
        await upload.lock.withLock {}
        if !bytes.isEmpty { try await append(bytes, to: upload) }
        return upload
    }

    static func append(_ bytes: String, to upload: LocalUnfinishedUpload) async throws {
        var appender = try await upload.makeAppender(isRevertible: false)
        try await appender.append(ByteBuffer(string: bytes))
        try await appender.finish()
    }

    /// Makes an upload look as one from before the last start of the system. No store has it open.
    private static func restartSystem(_ id: ResumptionID, in directory: FilePath) throws {
        let folder = UnfinishedDirectory(path: directory.appending(".unfinished").appending(id.text))
        var facts = try #require(try folder.load()?.facts)
        facts.systemStart = "another"
        try folder.update(facts)
    }

    @Test(arguments: [(true, 10), (false, 4)] as [(Bool, Int64)])
    func `bytes from before a restart of the receiver are kept for good once they are promised`(
        isPromised: Bool, count: Int64
    ) async throws {
        try await withTemporaryDirectory { directory in
            let (id, _) = try Self.makeUpload(in: directory, promised: 4, start: SystemStart.current)
            do {
                let store = try LocalUploadStore(directory: directory)
                let upload = try #require(await store.unfinished.find(id))
                if isPromised { #expect(try await upload.durableProgress() == .unfinished(offset: 10)) }
            }
            try Self.restartSystem(id, in: directory)
            let store = try LocalUploadStore(directory: directory)
            #expect(await store.unfinished.find(id)?.progress == .unfinished(offset: count))
        }
    }

    @Test func `an upload whose file has fewer bytes than were promised is gone after a restart`() async throws {
        try await withTemporaryDirectory { directory in
            let id: ResumptionID
            do {
                let store = try LocalUploadStore(directory: directory)
                let upload = try await Self.create(in: store, bytes: "0123456789")
                #expect(try await upload.durableProgress() == .unfinished(offset: 10))
                id = upload.id
            }
            let body = directory.appending(".unfinished").appending(id.text).appending("body")
            try Data("0123".utf8).write(to: URL(filePath: body.string))
            let store = try LocalUploadStore(directory: directory)
            #expect(await store.unfinished.find(id) == nil)
        }
    }

    @Test(arguments: [(true, 10), (false, 0)] as [(Bool, Int64)])
    func `no byte counts after a start of the system that was not promised`(
        isPromised: Bool, count: Int64
    ) async throws {
        try await withTemporaryDirectory { directory in
            let id: ResumptionID
            do {
                let store = try LocalUploadStore(directory: directory)
                let upload = try await Self.create(in: store, bytes: "0123456789")
                id = upload.id
                // What is taken back does not change what was there before.
                var appender = try await upload.makeAppender(isRevertible: true)
                try await appender.append(ByteBuffer(string: "wrong"))
                try await appender.revert()
                if isPromised { #expect(try await upload.durableProgress() == .unfinished(offset: 10)) }
                try await Self.append("abc", to: upload)
            }
            try Self.restartSystem(id, in: directory)
            let store = try LocalUploadStore(directory: directory)
            #expect(await store.unfinished.find(id)?.progress == .unfinished(offset: count))
        }
    }

    @Test func `bytes that came after a start of the system count when the receiver is started again`() async throws {
        try await withTemporaryDirectory { directory in
            let (id, body) = try Self.makeUpload(in: directory, promised: 4, start: "another")
            do {
                let store = try LocalUploadStore(directory: directory)
                try await Self.append("abcdef", to: try #require(await store.unfinished.find(id)))
            }
            let store = try LocalUploadStore(directory: directory)
            #expect(await store.unfinished.find(id)?.progress == .unfinished(offset: 10))
            #expect(try Data(contentsOf: body) == Data("0123abcdef".utf8))
        }
    }

    @Test func `bytes are promised once, and asking again writes nothing`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await Self.create(in: store, bytes: "0123456789")
            let path = upload.directory.path.appending("upload.json")
            func facts() async throws -> Inode {
                _ = try await upload.durableProgress()
                return try path.stat().inode
            }
            let first = try await facts()
            #expect(try await facts() == first)
            try await Self.append("a", to: upload)
            #expect(try await facts() != first)
            #if os(Linux)
            let folder = URL(filePath: upload.directory.path.string).resolvingSymlinksInPath()
            try await eventually { try OpenDescriptors.files(in: folder) == 0 }
            #endif
        }
    }

    #if os(Linux)
    @Test func `a start of the system is known by the identifier that the system gives it`() throws {
        let text = try String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        #expect(SystemStart.current == text.trimmingCharacters(in: .whitespacesAndNewlines))
    }
    #endif

    @Test(arguments: ["body", ""])
    func `an upload is gone when its files are, and can be discarded all the same`(name: String) async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await Self.create(in: store, bytes: "0123456789")
            let folder = upload.directory.path
            try FileManager.default.removeItem(atPath: name.isEmpty ? folder.string : folder.appending(name).string)
            #expect(try await upload.durableProgress() == .gone)
            try await upload.discard()
            #expect(upload.progress == .gone)
            #expect(try await store.unfinishedUpload(upload.id) == nil)
            #expect(!FileManager.default.fileExists(atPath: folder.string))
        }
    }
}
