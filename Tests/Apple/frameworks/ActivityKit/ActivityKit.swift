// What the snippets use of ActivityKit (iOS). Activity is not assumed to be Sendable.
@_exported public import Foundation

@available(iOS 16.1, *)
public protocol ActivityAttributes: Decodable, Encodable {
    associatedtype ContentState: Decodable, Encodable, Hashable
}
@available(iOS 16.2, *)
public struct ActivityContent<State: Decodable & Encodable & Hashable> {
    public var state: State
    public var staleDate: Date?
    public var relevanceScore: Double
    public init(state: State, staleDate: Date?, relevanceScore: Double = 0) { fatalError() }
}
@available(iOS 16.2, *)
extension ActivityContent: Sendable where State: Sendable {}
@available(iOS 16.1, *)
public struct ActivityUIDismissalPolicy: Equatable, Sendable {
    public static let `default` = ActivityUIDismissalPolicy()
    public static let immediate = ActivityUIDismissalPolicy()
    public static func after(_ date: Date) -> ActivityUIDismissalPolicy { fatalError() }
}
@available(iOS 16.1, *)
public struct PushType: Equatable, Sendable {
    public static let token = PushType()
}
@available(iOS 16.1, *)
public class Activity<Attributes: ActivityAttributes> {
    public typealias ContentState = Attributes.ContentState
    init() { fatalError() }
    public final var id: String { fatalError() }
    public static var activities: [Activity<Attributes>] { fatalError() }
    @available(iOS 16.2, *)
    public static func request(
        attributes: Attributes, content: ActivityContent<ContentState>, pushType: PushType? = nil
    ) throws -> Activity<Attributes> { fatalError() }
    @available(iOS 16.2, *)
    @concurrent public func update(_ content: ActivityContent<ContentState>) async { fatalError() }
    @available(iOS 16.2, *)
    @concurrent public func end(
        _ content: ActivityContent<ContentState>?, dismissalPolicy: ActivityUIDismissalPolicy = .default
    ) async { fatalError() }
}
@available(*, unavailable)
extension Activity: @unchecked Sendable {}
@available(iOS 16.1, *)
public final class ActivityAuthorizationInfo {
    public init() { fatalError() }
    public final var areActivitiesEnabled: Bool { fatalError() }
}
