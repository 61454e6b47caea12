import Foundation
import PostcardReceivingSupport
import SystemPackage
import Testing

@testable import PostcardStore

/// Which responses are kept, and for how long.
extension UnfinishedUploadTests {
    private static func response(showing record: UploadID? = nil) throws -> FinalResponse {
        let text = record.map { "\"\($0)\"" } ?? "null"
        let json = #"{"status":201,"fields":[],"length":10,"record":\#(text)}"#
        return try JSONDecoder().decode(FinalResponse.self, from: Data(json.utf8))
    }

    private static func finish(
        in store: LocalUploadStore, for client: PeerAddress? = nil, keeping maximum: Int = 10_000, now: Date = Date()
    ) async throws -> LocalUnfinishedUpload {
        let upload = try await create(in: store, bytes: "0123456789", for: client, now: now)
        var options = UnfinishedUploadOptions()
        options.maximumKeptResponses = maximum
        try await upload.finish(with: response(), options: options)
        return upload
    }

    @Test func `responses from before a restart are forgotten in the order of their uploads`() async throws {
        try await withTemporaryDirectory { directory in
            let start = Date(timeIntervalSince1970: 1_000_000_000)
            var ids: [ResumptionID] = []
            do {
                let store = try LocalUploadStore(directory: directory)
                for number in 0..<5 { ids.append(try await Self.finish(in: store, now: start + Double(number)).id) }
            }
            let store = try LocalUploadStore(directory: directory)
            for count in 1...5 {
                _ = try await Self.finish(in: store, keeping: 5)
                var left: [ResumptionID] = []
                for id in ids {
                    if try await store.unfinishedUpload(id) != nil { left.append(id) }
                }
                #expect(left == Array(ids.dropFirst(count)))
            }
        }
    }

    static let addresses = ["192.0.2.1", "2001:db8::7"].map { text in IPAddress(text: text).map { PeerAddress($0) } }

    @Test(arguments: addresses, [false, true])
    func `a client with many responses keeps no other client's from it, also after a restart`(
        client: PeerAddress?, isRestarted: Bool
    ) async throws {
        try await withTemporaryDirectory { directory in
            var store: LocalUploadStore? = try LocalUploadStore(directory: directory)
            let first = try await Self.finish(in: try #require(store), for: client, keeping: 4).id
            for number in 0..<10 {
                if isRestarted, number == 5 {
                    // One store at a time has the directory open.
                    store = nil
                    store = try LocalUploadStore(directory: directory)
                }
                let store = try #require(store)
                _ = try await Self.finish(in: store, for: TestPeers.all[2], keeping: 4)
                #expect(await store.unfinished.find(first)?.form.client == client)
            }
        }
    }

    @Test func `as many responses are kept as the options say, also if more were kept before`() async throws {
        try await withTemporaryDirectory { directory in
            do {
                let store = try LocalUploadStore(directory: directory)
                for _ in 0..<5 { _ = try await Self.finish(in: store) }
            }
            let store = try LocalUploadStore(directory: directory)
            let last = try await Self.finish(in: store, keeping: 2)
            let folders = try FileManager.default.contentsOfDirectory(
                atPath: directory.appending(".unfinished").string)
            #expect(folders.count == 2 && folders.contains(last.id.text))
        }
    }

    @Test(arguments: [false, true])
    func `a response that is gone takes no place from others`(isDamaged: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let first = try await Self.finish(in: store, keeping: 2)
            let second = try await Self.finish(in: store, keeping: 2)
            if isDamaged {
                try Data().write(to: URL(filePath: second.directory.path.appending("answer.json").string))
                await #expect(throws: UploadStoreError.self) { try await second.response() }
            } else {
                try await second.discard()
            }
            let third = try await Self.finish(in: store, keeping: 2)
            #expect([first, second, third].map { $0.progress == .gone } == [false, true, false])
            let fourth = try await Self.finish(in: store, keeping: 2)
            #expect([first, third, fourth].map { $0.progress == .gone } == [true, false, false])
        }
    }

    @Test func `a response that is not as it was written is set aside, and one that is missing is not`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await Self.finish(in: store)
            #expect(!FileManager.default.fileExists(atPath: upload.directory.body.string))
            let path = upload.directory.path.appending("answer.json").string
            let elsewhere = directory.appending("elsewhere").string
            try FileManager.default.moveItem(atPath: path, toPath: elsewhere)
            let unread = await #expect(throws: UploadStoreError.self) { try await upload.response() }
            #expect(unread?.code == .unavailable)
            try FileManager.default.moveItem(atPath: elsewhere, toPath: path)
            let response = try Self.response()
            #expect(try await upload.response() == response)
            #expect(store.damagedCount == 0)
            try Data("{}".utf8).write(to: URL(filePath: path))
            let damaged = await #expect(throws: UploadStoreError.self) { try await upload.response() }
            #expect(damaged?.code == .damaged)
            #expect(upload.progress == .gone)
            #expect(try await store.unfinishedUpload(upload.id) == nil)
            #expect(store.damagedCount == 1)
            let aside = directory.appending(".damaged").appending(upload.id.text)
            #expect(FileManager.default.fileExists(atPath: aside.appending("answer.json").string))
        }
    }

    @Test func `the bytes of an upload that has a response are removed at the next start too`() async throws {
        try await withTemporaryDirectory { directory in
            let id: ResumptionID
            let body: String
            do {
                let store = try LocalUploadStore(directory: directory)
                let upload = try await Self.finish(in: store)
                id = upload.id
                body = upload.directory.body.string
            }
            // As if the receiver had been killed before it removed them.
            try Data("0123456789".utf8).write(to: URL(filePath: body))
            let store = try LocalUploadStore(directory: directory)
            #expect(!FileManager.default.fileExists(atPath: body))
            #expect(await store.unfinished.find(id)?.progress == .finished(length: 10, record: nil))
        }
    }

    @Test func `a response that shows a record which is gone by then is not kept`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await Self.create(in: store, bytes: "0123456789")
            let deleted = try #require(UploadID("01kz5dr1c10123456789abcdef"))
            try await upload.finish(with: Self.response(showing: deleted), options: UnfinishedUploadOptions())
            #expect(upload.progress == .gone)
            #expect(try await store.unfinishedUpload(upload.id) == nil)
        }
    }

    @Test func `a record that is deleted takes its own response with it, and no other upload`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let unfinished = try await Self.create(in: store, bytes: "0123456789")
            var finished: [LocalUnfinishedUpload] = []
            var records: [UploadID] = []
            for _ in 0..<2 {
                let record = try await store.beginUpload().commit(fields: [], parts: []).record.id
                let upload = try await Self.create(in: store, bytes: "0123456789")
                try await upload.finish(with: Self.response(showing: record), options: UnfinishedUploadOptions())
                finished.append(upload)
                records.append(record)
            }
            #expect(try await store.delete(records[0]))
            #expect(finished.map(\.progress) == [.gone, .finished(length: 10, record: records[1])])
            #expect(try await store.unfinishedUploads().map(\.id) == [unfinished.id])
            #expect(unfinished.progress == .unfinished(offset: 10))
        }
    }
}
