// Shows a long upload on the Lock Screen: as a task that the system keeps running (iOS 26), or as a Live Activity.

import Foundation
import PostcardQueue

// snippet.show
/// How far the uploads of a queue are.
nonisolated struct UploadsProgress: Codable, Hashable, Sendable {
    var sent = 0
    var count = 0
    var fraction = 0.0

    init(_ uploads: [QueuedUpload]) {
        count = uploads.count
        let total = uploads.reduce(0.0) { $0 + Double($1.totalBytes) }
        for upload in uploads {
            if upload.state.isEnded { sent += 1 }
            fraction += (upload.state.isEnded ? 1 : upload.fraction) * Double(upload.totalBytes) / max(total, 1)
        }
    }

    var text: String { "\(sent) of \(count) sent" }

    var isComplete: Bool { sent == count }

    /// The progress of the uploads that have not ended yet, at once and after every change.
    static func updates(of queue: UploadQueue) async throws -> some AsyncSequence<UploadsProgress, any Error> {
        let open = Set(try await queue.uploads().filter { !$0.state.isEnded }.map(\.id))
        return queue.updates().map { uploads in UploadsProgress(uploads.filter { open.contains($0.id) }) }
    }
}
// snippet.hide

#if os(iOS)
import ActivityKit
import BackgroundTasks

// snippet.show
/// Sends a form, and shows how far it is on the Lock Screen. Call it when the user has tapped "Send".
func sendOnLockScreen(_ form: MultipartForm, to url: URL, with queue: UploadQueue) async throws {
    if #available(iOS 26, *) {
        try continueInBackground(form, to: url, with: queue)
    } else {
        try await queue.enqueue(form, to: url)
        if ActivityAuthorizationInfo().areActivitiesEnabled { try await showLiveActivity(queue) }
    }
}

/// Keeps the app running in the background while the system shows the progress and a button that stops it. The app
/// sends as long as the task lives. When it expires, the queue's background session takes over, in the middle of a form
/// too.
///
/// `Info.plist` lists `com.example.pets.uploading.*` under `BGTaskSchedulerPermittedIdentifiers`.
@available(iOS 26, *)
func continueInBackground(_ form: MultipartForm, to url: URL, with queue: UploadQueue) throws {
    let identifier = "com.example.pets.uploading.\(UUID().uuidString)"
    BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: .main) { task in
        guard let task = task as? BGContinuedProcessingTask else { return task.setTaskCompleted(success: false) }
        // From here on it is only used by the task that follows the uploads.
        nonisolated(unsafe) let shown = task
        let sending = Task { try await queue.run(UploadClient()) }
        let following = Task {
            var isComplete = false
            do {
                try await queue.enqueue(form, to: url)
                shown.progress.totalUnitCount = 1000
                for try await progress in try await UploadsProgress.updates(of: queue) {
                    shown.progress.completedUnitCount = Int64(progress.fraction * 1000)
                    shown.updateTitle(shown.title, subtitle: progress.text)
                    isComplete = progress.isComplete
                    if isComplete { break }
                }
            } catch {
                print(error)
            }
            // What is left goes to the background session before the system may suspend the app.
            sending.cancel()
            _ = await sending.result
            shown.setTaskCompleted(success: isComplete)
        }
        // Time is up, or the user has stopped it.
        task.expirationHandler = { following.cancel() }
    }
    try BGTaskScheduler.shared.submit(
        BGContinuedProcessingTaskRequest(identifier: identifier, title: "Sending photos", subtitle: "Starting"))
}

/// Hands over what waited, such as uploads whose token could not be fetched, while the device is charged and not used.
/// Call it before the app has finished launching, and again whenever uploads wait.
///
/// `Info.plist` lists `com.example.pets.refresh` under `BGTaskSchedulerPermittedIdentifiers`.
func registerRefresh(of queue: UploadQueue) {
    BGTaskScheduler.shared.register(forTaskWithIdentifier: "com.example.pets.refresh", using: .main) { task in
        nonisolated(unsafe) let shown = task
        let handingOver = Task {
            let result = await Task { try await queue.handOver() }.result
            shown.setTaskCompleted(success: (try? result.get()) != nil)
        }
        task.expirationHandler = { handingOver.cancel() }
    }
}

func scheduleRefresh() throws {
    let request = BGProcessingTaskRequest(identifier: "com.example.pets.refresh")
    request.requiresNetworkConnectivity = true
    try BGTaskScheduler.shared.submit(request)
}

/// What a widget extension shows: the same type is in the extension, in an `ActivityConfiguration`.
nonisolated struct UploadsActivity: ActivityAttributes {
    typealias ContentState = UploadsProgress
}

/// Shows a Live Activity until the uploads have ended. It is up to date while the app runs; when the app is suspended
/// it keeps what it shows, and the system marks it as stale after a minute.
///
/// `Info.plist` has `NSSupportsLiveActivities`.
func showLiveActivity(_ queue: UploadQueue) async throws {
    func content(_ progress: UploadsProgress) -> ActivityContent<UploadsProgress> {
        ActivityContent(state: progress, staleDate: .now.addingTimeInterval(60))
    }
    let activity = try Activity.request(attributes: UploadsActivity(), content: content(UploadsProgress([])))
    do {
        for try await progress in try await UploadsProgress.updates(of: queue) {
            await activity.update(content(progress))
            if progress.isComplete { break }
        }
        await activity.end(nil, dismissalPolicy: .default)
    } catch {
        await activity.end(nil, dismissalPolicy: .immediate)
        throw error
    }
}
// snippet.hide
#else
// Without a Lock Screen, the same progress in a terminal.
let queue = UploadQueue(directory: URL(filePath: "uploads"))
let running = Task { try await queue.run() }
for try await progress in try await UploadsProgress.updates(of: queue) {
    print(progress.text, progress.fraction)
    if progress.isComplete { break }
}
running.cancel()
#endif
