public struct ServiceContext: Sendable {}
public struct SpanStatus: Sendable {
    public enum Code: Sendable { case ok, error }
    public init(code: Code, message: String? = nil) { fatalError() }
}
public enum SpanKind: Sendable { case server, client, producer, consumer, `internal` }
public protocol SpanAttributeConvertible {}
extension Int: SpanAttributeConvertible {}
extension Int64: SpanAttributeConvertible {}
extension String: SpanAttributeConvertible {}
public struct SpanAttributes: Sendable {
    public subscript(_ name: String) -> (any SpanAttributeConvertible)? {
        get { fatalError() }
        set { fatalError() }
    }
}
public protocol Span: Sendable {
    var context: ServiceContext { get }
    var isRecording: Bool { get }
    var attributes: SpanAttributes { get nonmutating set }
    func setStatus(_ status: SpanStatus)
}
extension Span {
    public func updateAttributes(_ update: (inout SpanAttributes) -> Void) { fatalError() }
    public func end() { fatalError() }
}
public protocol Injector: Sendable {
    associatedtype Carrier: Sendable
    func inject(_ value: String, forKey key: String, into carrier: inout Carrier)
}
public protocol Instrument: Sendable {
    func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier
}
public enum InstrumentationSystem {
    public static var instrument: any Instrument { fatalError() }
}
public func startSpan(_ operationName: String, ofKind kind: SpanKind) -> any Span { fatalError() }
