import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardTransferDaemon

/// The tests' app that uploads in the background: PostcardBackgroundApp PLAN [--launch NUMBER] [--background]
///
/// Opened by the user, it enqueues the plan's forms and runs the queue until it is empty. Every fourth launch also pauses
/// the queue in between. Launched in the background, it handles the session's events and ends, because the system would
/// suspend it then.
@main struct BackgroundApp {
    private let plan: BackgroundAppPlan
    private let launch: Int
    private let isBackground: Bool

    static func main() async {
        do {
            let app = try BackgroundApp(Array(CommandLine.arguments.dropFirst()))
            try await app.run()
        } catch {
            fail("\(error)")
        }
    }

    private init(_ arguments: [String]) throws {
        guard let path = arguments.first else { Self.fail("Usage: PostcardBackgroundApp PLAN", status: 64) }
        plan = try BackgroundAppPlan(readFrom: path)
        let number = arguments.firstIndex(of: "--launch").map { arguments.index(after: $0) }
        launch = number.flatMap { $0 < arguments.endIndex ? Int(arguments[$0]) : nil } ?? 0
        isBackground = arguments.contains("--background")
    }

    private func run() async throws {
        // Every second launch has an app delegate, which passes its handler before the queue is made.
        let (handled, handler) = AsyncStream.makeStream(of: Void.self)
        let hasDelegate = isBackground && launch.isMultiple(of: 2)
        if hasDelegate {
            await UploadQueue.handleEvents(forSession: plan.session) {
                handler.yield()
                // Both loops below end, also if the first has taken the call.
                handler.finish()
            }
        }
        let activities = try DaemonActivities(socket: plan.socket) { Self.fail("The daemon has ended.", status: 69) }
        let queue = makeQueue(activities)
        if hasDelegate {
            do {
                try await queue.run {
                    for await _ in handled { return }
                }
            } catch let error as UploadQueueError where error.code == .unusableDirectory {
                // The device is locked. On Apple's platforms, the queue waits.
                for await _ in handled { return }
            }
        } else if isBackground {
            await queue.handleEvents()
        } else {
            try await queue.run {
                // An earlier process may have ended between a pause and its end.
                try await patiently { try await queue.resume() }
                try await enqueueForms(in: queue)
                guard launch.isMultiple(of: 4) else { return }
                try await patiently { try await queue.pause() }
                try await patiently { try await queue.resume() }
            }
            repeat {
                try await queue.run(endsWhenEmpty: true)
            } while try await retryInterrupted(in: queue)
        }
    }

    private func makeQueue(_ activities: DaemonActivities) -> UploadQueue {
        var session = BackgroundSession(identifier: plan.session)
        // Kills and force-quits also use up attempts.
        session.retryPolicy = RetryPolicy(maximumAttempts: 1000)
        // With such short delays, a busy server is asked many times while it stores a form.
        session.retryPolicy.maximumConflicts = 1000
        session.retryPolicy.firstDelay = .milliseconds(1)
        session.retryPolicy.maximumDelay = .milliseconds(50)
        session.maximumOpenUploads = plan.maximumOpenUploads
        // Half of what the model allows.
        session.maximumWakeUp = FastTime.lasting(.seconds(30))
        let wakeUps = AsyncStream.makeStream(of: Void.self)
        let service = DaemonTransferService(socket: plan.socket, isWakeUp: isBackground) {
            wakeUps.continuation.yield()
        } daemonEnded: {
            Self.fail("The transfer daemon has ended.", status: 69)
        }
        let queue = UploadQueue(
            directory: URL(filePath: plan.directory), session: session, service: service, done: .all,
            time: FastTime.time, activity: activities.system)
        Task {
            for await _ in wakeUps.stream {
                await queue.handleEvents()
                activities.noteHandled()
            }
        }
        return queue
    }

    /// Enqueues the forms that earlier processes have not.
    private func enqueueForms(in queue: UploadQueue) async throws {
        let enqueued = try await countUploads(in: queue)
        for number in enqueued..<max(enqueued, plan.forms) {
            var form = MultipartForm()
            form.append(BackgroundAppPlan.name(of: number), named: "name")
            let bytes = (0..<plan.fileBytes).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) }
            form.append(Data(bytes), named: "file", filename: "\(number).bin")
            let made = form
            _ = try await patiently { try await queue.enqueue(made, to: plan.address(of: number)) }
        }
    }

    /// Retries the uploads that failed because the system ended them again and again, as a user would. Returns whether
    /// there were any.
    private func retryInterrupted(in queue: UploadQueue) async throws -> Bool {
        guard plan.retriesInterrupted == true else { return false }
        var retried = 0
        for upload in try await patiently({ try await queue.uploads() }) {
            guard case .failed(let failure) = upload.state, failure.code == .interrupted else { continue }
            try await patiently { try await queue.retry(upload.id) }
            retried += 1
        }
        return retried > 0
    }

    /// Does something again that could not be done because the app was about to be suspended. The queue has nothing of it.
    private func patiently<Value>(_ work: () async throws -> Value) async throws -> Value {
        while true {
            do {
                return try await work()
            } catch let error as UploadQueueError where error.code == .suspended {
                try await Task.sleep(for: .milliseconds(10))
            }
        }
    }

    /// The number of uploads that are in the queue. None is removed, so they are numbered from 1. Finds the last one
    /// without reading the others, which would take longer than most processes live.
    private func countUploads(in queue: UploadQueue) async throws -> Int {
        var (low, high) = (0, max(plan.forms, 1))
        while low < high {
            let middle = (low + high) / 2
            let isEnd = try await patiently { try await queue.uploads(limit: 1, after: Int64(middle)).isEmpty }
            (low, high) = isEnd ? (low, middle) : (middle + 1, high)
        }
        return low
    }

    private static func fail(_ message: String, status: Int32 = 1) -> Never {
        try? FileHandle.standardError.write(contentsOf: Data((message + "\n").utf8))
        exit(status)
    }
}
