import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardFoundation
import PostcardQueue
import PostcardTransferDaemon

/// The tests' app that uploads in the background: PostcardBackgroundApp PLAN [--launch NUMBER] [--background]
///
/// Opened by the user, it enqueues the plan's forms and runs the queue until it is empty. Every fourth launch also
/// pauses the queue in between, and another fourth sends by itself as long as the system lets it. Launched in the
/// background, it handles the session's events and ends, because the system would suspend it then.
@main struct BackgroundApp {
    private let plan: BackgroundAppPlan
    private let launch: Int
    private let isBackground: Bool
    /// The session for which the system has launched the app.
    private let session: String

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
        func value(of option: String) -> String? {
            arguments.firstIndex(of: option).flatMap { arguments.dropFirst($0 + 1).first }
        }
        launch = value(of: "--launch").flatMap { Int($0) } ?? 0
        isBackground = arguments.contains("--background")
        session = value(of: "--session") ?? plan.session
    }

    private func run() async throws {
        // Every second launch has an app delegate, which passes its handler before the queue is made.
        let (handled, handler) = AsyncStream.makeStream(of: Void.self)
        let hasDelegate = isBackground && launch.isMultiple(of: 2) && session == plan.session
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
            await queue.handleEvents(forSession: session)
        } else {
            if launch % 4 == 1 { await sendInTask(from: queue, activities) }
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

    /// Sends in this process, as in a task that the system lets run for a while, until that expires.
    private func sendInTask(from queue: UploadQueue, _ activities: DaemonActivities) async {
        let (expiry, expire) = AsyncStream.makeStream(of: Void.self)
        guard let end = activities.system.begin({ expire.finish() }) else { return }
        var options = QueueOptions(endsWhenEmpty: true)
        options.retryPolicy = plan.settings(of: BackgroundSession(identifier: plan.session)).retryPolicy
        await withTaskGroup { [options] group in
            group.addTask { try? await queue.run(UploadClient(), options: options) }
            group.addTask { for await _ in expiry {} }
            await group.next()
            group.cancelAll()
        }
        end()
    }

    private func makeQueue(_ activities: DaemonActivities) -> UploadQueue {
        let session = plan.settings(of: BackgroundSession(identifier: plan.session))
        let wakeUps = AsyncStream.makeStream(of: Void.self)
        let service = DaemonTransferService(
            socket: plan.socket, isWakeUp: isBackground, woken: { wakeUps.continuation.yield() },
            daemonEnded: { Self.fail("The transfer daemon has ended.", status: 69) })
        let queue = UploadQueue(
            directory: URL(filePath: plan.directory), session: session, service: service,
            otherService: { [plan] session in
                DaemonTransferService(socket: plan.socket, session: session.identifier, isWakeUp: true)
            },
            finding: plan.library.map(PhotoLibrary.init), retention: .all,
            outcome: { [plan] in try plan.noteOutcome(of: $0) }, time: FastTime.time, activity: activities.system)
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
        let enqueued = try await countForms(in: queue)
        for number in enqueued..<max(enqueued, plan.forms) {
            let library = plan.library.flatMap { plan.isPicked(number) ? $0 : nil }
            let photo = library.map { PhotoLibrary.Photo(library: $0, number: number) }
            try await patiently { try await plan.enqueue(number, in: queue, item: photo) }
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

    /// Does something again that could not be done because the app was about to be suspended. The queue has nothing of
    /// it.
    private func patiently<Value>(_ work: () async throws -> Value) async throws -> Value {
        while true {
            do {
                return try await work()
            } catch let error as UploadQueueError where error.code == .suspended {
                try await Task.sleep(for: .milliseconds(10))
            }
        }
    }

    /// The number of the app's forms that are in the queue. No upload is removed, so they are numbered from 1. Finds the
    /// last one without reading the others, which would take longer than most processes live.
    private func countForms(in queue: UploadQueue) async throws -> Int {
        var (low, high) = (0, max(plan.forms, plan.addresses.count))
        while low < high {
            let middle = (low + high) / 2
            let isEnd = try await patiently { try await queue.uploads(limit: 1, after: Int64(middle)).isEmpty }
            (low, high) = isEnd ? (low, middle) : (middle + 1, high)
        }
        for id in stride(from: Int64(low), to: 0, by: -1) {
            let upload = try await patiently { try await queue.upload(id) }
            if let number = try upload?.tag(as: Int.self), number < plan.firstShared { return number + 1 }
        }
        return 0
    }

    private static func fail(_ message: String, status: Int32 = 1) -> Never {
        try? FileHandle.standardError.write(contentsOf: Data((message + "\n").utf8))
        exit(status)
    }
}

/// The photos that the user picks. It takes a while to get one, as from iCloud, so that the app is often killed
/// meanwhile.
private struct PhotoLibrary: PickedItemFinder {
    let path: String

    struct Photo: PickedItem {
        let library: String
        let number: Int

        var record: Data? { Data("\(number)".utf8) }

        func copy(to folder: URL) async throws -> PickedCopy {
            try await Task.sleep(for: .milliseconds(5))
            let file = folder.appending(component: UUID().uuidString)
            try FileManager.default.copyItem(at: URL(filePath: library).appending(component: "\(number)"), to: file)
            return PickedCopy(file, filename: "\(number).bin", contentType: .octetStream)
        }
    }

    func item(recordedAs record: Data) -> (any PickedItem)? {
        Int(String(decoding: record, as: UTF8.self)).map { Photo(library: path, number: $0) }
    }

    func preparation(recordedAs record: Data) -> (any FormPreparation)? { nil }
}
