import Foundation
import PostcardReceivingSupport
import SystemPackage
import Testing

@testable import PostcardStore

@Suite(.timeLimit(.minutes(10)))
struct UnfinishedUploadTests {
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
