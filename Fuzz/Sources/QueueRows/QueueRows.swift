import Dispatch
import Foundation
import GRDB
import HTTPTypes
import Inputs
import PostcardClient
import PostcardForm
import PostcardQueue

/// Any row of an upload is read, or only that upload fails: the other upload of the queue is listed and sent, nothing
/// but the queue's own bodies is sent, and nothing outside its folder is touched.
///
/// Input: values, each a byte for the column, a byte for the type, and the value: 8 bytes for a number, a short text or
/// blob, or a blob and how often it is repeated.
@_cdecl("LLVMFuzzerTestOneInput")
public func queueRows(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    do {
        let queue = try FuzzedQueue.only.get()
        var input = Input(start, count)
        try queue.restore()
        while !input.isEmpty { try queue.change(&input) }
        try queue.check()
        return 0
    } catch {
        finding("\(error)")
    }
}

/// A queue with two uploads, of which the first is changed.
private final class FuzzedQueue: Sendable {
    static let only = Result<FuzzedQueue, any Error> { try FuzzedQueue() }

    private let folder: URL
    private let queue: UploadQueue
    private let rows: DatabaseQueue
    /// The form of both, and where it is kept.
    private let body: Data
    private let bodies: [URL]
    private let canary: URL

    private static let columns = [
        "upload.uuid", "upload.url", "upload.method", "upload.state", "upload.schedule", "upload.due", "upload.session",
        "upload.priority", "upload.networks", "upload.sequence", "upload.notBefore", "upload.expires", "upload.tag",
        "upload.sent", "upload.total",
        "upload.attempts", "upload.failures", "upload.interruptions", "upload.hasFreshFields", "upload.code",
        "upload.reason", "upload.advice", "upload.resource", "upload.enqueued",
        "upload.started", "upload.conflicts", "upload.finished",
        "request.idempotencyKey", "request.headerFields", "request.contentType", "request.parts", "response.status",
        "response.headerFields", "response.body", "delivery.attempt", "resumption.stopped",
        "resumption.resumeData",
    ]

    private init() throws {
        // Where it costs no writing, if there is such a place.
        let memory = URL(filePath: "/dev/shm")
        let isWritable = FileManager.default.isWritableFile(atPath: memory.path)
        let place = isWritable ? memory : FileManager.default.temporaryDirectory
        folder = place.appending(path: "postcard-fuzz-\(UUID().uuidString)")
        let directory = folder.appending(path: "queue")
        queue = UploadQueue(directory: directory)
        canary = folder.appending(path: "canary")
        // The queue makes its own folder when it is first used.
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("secret".utf8).write(to: canary)
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(Data("content".utf8), named: "file", filename: "a.txt")
        let (made, url) = (form, URL(string: "http://127.0.0.1:1/uploads"))
        guard let url else { throw CancellationError() }
        try Self.wait { [queue] in
            for _ in 0..<2 { try await queue.enqueue(made, to: url) }
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.appending(path: "bodies").path)
        bodies = names.map { directory.appending(path: "bodies/\($0)") }
        body = try Data(contentsOf: bodies[0])
        rows = try DatabaseQueue(path: directory.appending(path: "queue.sqlite").path)
        try rows.inDatabase { db in
            try db.execute(
                sql: """
                    PRAGMA synchronous = OFF;
                    INSERT INTO response VALUES (1, 201, x'5b5d', x'6f6b');
                    CREATE TEMP TABLE kept_upload AS SELECT * FROM upload;
                    CREATE TEMP TABLE kept_request AS SELECT * FROM request;
                    INSERT INTO delivery VALUES (1, 1);
                    INSERT INTO resumption VALUES (1, 0, x'00');
                    CREATE TEMP TABLE kept_response AS SELECT * FROM response;
                    CREATE TEMP TABLE kept_delivery AS SELECT * FROM delivery;
                    CREATE TEMP TABLE kept_resumption AS SELECT * FROM resumption;
                    """)
        }
        atexit {
            if let queue = try? FuzzedQueue.only.get() { try? FileManager.default.removeItem(at: queue.folder) }
        }
    }

    /// Makes everything as it was at first.
    func restore() throws {
        try rows.write { db in
            try db.execute(
                sql: """
                    DELETE FROM upload;
                    INSERT INTO upload SELECT * FROM kept_upload;
                    INSERT INTO request SELECT * FROM kept_request;
                    INSERT INTO response SELECT * FROM kept_response;
                    INSERT INTO delivery SELECT * FROM kept_delivery;
                    INSERT INTO resumption SELECT * FROM kept_resumption;
                    """)
        }
        for file in bodies where !FileManager.default.fileExists(atPath: file.path) { try body.write(to: file) }
    }

    /// Puts a value into a column of the first upload. What a constraint refuses is left out.
    func change(_ input: inout Input) throws {
        let column = Self.columns[Int(input.byte()) % Self.columns.count].split(separator: ".")
        var value: (any DatabaseValueConvertible)?
        var expression = "?"
        switch input.byte() % 6 {
        case 0: value = nil
        case 1: value = Int64(bitPattern: Self.number(&input))
        case 2: value = Double(bitPattern: Self.number(&input))
        case 3: (value, expression) = (Data(input.shortBytes()), "CAST(? AS TEXT)")
        case 4: value = Data(input.shortBytes())
        default:
            let bytes = input.shortBytes()
            value = Data(repeatElement(bytes, count: Int(input.byte()) * 16).joined())
        }
        do {
            try rows.write { db in
                try db.execute(
                    sql: "UPDATE \(column[0]) SET \(column[1]) = \(expression) WHERE id = 1", arguments: [value])
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
            return
        }
    }

    private static func number(_ input: inout Input) -> UInt64 {
        (0..<8).reduce(0) { number, _ in number << 8 | UInt64(input.byte()) }
    }

    /// Reads and sends as a program does.
    func check() throws {
        try Self.wait { try await self.use() }
        if try Data(contentsOf: canary) != Data("secret".utf8) { finding("something outside has changed") }
    }

    private func use() async throws {
        for upload in try await queue.uploads() {
            _ = (upload.fraction, upload.parts.map(upload.fraction(of:)), "\(upload.state)")
        }
        _ = try? await queue.upload(1)
        guard try await queue.upload(2)?.state == .waiting else { finding("the other upload is not there") }
        let (sent, client) = (body, UploadClient(transport: Reading(expected: body)))
        let running = Task { [queue] in
            var policy = RetryPolicy(maximumAttempts: 2)
            policy.firstDelay = .zero
            try await queue.run(client, options: QueueOptions(retryPolicy: policy, endsWhenEmpty: true))
        }
        // The first may be due in a year.
        for _ in 0..<5000 {
            if case .done = try await queue.upload(2)?.state { break }
            try await Task.sleep(for: .milliseconds(1))
        }
        running.cancel()
        if case .failure(let error) = await running.result, !(error is CancellationError) { throw error }
        guard case .done = try await queue.upload(2)?.state else {
            finding("the other upload of \(sent.count) bytes is not sent")
        }
        try? await queue.retry(1)
        try? await queue.pause(1)
        try? await queue.resume(1)
        try await queue.retryAll()
        try await queue.cancelAll()
        _ = try await queue.clear(.ended)
        if try await !queue.uploads().isEmpty { finding("something is left that cannot be cleared") }
    }

    private static func wait(for work: @escaping @Sendable () async throws -> Void) throws {
        let semaphore = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var result: Result<Void, any Error> = .success(())
        Task.detached {
            do { try await work() } catch { result = .failure(error) }
            semaphore.signal()
        }
        semaphore.wait()
        try result.get()
    }
}

/// Sends nowhere, and looks at what would be sent.
private struct Reading: UploadTransport {
    let expected: Data

    func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        if let reader = try request.body?.reader() {
            var body = Data()
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while try await reader.prepare() {
                let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
                body += buffer[..<count]
            }
            if body != expected { finding("\(body.count) other bytes are sent to \(request.url)") }
        }
        return UploadResponse(status: .created, headerFields: HTTPFields(), body: Data())
    }
}
