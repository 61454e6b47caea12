import Dispatch
import Foundation
import PostcardClient
import PostcardQueue
import PostcardTestSupport
import PostcardTransferDaemon
import Synchronization
import Testing

/// Apps that the system launches in the background, and suspends again.
@Suite(.timeLimit(.minutes(10))) struct WakeUpTests {
    /// How the app is notified that it may be suspended.
    enum Way: CaseIterable {
        /// With a completion handler, which is passed before or after the queue is made.
        case handlerBeforeQueue, handlerAfterQueue
        /// With a task that returns.
        case backgroundTask
    }

    /// A process of the app, with its state at each moment when it may have been suspended.
    @MainActor private final class Process {
        struct Moment {
            let states: [QueuedUpload.State]
            /// The number of transfers that the process handed over.
            let handedOver: Int
        }

        let service: CountingService
        var queue: UploadQueue?
        private(set) var moments: [Moment] = []

        init(_ service: CountingService) {
            self.service = service
        }

        func note() {
            moments.append(Moment(states: states(), handedOver: service.handedOver))
        }

        /// The states now: the main actor does nothing else until they are read.
        private func states() -> [QueuedUpload.State] {
            guard let queue else { return [] }
            let states = Mutex<[QueuedUpload.State]>([])
            let isRead = DispatchSemaphore(value: 0)
            Task.detached {
                let uploads = (try? await queue.uploads()) ?? []
                states.withLock { $0 = uploads.map(\.state) }
                isRead.signal()
            }
            isRead.wait()
            return states.withLock { $0 }
        }
    }

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Launches a process for the session's events, and returns the moments when it may have been suspended.
    @MainActor private func wakeUp(_ app: SimulatedApp, _ way: Way) async throws -> [Process.Moment] {
        let process = Process(CountingService(app.daemon.service(isWakeUp: true)))
        let (calls, call) = AsyncStream.makeStream(of: Void.self)
        let register = {
            UploadQueue.handleEvents(forSession: app.identifier) {
                process.note()
                call.yield()
            }
        }
        if way == .handlerBeforeQueue { register() }
        let queue = app.queue(process.service)
        process.queue = queue
        if way == .handlerAfterQueue { register() }
        if way == .backgroundTask {
            await queue.handleEvents()
            process.note()
            await queue.disconnect()
        } else {
            try await app.process(queue) { for await _ in calls { return } }
        }
        return process.moments
    }

    @Test(arguments: Way.allCases)
    func `a wake-up ends once, when all events are settled and what follows is handed over`(way: Way) async throws {
        let server = try await ReceivingServer()
        let daemon = try await TransferDaemon()
        var app = SimulatedApp(directory: folder.url.appending(path: "queue"), daemon: daemon)
        app.retryPolicy.maximumAttempts = 2
        try await FaultProxy.run(before: server.url) { request in
            switch request.path {
            case "/busy": .response(.init(503))
            case "/refusing": .response(.init(400))
            default: .none
            }
        } while: { [app] proxy in
            let (busy, refusing) = (proxy.url.appending(path: "busy"), proxy.url.appending(path: "refusing"))
            _ = try await app.handOver(to: [proxy.uploads, busy, refusing, proxy.uploads])
            try await daemon.setNetwork(isUp: true)
            try await daemon.wait(for: .ended, atLeast: 4)
            // What follows is handed over but not sent yet.
            try await daemon.setNetwork(isUp: false)

            let first = try await wakeUp(app, way)
            #expect(first.count == 1)
            let moment = try #require(first.first)
            #expect(moment.handedOver == 1)
            #expect(moment.states.count(where: \.isDone) == 2)
            #expect(moment.states.count { $0.failure != nil } == 1)
            #expect(moment.states.count { $0 == .sending || $0.isRetrying } == 1)

            try await daemon.setNetwork(isUp: true)
            try await daemon.wait(for: .ended, atLeast: 5)
            let second = try await wakeUp(app, way)
            #expect(second.count == 1)
            #expect(second.first?.handedOver == 0)
            #expect(second.first?.states.count { $0.failure != nil } == 2)
            #expect(proxy.seen.count == 5)
        }
        #expect(try await daemon.status()[.handedOver] == 5)
        #expect(try await server.end().records.count == 2)
    }

    /// The system also launches the app if a process was killed after it had settled the events.
    @Test(arguments: Way.allCases)
    func `a wake-up without events ends as well`(way: Way) async throws {
        let daemon = try await TransferDaemon()
        let app = SimulatedApp(directory: folder.url.appending(path: "queue"), daemon: daemon)
        let moments = try await wakeUp(app, way)
        #expect(moments.count == 1)
        #expect(moments.first?.states.isEmpty == true)
    }
}
