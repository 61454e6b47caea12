import Foundation
import Logging
import NIOCore
import PostcardS3
import PostcardServer

/// A receiver: a process with a store, which is opened again after each kill. The handlers are what the upload routes
/// do with the store.
final class SimulatedReceiver: @unchecked Sendable {
    private let network: SimulatedNetwork
    private let plant: Plant?
    private let partBytes: Int
    private(set) var process: SimulatedProcess
    private(set) var store: S3UploadStore?
    /// The connections of the requests that append, by the upload's identifier.
    private var appending: [ResumptionID: ClientConnection] = [:]
    /// How far the clock is ahead of the object store's, in seconds.
    var skew = 0.0

    private static let origin = ContinuousClock.now
    private static let logger = Logger(label: "simulation", factory: { _ in SwiftLogNoOpLogHandler() })

    init(_ network: SimulatedNetwork, _ plant: Plant?, partBytes: Int) {
        self.network = network
        self.plant = plant
        self.partBytes = partBytes
        process = SimulatedProcess(network.scheduler)
        process.kill()
    }

    private var scheduler: Scheduler { network.scheduler }
    var isRunning: Bool { !process.isDead }

    func kill() {
        process.kill()
        store = nil
    }

    /// Starts the receiver, until it runs or is killed.
    func start() {
        let process = SimulatedProcess(scheduler)
        self.process = process
        Task(executorPreference: process) {
            while !process.isDead {
                if let store = try? await self.open(process) {
                    if !process.isDead { self.store = store }
                    return
                }
                await process.pause(1)
            }
        }
    }

    private func open(_ process: SimulatedProcess) async throws -> S3UploadStore {
        var bucket = try S3Bucket("s3://simulation")
        bucket.endpoint = "http://simulation"
        bucket.region = "us-east-1"
        bucket.credentials = .fixed(S3Credentials(accessKeyID: "key", secretAccessKey: "secret"))
        let (network, scheduler) = (self.network, self.scheduler)
        bucket.clock = { [unowned self] in
            Date(timeIntervalSince1970: SimulatedStore.start + scheduler.now + self.skew)
        }
        let direct: Exchange = { request, signed, limit in
            try await network.exchange(request, signed: signed, limit: limit, of: process)
        }
        let exchange = plant.map { plant in plant.wrap(direct, PlantedWorld(network, process)) } ?? direct
        bucket.surroundings = Surroundings(
            exchange: { request, signed, limit in
                // A process may be stopped between what it decides and what it sends.
                await process.pause(0)
                return try await exchange(request, signed, limit)
            },
            now: { [plant] in
                let time = plant?.stopsClock == true ? process.runningTime : scheduler.now
                return Self.origin.advanced(by: .nanoseconds(Int64(time * 1e9)))
            },
            sleep: { duration in try await process.sleep(duration / .seconds(1)) },
            random: { scheduler.random.next() }, executor: process, partBytes: partBytes, freeBytes: partBytes / 2)
        return try await S3UploadStore.open(bucket, memoryBytes: 3 * partBytes, logger: Self.logger)
    }

    /// Ends the request that appends to an upload, as another request for the upload does.
    func begin(_ id: ResumptionID, on connection: ClientConnection) {
        appending.updateValue(connection, forKey: id)?.close()
    }

    // MARK: - Handlers

    /// What a client is answered.
    enum Response: Sendable {
        case created(UploadRecord)
        case offset(Int64)
        /// The offset is another one.
        case mismatch(Int64)
        case overtaken(start: Int64, call: Int)
        case finished(UploadID?)
        case notFound
        case keyReused
    }

    /// How a client sends.
    struct Pace: Sendable {
        let connection: ClientConnection
        /// The seconds before each piece.
        var pauses: [Double]
        var pieceBytes: Int

        func pieces(of bytes: [UInt8]) -> [ByteBuffer] {
            stride(from: 0, to: bytes.count, by: pieceBytes).map { start in
                ByteBuffer(bytes: bytes[start..<min(start + pieceBytes, bytes.count)])
            }
        }
    }

    private static func send(
        _ bytes: [UInt8], _ pace: Pace, on process: SimulatedProcess, _ body: (ByteBuffer) async throws -> Void
    ) async throws {
        for (index, piece) in pace.pieces(of: bytes).enumerated() {
            if index < pace.pauses.count, pace.pauses[index] > 0 {
                try await pace.connection.wait(pace.pauses[index], on: process)
            }
            try await body(piece)
        }
    }

    static func receive(
        _ form: Form, under key: UploadKey?, _ pace: Pace, in store: S3UploadStore, on process: SimulatedProcess
    ) async throws -> Response {
        let upload = try await store.beginUpload(under: key, announcedBytes: nil)
        do {
            for file in form.files {
                try await upload.beginFile(
                    UploadRecord.FileHeader(name: "file", filename: "a.bin", contentType: "application/octet-stream"))
                try await send(file, pace, on: process) { try await upload.write($0) }
                try await upload.endFile()
            }
            let parts = [UploadRecord.Part.field(0)] + form.files.indices.map(UploadRecord.Part.file)
            return .created(try await upload.commit(fields: form.fields, parts: parts).record)
        } catch {
            await upload.discard()
            guard (error as? UploadStoreError)?.code == .keyReused else { throw error }
            return .keyReused
        }
    }

    /// A part of a form, as one request sends it.
    struct Part: Sendable {
        var offset: Int64
        var bytes: [UInt8]
        var isLast: Bool
        /// The length of the form, if the request says it.
        var length: Int64?
        /// Whether the request has the digest of its bytes; the second is whether it matches.
        var digest: (isSent: Bool, isRight: Bool) = (false, true)
    }

    static func append(
        _ part: Part, to id: ResumptionID, _ pace: Pace, in store: S3UploadStore, on process: SimulatedProcess
    ) async throws -> Response {
        guard let upload = try await store.unfinishedUpload(id) else { return .notFound }
        return try await upload.lock.withLock {
            try await append(part, to: upload, pace, in: store, on: process)
        }
    }

    static func append(
        _ part: Part, to upload: S3UnfinishedUpload, _ pace: Pace, in store: S3UploadStore,
        on process: SimulatedProcess
    ) async throws -> Response {
        switch try await upload.durableProgress() {
        case .gone: return .notFound
        case .finished(_, let record): return .finished(record)
        case .unfinished(let offset) where offset != part.offset: return .mismatch(offset)
        case .unfinished: break
        }
        if let length = part.length { try await upload.setLength(length) }
        var appender = try await upload.makeAppender(isRevertible: part.digest.isSent)
        guard appender.offset == part.offset else { return .mismatch(appender.offset) }
        do {
            do {
                try await send(part.bytes, pace, on: process) { try await appender.append($0) }
            } catch let error as UploadStoreError {
                throw error
            } catch {
                // The client is gone. What it has sent is kept.
                if part.digest.isSent, !part.digest.isRight { try await appender.revert() }
                try await appender.finish()
                throw error
            }
            if part.digest.isSent, !part.digest.isRight {
                try await appender.revert()
                return .mismatch(part.offset)
            }
            try await appender.finish()
        } catch let error as UploadStoreError where error.code == .overtaken {
            return .overtaken(start: part.offset, call: Call.id)
        }
        if part.isLast { return try await finish(upload, in: store, on: process) }
        switch try await upload.durableProgress() {
        case .gone: return .notFound
        case .finished(_, let record): return .finished(record)
        case .unfinished(let offset): return .offset(offset)
        }
    }

    private static func finish(
        _ upload: S3UnfinishedUpload, in store: S3UploadStore, on process: SimulatedProcess
    ) async throws -> Response {
        guard case .unfinished(let length) = upload.progress, upload.form.length ?? length == length else {
            return .notFound
        }
        let file = try await upload.openContent()
        var bytes: [UInt8] = []
        while bytes.count < file.size {
            bytes += Array(try await file.read(at: Int64(bytes.count), count: 24).readableBytesView)
        }
        guard let form = Form(bytes) else { return .notFound }
        let pace = Pace(connection: ClientConnection(), pauses: [], pieceBytes: 24)
        let response = try await receive(form, under: upload.form.key, pace, in: store, on: process)
        var record: UploadID?
        if case .created(let made) = response { record = made.id }
        // If it cannot be stored, the key leads to the same record.
        try? await upload.finish(with: FinalResponse(json: record, length: length), options: UnfinishedUploadOptions())
        return response
    }
}

/// The connection on which a client sends.
final class ClientConnection: @unchecked Sendable {
    struct Closed: Error {}

    private var isClosed = false
    private var waiting: Answer<Void>?

    func close() {
        isClosed = true
        waiting?.give(.failure(Closed()))
    }

    /// Waits for the client to send more.
    func wait(_ seconds: Double, on process: SimulatedProcess) async throws {
        guard !process.isDead else { throw Killed() }
        guard !isClosed else { throw Closed() }
        defer { waiting = nil }
        try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Void, any Error>) in
            let answer = Answer(continuation)
            waiting = answer
            process.scheduler.schedule(after: seconds) { answer.give(.success(())) }
        }
        guard !process.isDead else { throw Killed() }
    }
}

extension FinalResponse {
    /// The response to a form that became a record, or was refused.
    fileprivate init(json record: UploadID?, length: Int64) throws {
        let show = record.map { ",\"record\":\"\($0.text)\"" } ?? ",\"body\":\"\""
        let json = "{\"status\":\(record == nil ? 422 : 201),\"fields\":[],\"length\":\(length)\(show)}"
        self = try JSONDecoder().decode(FinalResponse.self, from: Data(json.utf8))
    }
}
