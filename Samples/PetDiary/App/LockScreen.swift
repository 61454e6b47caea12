import ActivityKit
import DiaryKit
import Foundation
import PostcardQueue

/// Shows on the Lock Screen how far entries are, as a Live Activity. It is up to date while the app runs. When the app is
/// suspended it keeps what it shows, and the system marks it as stale after a minute.
enum LockScreen {
    @concurrent
    static func follow(_ queue: UploadQueue) async {
        // Those of a process that has ended show progress that nothing updates.
        for dead in Activity<DiaryActivity>.activities { await dead.end(nil, dismissalPolicy: .immediate) }
        var plan = ActivityPlan()
        var activity: Activity<DiaryActivity>?
        do {
            for try await uploads in queue.updates() {
                switch plan.step(for: uploads, isAllowed: ActivityAuthorizationInfo().areActivitiesEnabled) {
                case .none: break
                case .start(let progress):
                    activity = try? Activity.request(attributes: DiaryActivity(), content: content(progress))
                    if activity == nil { plan.refuse() }
                case .update(let progress): await activity?.update(content(progress))
                case .end(let progress):
                    await activity?.end(content(progress), dismissalPolicy: .default)
                    activity = nil
                }
            }
        } catch {
            // The list shows errors of the queue.
        }
        await activity?.end(nil, dismissalPolicy: .immediate)
    }

    private static func content(_ progress: DiaryProgress) -> ActivityContent<DiaryProgress> {
        ActivityContent(state: progress, staleDate: .now.addingTimeInterval(60))
    }
}
