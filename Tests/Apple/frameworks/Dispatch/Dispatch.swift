open class DispatchQueue: @unchecked Sendable {
    public convenience init(label: String) { fatalError() }
    init() { fatalError() }
    public class var main: DispatchQueue { fatalError() }
    @preconcurrency public func async(execute work: @escaping @Sendable () -> Void) { fatalError() }
    public func sync<T>(execute work: () throws -> T) rethrows -> T { fatalError() }
}
public struct DispatchQoS: Equatable, Sendable {
    public static let userInitiated = DispatchQoS()
    public static let utility = DispatchQoS()
    public static let background = DispatchQoS()
    public static let `default` = DispatchQoS()
}
open class DispatchSemaphore: @unchecked Sendable {
    public init(value: Int) { fatalError() }
    @available(*, noasync) public func wait() { fatalError() }
    @available(*, noasync) public func wait(timeout: DispatchTime) -> DispatchTimeoutResult { fatalError() }
    @discardableResult public func signal() -> Int { fatalError() }
}

public enum DispatchTimeoutResult: Sendable { case success, timedOut }

public enum DispatchTimeInterval: Sendable, Equatable { case seconds(Int), milliseconds(Int), never }
public struct DispatchTime: Sendable {
    public static func now() -> DispatchTime { fatalError() }
    public static func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime { fatalError() }
}
