import Dispatch
import Foundation

public struct NWPath: Equatable, Hashable, Sendable {
    public enum Status: Equatable, Hashable, Sendable { case satisfied, unsatisfied, requiresConnection }
    public var status: Status { fatalError() }
    public func usesInterfaceType(_ type: NWInterface.InterfaceType) -> Bool { fatalError() }
    public var isExpensive: Bool { fatalError() }
    public var isConstrained: Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
    public static func == (lhs: NWPath, rhs: NWPath) -> Bool { fatalError() }
}
public struct NWInterface: Hashable, Sendable {
    public enum InterfaceType: Sendable { case other, wifi, cellular, wiredEthernet, loopback }
    public func hash(into hasher: inout Hasher) { fatalError() }
    public static func == (lhs: NWInterface, rhs: NWInterface) -> Bool { fatalError() }
}
public final class NWPathMonitor: Sendable {
    public init() { fatalError() }
    @preconcurrency public var pathUpdateHandler: (@Sendable (NWPath) -> Void)? {
        get { fatalError() }
        set { fatalError() }
    }
    public var currentPath: NWPath { fatalError() }
    public func start(queue: DispatchQueue) { fatalError() }
    public func cancel() { fatalError() }
}
public typealias DNSServiceErrorType = Int32
/// Frozen in the SDK, but library evolution is on there: a switch over it needs a default.
public enum NWError: Error, Sendable, Equatable {
    case posix(POSIXErrorCode)
    case dns(DNSServiceErrorType)
    case tls(Int32)
}
