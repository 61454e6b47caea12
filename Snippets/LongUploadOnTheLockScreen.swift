// Shows a long upload on the Lock Screen: as a task that the system keeps running (iOS 26), or as a Live Activity.

import Foundation
import PostcardClient
import PostcardForm
import PostcardQueue

// snippet.show
/// How far the uploads of a queue are.
struct UploadsProgress: Codable, Hashable, Sendable {
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
/// Shows the uploads on the Lock Screen. Call it after the user has tapped "Send", while the app runs the queue.
func showOnLockScreen(_ queue: UploadQueue) async throws {
    if #available(iOS 26, *) {
        try continueInBackground(queue)
    } else if ActivityAuthorizationInfo().areActivitiesEnabled {
        try await showLiveActivity(queue)
    }
}

/// Keeps the app running in the background while the system shows the progress and a button that stops it.
///
/// `Info.plist` lists `com.example.pets.uploading.*` under `BGTaskSchedulerPermittedIdentifiers`.
@available(iOS 26, *)
func continueInBackground(_ queue: UploadQueue) throws {
    let identifier = "com.example.pets.uploading.\(UUID().uuidString)"
    BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: nil) { task in
        guard let task = task as? BGContinuedProcessingTask else { return task.setTaskCompleted(success: false) }
        // From here on it is only used by the task that follows the uploads.
        nonisolated(unsafe) let shown = task
        let following = Task {
            do {
                shown.progress.totalUnitCount = 1000
                for try await progress in try await UploadsProgress.updates(of: queue) {
                    shown.progress.completedUnitCount = Int64(progress.fraction * 1000)
                    shown.updateTitle(shown.title, subtitle: progress.text)
                    if progress.isComplete { break }
                }
                shown.setTaskCompleted(success: !Task.isCancelled)
            } catch {
                shown.setTaskCompleted(success: false)
            }
        }
        // Time is up, or the user has stopped it. The background session continues with what it has.
        task.expirationHandler = { following.cancel() }
    }
    try BGTaskScheduler.shared.submit(
        BGContinuedProcessingTaskRequest(identifier: identifier, title: "Sending photos", subtitle: "Starting"))
}

/// What a widget extension shows: the same type is in the extension, in an `ActivityConfiguration`.
struct UploadsActivity: ActivityAttributes {
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
