@_exported public import Foundation
@_exported public import Observation
@_exported public import CoreTransferable

@MainActor @preconcurrency public protocol View {
    associatedtype Body: View
    @ViewBuilder @MainActor @preconcurrency var body: Self.Body { get }
}
extension Never: View { public var body: Never { fatalError() } }
@resultBuilder public struct ViewBuilder {
    public static func buildExpression<C: View>(_ content: C) -> C { fatalError() }
    public static func buildBlock<each C: View>(_ content: repeat each C) -> TupleView<(repeat each C)> { fatalError() }
    public static func buildBlock<C: View>(_ content: C) -> C { fatalError() }
    public static func buildIf<C: View>(_ content: C?) -> C? { fatalError() }
    public static func buildEither<T: View, F: View>(first: T) -> _ConditionalContent<T, F> { fatalError() }
    public static func buildEither<T: View, F: View>(second: F) -> _ConditionalContent<T, F> { fatalError() }
}
extension Optional: View where Wrapped: View { public var body: Never { fatalError() } }
public struct TupleView<T>: View { public var body: Never { fatalError() } }
public struct _ConditionalContent<T, F>: View { public var body: Never { fatalError() } }
public struct ModifiedContent<C>: View { public var body: Never { fatalError() } }
@propertyWrapper public struct State<Value> {
    public init(wrappedValue value: @autoclosure @escaping () -> Value) where Value: AnyObject, Value: Observable {
        fatalError()
    }
    public init(wrappedValue value: Value) { fatalError() }
    public var wrappedValue: Value {
        get { fatalError() }
        nonmutating set { fatalError() }
    }
    public var projectedValue: Binding<Value> { fatalError() }
}
@propertyWrapper public struct Binding<Value> {
    public init(get: @escaping () -> Value, set: @escaping (Value) -> Void) { fatalError() }
    public var wrappedValue: Value {
        get { fatalError() }
        nonmutating set { fatalError() }
    }
    public var projectedValue: Binding<Value> { fatalError() }
}
public struct Font: Hashable, Sendable { public static let caption = Font() }
public struct HorizontalAlignment: Equatable, Sendable {
    public static let leading = HorizontalAlignment(); public static let center = HorizontalAlignment()
}
public struct VerticalAlignment: Equatable, Sendable { public static let center = VerticalAlignment() }
public struct Text: View, Sendable {
    public init<S: StringProtocol>(_ content: S) { fatalError() }
    public func font(_ font: Font?) -> Text { fatalError() }
    public var body: Never { fatalError() }
}
public struct VStack<Content: View>: View {
    public init(alignment: HorizontalAlignment = .center, spacing: CGFloat? = nil, @ViewBuilder content: () -> Content)
    { fatalError() }
    public var body: Never { fatalError() }
}
public struct HStack<Content: View>: View {
    public init(alignment: VerticalAlignment = .center, spacing: CGFloat? = nil, @ViewBuilder content: () -> Content) {
        fatalError()
    }
    public var body: Never { fatalError() }
}
public struct EmptyView: View { public init() {}; public var body: Never { fatalError() } }
public struct ProgressView<Label: View, CurrentValueLabel: View>: View { public var body: Never { fatalError() } }
extension ProgressView where CurrentValueLabel == EmptyView {
    public init<S: StringProtocol, V: BinaryFloatingPoint>(_ title: S, value: V?, total: V = 1.0) where Label == Text {
        fatalError()
    }
    public init<V: BinaryFloatingPoint>(value: V?, total: V = 1.0) where Label == EmptyView { fatalError() }
}
public struct Button<Label: View>: View { public var body: Never { fatalError() } }
extension Button where Label == Text {
    public init<S: StringProtocol>(_ title: S, action: @escaping @MainActor () -> Void) { fatalError() }
}
public struct List<SelectionValue: Hashable, Content: View>: View { public var body: Never { fatalError() } }
extension List where SelectionValue == Never {
    public init<Data: RandomAccessCollection, RowContent: View>(
        _ data: Data, @ViewBuilder rowContent: @escaping (Data.Element) -> RowContent
    ) where Content == ModifiedContent<RowContent>, Data.Element: Identifiable { fatalError() }
}
@MainActor @preconcurrency public protocol Scene {
    associatedtype Body: Scene
    @SceneBuilder @MainActor @preconcurrency var body: Self.Body { get }
}
extension Never: Scene {}
@resultBuilder public struct SceneBuilder {
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { fatalError() }
}
@MainActor @preconcurrency public protocol App {
    associatedtype Body: Scene
    @SceneBuilder @MainActor @preconcurrency var body: Self.Body { get }
    @MainActor @preconcurrency init()
}
extension App {
    @MainActor @preconcurrency public static func main() { fatalError() }
}
public struct WindowGroup<Content: View>: Scene {
    nonisolated public init(@ViewBuilder content: () -> Content) { fatalError() }
    public var body: Never { fatalError() }
}
public struct BackgroundTask<Request, Response>: Sendable {
    public static var urlSession: BackgroundTask<String, Void> { fatalError() }
    public static func urlSession(_ identifier: String) -> BackgroundTask<Void, Void> { fatalError() }
    public static func urlSession(matching: @escaping @Sendable (String) -> Bool) -> BackgroundTask<String, Void> {
        fatalError()
    }
    public static func appRefresh(_ identifier: String) -> BackgroundTask<Void, Void> { fatalError() }
}
extension Scene {
    nonisolated public func backgroundTask<D: Sendable, R: Sendable>(
        _ task: BackgroundTask<D, R>, action: @escaping @Sendable (D) async -> R
    ) -> some Scene { ModifiedScene<Self>() }
}
struct ModifiedScene<Content>: Scene {
    nonisolated init() { fatalError() }
    var body: Never { fatalError() }
}
extension View {
    @available(tvOS, unavailable)
    public func swipeActions<T: View>(allowsFullSwipe: Bool = true, @ViewBuilder content: () -> T) -> some View {
        ModifiedContent<Self>()
    }
    public func font(_ font: Font?) -> some View { ModifiedContent<Self>() }
    public func task(
        priority: TaskPriority = .userInitiated,
        @_inheritActorContext _ action: sending @escaping @isolated(any) () async -> Void
    ) -> some View { ModifiedContent<Self>() }
}
