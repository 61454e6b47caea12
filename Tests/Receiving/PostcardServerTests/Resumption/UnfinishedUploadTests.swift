import Foundation
import PostcardReceiver
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardReception
@testable import PostcardServer
@testable import PostcardStore

@Suite(.timeLimit(.minutes(10)))
struct UnfinishedUploadTests {
    /// Deletes the first record that appears, as soon as it can be deleted.
    private static func deleteRecord(of receiver: RunningReceiver) async throws -> Int {
        try await onThread {
            let deadline = ContinuousClock.now + .seconds(100)
            var record: String?
            while record == nil, .now < deadline { record = try receiver.records.first }
            let path = "/uploads/" + (try #require(record))
            var status = 404
            while status == 404, .now < deadline {
                let socket = try RawSocket(port: receiver.port)
                try socket.send("DELETE \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                status = try RawResponse(socket.receiveAll()).status
            }
            return status
        }
    }

    @Test func `a record that is deleted before its response is kept leaves none`() async throws {
        try await withCurlSender { sender, receiver in
            for _ in 0..<10 {
                let body = Form.small.utf8
                let created = try await sender.create(body, isComplete: false)
                let location = try #require(created.head.fields["location"])
                async let deletion = Self.deleteRecord(of: receiver)
                let last = try await sender.append([], at: Int64(body.count), isComplete: true, to: location)
                #expect(last.status == 201)
                #expect(try await deletion == 204)
                #expect(try await sender.head(location).status == 404)
            }
            #expect(try receiver.records.isEmpty)
            #expect(receiver.unfinished.isEmpty)
        }
    }

    /// Makes what a receiver leaves of an upload of which ten bytes have arrived. Returns the file of these bytes.
    static func makeUpload(
        in directory: FilePath, promised: Int64?, start: String?, length: Int64? = nil, expires: Date = .distantFuture
    ) throws -> (ResumptionID, body: URL) {
        let id = ResumptionID.random()
        let folder = UnfinishedDirectory(path: directory.appending(".unfinished").appending(id.text))
        try FileManager.default.createDirectory(
            atPath: folder.path.removingLastComponent().string, withIntermediateDirectories: true)
        try folder.make(
            UnfinishedDirectory.Facts(
                contentType: "multipart/form-data; boundary=b", keyDigest: String(repeating: "a", count: 64),
                created: Date(), expires: expires, length: length, promised: promised, systemStart: start))
        let body = URL(filePath: folder.body.string)
        try Data("0123456789".utf8).write(to: body)
        return (id, body)
    }

    /// How many of ten bytes count when the receiver is started.
    static let starts: [(promised: Int64?, start: String?, count: Int64)] = [
        (4, SystemStart.current, 10), (4, "another", 4), (0, "another", 0), (10, "another", 10), (4, nil, 4),
        // From a version that did not say.
        (nil, nil, 10),
    ]

    @Test(arguments: starts)
    func `after another start of the system only the bytes count that were promised`(
        promised: Int64?, start: String?, count: Int64
    ) async throws {
        try await withTemporaryDirectory { directory in
            let (id, body) = try Self.makeUpload(in: directory, promised: promised, start: start)
            // The second finds what the first has left.
            for _ in 0..<2 {
                let store = try LocalUploadStore(directory: directory)
                #expect(await store.unfinished.find(id)?.progress == .unfinished(offset: count))
                #expect(try Data(contentsOf: body) == Data("0123456789".utf8).prefix(Int(count)))
            }
        }
    }

    @Test(arguments: [(10, .unfinished(offset: 10)), (9, .gone), (0, .gone)] as [(UInt64, UnfinishedUploadProgress)])
    func `an upload is gone when something else has shortened its file`(
        count: UInt64, progress: UnfinishedUploadProgress
    ) async throws {
        try await withTemporaryDirectory { directory in
            let (id, body) = try Self.makeUpload(in: directory, promised: 10, start: SystemStart.current)
            let store = try LocalUploadStore(directory: directory)
            let upload = try #require(await store.unfinished.find(id))
            try FileHandle(forWritingTo: body).truncate(atOffset: count)
            #expect(try await upload.durableProgress() == progress)
            // What has the same length again may not be the same.
            try Data("0123456789".utf8).write(to: body)
            #expect(try await upload.durableProgress() == progress)
        }
    }
}
