// What the sample app and the snippets use of SwiftUI.
public struct NavigationStack<Root: View>: View {
    nonisolated public init(@ViewBuilder root: () -> Root) { fatalError() }
    public var body: Never { fatalError() }
}
public struct Form<Content: View>: View {
    nonisolated public init(@ViewBuilder content: () -> Content) { fatalError() }
    public var body: Never { fatalError() }
}
public struct Section<Content: View>: View {
    nonisolated public init<S: StringProtocol>(_ title: S, @ViewBuilder content: () -> Content) { fatalError() }
    public var body: Never { fatalError() }
}
public struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content: View>: View {
    public var body: Never { fatalError() }
}
extension ForEach where ID == Data.Element.ID, Data.Element: Identifiable {
    nonisolated public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content) { fatalError() }
}
extension ForEach {
    nonisolated public init(
        _ data: Data, id: KeyPath<Data.Element, ID>, @ViewBuilder content: @escaping (Data.Element) -> Content
    ) { fatalError() }
}
extension List where SelectionValue == Never {
    public init(@ViewBuilder content: () -> Content) { fatalError() }
}
public struct TextField<Label: View>: View { public var body: Never { fatalError() } }
extension TextField where Label == Text {
    public init<S: StringProtocol>(_ title: S, text: Binding<String>) { fatalError() }
}
@available(tvOS 17, *)
@available(watchOS, unavailable)
public struct Menu<Content: View>: View {
    public init<S: StringProtocol>(_ title: S, systemImage: String, @ViewBuilder content: () -> Content) {
        fatalError()
    }
    public var body: Never { fatalError() }
}
public struct ButtonLabel: View { public var body: Never { fatalError() } }
extension Button where Label == ButtonLabel {
    public init<S: StringProtocol>(_ title: S, systemImage: String, action: @escaping @MainActor () -> Void) {
        fatalError()
    }
}

public struct ToolbarItemPlacement: Sendable {
    @available(macOS, unavailable)
    public static let topBarLeading = ToolbarItemPlacement()
    @available(macOS, unavailable)
    public static let topBarTrailing = ToolbarItemPlacement()
}
@MainActor @preconcurrency public protocol ToolbarContent {}
public struct ToolbarItem<Content: View>: ToolbarContent {
    nonisolated public init(placement: ToolbarItemPlacement, @ViewBuilder content: () -> Content) { fatalError() }
}
public struct ToolbarItems<each Item>: ToolbarContent {}
@resultBuilder public struct ToolbarContentBuilder {
    public static func buildBlock<each Item: ToolbarContent>(_ content: repeat each Item) -> ToolbarItems<
        repeat each Item
    > {
        fatalError()
    }
}

public enum ScenePhase: Sendable { case background, inactive, active }
public struct EnvironmentValues {
    public var scenePhase: ScenePhase { fatalError() }
    public var dismiss: DismissAction { fatalError() }
}
@MainActor @preconcurrency public struct DismissAction {
    public func callAsFunction() { fatalError() }
}
@propertyWrapper public struct Environment<Value> {
    public init(_ keyPath: KeyPath<EnvironmentValues, Value>) { fatalError() }
    public var wrappedValue: Value { fatalError() }
}
@propertyWrapper public struct AppStorage<Value> {
    public init(wrappedValue: Value, _ key: String, store: UserDefaults? = nil) where Value == String { fatalError() }
    public var wrappedValue: Value {
        get { fatalError() }
        nonmutating set { fatalError() }
    }
    public var projectedValue: Binding<Value> { fatalError() }
}

public struct Color: Sendable {
    public static let red = Color()
}
@MainActor @preconcurrency public protocol PrimitiveButtonStyle {}
@available(tvOS 17, *)
@available(watchOS 8, *)
public struct BorderlessButtonStyle: PrimitiveButtonStyle { nonisolated init() { fatalError() } }
extension PrimitiveButtonStyle where Self == BorderlessButtonStyle {
    public static var borderless: BorderlessButtonStyle { fatalError() }
}
public struct TextInputAutocapitalization: Sendable {
    public static var never: TextInputAutocapitalization { fatalError() }
}
extension View {
    nonisolated public func navigationTitle<S: StringProtocol>(_ title: S) -> some View { ModifiedContent<Self>() }
    nonisolated public func toolbar<Content: ToolbarContent>(@ToolbarContentBuilder content: () -> Content) -> some View
    {
        ModifiedContent<Self>()
    }
    nonisolated public func sheet<Content: View>(
        isPresented: Binding<Bool>, onDismiss: (() -> Void)? = nil, @ViewBuilder content: @escaping () -> Content
    ) -> some View { ModifiedContent<Self>() }
    nonisolated public func disabled(_ disabled: Bool) -> some View { ModifiedContent<Self>() }
    nonisolated public func foregroundStyle(_ style: Color) -> some View { ModifiedContent<Self>() }
    nonisolated public func buttonStyle<S: PrimitiveButtonStyle>(_ style: S) -> some View { ModifiedContent<Self>() }
    nonisolated public func autocorrectionDisabled(_ disable: Bool = true) -> some View { ModifiedContent<Self>() }
    @available(macOS, unavailable)
    nonisolated public func textInputAutocapitalization(_ autocapitalization: TextInputAutocapitalization?) -> some View
    {
        ModifiedContent<Self>()
    }
}
