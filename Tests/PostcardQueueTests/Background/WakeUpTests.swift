import Foundation
import PostcardClient
import PostcardQueue
import PostcardTestSupport
import PostcardTransferDaemon
import Testing

/// What holds when an app that the system launched in the background is suspended again.
@Suite(.timeLimit(.minutes(5))) struct WakeUpTests {
    /// How the app learns that it may be suspended.
    enum Way: CaseIterable {
        /// A completion handler, which comes before there is a queue, or after.
        case handlerBeforeQueue, handlerAfterQueue
        /// A task that returns.
        case backgroundTask
    }

    /// A process of the app, and what was so each time it might have been suspended.
    @MainActor private final class Process {
        struct Moment {
            let states: [QueuedUpload.State]
            /// How many transfers the process has handed over.
            let begun: Int
        }

        let service: CountingService
        var queue: UploadQueue?
        private(set) var moments: [Moment] = []

        init(_ service: CountingService) {
            self.service = service
        }

        func note() {
            let states = (try? queue?.uploads().map(\.state)) ?? []
            moments.append(Moment(states: states, begun: service.begun))
        }
    }

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Launches a process for the session's events, and gives the moments at which it might have been suspended.
    @MainActor private func wakeUp(_ outbox: Outbox, _ way: Way) async throws -> [Process.Moment] {
        let process = Process(CountingService(outbox.daemon.service(isWakeUp: true)))
        let (calls, call) = AsyncStream.makeStream(of: Void.self)
        let register = {
            UploadQueue.handleEvents(forSession: outbox.identifier) {
                process.note()
                call.yield()
            }
        }
        if way == .handlerBeforeQueue { register() }
        let queue = try outbox.queue(process.service)
        process.queue = queue
        if way == .handlerAfterQueue { register() }
        if way == .backgroundTask {
            await queue.handleEvents()
            process.note()
            await queue.disconnect()
        } else {
            try await outbox.process(queue) { for await _ in calls { return } }
        }
        return process.moments
    }

    @Test(arguments: Way.allCases)
    func `a wake-up ends once, when all is settled and what follows is handed over`(way: Way) async throws {
        let server = try await ReceivingServer()
        let daemon = try await TransferDaemon()
        var outbox = Outbox(directory: folder.url.appending(path: "queue"), daemon: daemon)
        outbox.retryPolicy.maximumAttempts = 2
        try await FaultProxy.run(before: server.url) { request in
            switch request.path {
            case "/busy": .answer(.init(503))
            case "/refusing": .answer(.init(400))
            default: .none
            }
        } while: { [outbox] proxy in
            let (busy, refusing) = (proxy.url.appending(path: "busy"), proxy.url.appending(path: "refusing"))
            _ = try await outbox.handOver(to: [proxy.uploads, busy, refusing, proxy.uploads])
            try await daemon.setNetwork(isUp: true)
            try await daemon.wait(for: .ended, atLeast: 4)
            // What follows is handed over, and not carried yet.
            try await daemon.setNetwork(isUp: false)

            let first = try await wakeUp(outbox, way)
            #expect(first.count == 1)
            let moment = try #require(first.first)
            #expect(moment.begun == 1)
            #expect(moment.states.count(where: \.isDone) == 2)
            #expect(moment.states.count { $0.failure != nil } == 1)
            #expect(moment.states.count { $0 == .sending || $0.isRetrying } == 1)

            try await daemon.setNetwork(isUp: true)
            try await daemon.wait(for: .ended, atLeast: 5)
            let second = try await wakeUp(outbox, way)
            #expect(second.count == 1)
            #expect(second.first?.begun == 0)
            #expect(second.first?.states.count { $0.failure != nil } == 2)
            #expect(proxy.seen.count == 5)
        }
        #expect(try await daemon.status()[.begun] == 5)
        #expect(try await server.end().records.count == 2)
    }

    /// The system launches the app also if its events were settled by a process that was killed before it could say so.
    @Test(arguments: Way.allCases)
    func `a wake-up without anything to settle ends, too`(way: Way) async throws {
        let daemon = try await TransferDaemon()
        let outbox = Outbox(directory: folder.url.appending(path: "queue"), daemon: daemon)
        let moments = try await wakeUp(outbox, way)
        #expect(moments.count == 1)
        #expect(moments.first?.states.isEmpty == true)
    }
}
