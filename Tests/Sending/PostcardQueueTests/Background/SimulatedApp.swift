import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardTransferDaemon
import Synchronization

/// What outlives the processes of an app: its queue's directory and its background session. Each queue that it makes
/// simulates a process.
struct SimulatedApp {
    let directory: URL
    let daemon: TransferDaemon
    /// Tests run at the same time, so each has its own session.
    let identifier = "org.example.app.\(UUID().uuidString)"
    var maximumOpenUploads = 100
    var time = FastTime.time
    var headerFields: (@Sendable (QueuedUpload) async throws -> HTTPFields)?
    var retryPolicy: RetryPolicy = {
        var policy = RetryPolicy(maximumAttempts: 5)
        policy.firstDelay = .milliseconds(1)
        policy.maximumDelay = .milliseconds(20)
        return policy
    }()

    /// The queue of the next process.
    ///
    /// - Parameter isWakeUp: Whether the system launched the process for the session's events.
    func queue(isWakeUp: Bool = false) -> UploadQueue {
        queue(daemon.service(isWakeUp: isWakeUp))
    }

    func queue(_ service: some TransferService) -> UploadQueue {
        var session = BackgroundSession(identifier: identifier)
        session.retryPolicy = retryPolicy
        session.maximumOpenUploads = maximumOpenUploads
        session.headerFields = headerFields
        // By the tests' fast clock, which says nothing about a busy machine.
        session.maximumWakeUp = .seconds(100_000)
        return UploadQueue(directory: directory, session: session, service: service, time: time)
    }

    /// Runs a process while the work is done, and disconnects it.
    func process(
        _ queue: UploadQueue, while work: @escaping @Sendable () async throws -> Void
    ) async throws {
        try await queue.run(while: work)
        await queue.disconnect()
    }

    /// Enqueues forms in a process that hands them over and ends. The network is off, so nothing is sent yet.
    func handOver(to urls: [URL], fileBytes: Int = 1000) async throws -> [QueuedUpload.ID] {
        try await daemon.setNetwork(isUp: false)
        let handedOver = try await daemon.status()[.handedOver] + urls.count
        let queue = queue()
        var ids: [QueuedUpload.ID] = []
        for (number, url) in urls.enumerated() {
            ids.append(try await queue.enqueue(Self.form("form \(number)", fileBytes: fileBytes), to: url))
        }
        try await process(queue) { [daemon] in try await daemon.wait(for: .handedOver, atLeast: handedOver) }
        return ids
    }

    func handOver(_ count: Int = 1, to url: URL, fileBytes: Int = 1000) async throws -> [QueuedUpload.ID] {
        try await handOver(to: Array(repeating: url, count: count), fileBytes: fileBytes)
    }

    static func form(_ name: String, fileBytes: Int = 1000) -> MultipartForm {
        var form = MultipartForm()
        form.append(name, named: "name")
        form.append(Data(repeating: 7, count: fileBytes), named: "file", filename: "초코.bin")
        return form
    }
}

/// A service that counts the transfers it began.
final class CountingService: TransferService {
    private let service: DaemonTransferService
    private let count = Mutex(0)

    /// The number of transfers that were handedOver.
    var handedOver: Int { count.withLock { $0 } }

    init(_ service: DaemonTransferService) {
        self.service = service
    }

    func connect(
        _ report: @escaping @Sendable (AttemptEvent) -> Void,
        freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) async throws {
        try await service.connect(report, freshFields: freshFields)
    }

    func transfers() async throws -> [AttemptID: Bool] { try await service.transfers() }

    func begin(_ transfer: Transfer) async throws {
        try await service.begin(transfer)
        count.withLock { $0 += 1 }
    }

    func cancel(_ ids: Set<AttemptID>) async { await service.cancel(ids) }

    func pause(_ ids: Set<AttemptID>) async -> [AttemptID: Data] { await service.pause(ids) }

    func disconnect() async { await service.disconnect() }

    func release() async { await service.release() }
}
