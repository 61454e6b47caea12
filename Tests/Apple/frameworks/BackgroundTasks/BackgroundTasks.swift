// What the snippets use of BackgroundTasks (iOS, Mac Catalyst, tvOS and visionOS; macOS and watchOS do not have it).
// None of the classes is assumed to be Sendable.
@_exported public import Foundation
public import Dispatch

open class BGTask: NSObject {
    open var identifier: String { fatalError() }
    open var expirationHandler: (() -> Void)? {
        get { fatalError() }
        set { fatalError() }
    }
    open func setTaskCompleted(success: Bool) { fatalError() }
}
@available(*, unavailable)
extension BGTask: @unchecked Sendable {}

@available(iOS 26, *)
@available(tvOS, unavailable)
@available(visionOS, unavailable)
open class BGContinuedProcessingTask: BGTask {
    open var title: String { fatalError() }
    open var subtitle: String { fatalError() }
    open var progress: Progress { fatalError() }
    open func updateTitle(_ title: String, subtitle: String) { fatalError() }
}

open class BGTaskRequest: NSObject {
    open var identifier: String { fatalError() }
}
@available(*, unavailable)
extension BGTaskRequest: @unchecked Sendable {}

@available(iOS 26, *)
@available(tvOS, unavailable)
@available(visionOS, unavailable)
open class BGContinuedProcessingTaskRequest: BGTaskRequest {
    public enum SubmissionStrategy: Int, Sendable { case fail, queue }
    public init(identifier: String, title: String, subtitle: String) { fatalError() }
    open var strategy: SubmissionStrategy {
        get { fatalError() }
        set { fatalError() }
    }
}

open class BGProcessingTaskRequest: BGTaskRequest {
    public init(identifier: String) { fatalError() }
    open var requiresNetworkConnectivity: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var requiresExternalPower: Bool {
        get { fatalError() }
        set { fatalError() }
    }
}

open class BGTaskScheduler: NSObject {
    open class var shared: BGTaskScheduler { fatalError() }
    // Deprecated from iOS 27, whose replacement iOS 26 does not have.
    open func submit(_ taskRequest: BGTaskRequest) throws { fatalError() }
    @discardableResult open func register(
        forTaskWithIdentifier identifier: String, using queue: DispatchQueue?, launchHandler: @escaping (BGTask) -> Void
    ) -> Bool { fatalError() }
}
@available(*, unavailable)
extension BGTaskScheduler: @unchecked Sendable {}
