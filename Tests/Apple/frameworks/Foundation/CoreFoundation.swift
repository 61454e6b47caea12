// Types that are bridged. Without Objective-C a cast between both sides is one from a type to itself, so each pair is
// one type here: the casts compile as on Apple's platforms, and what they do is not checked.
public typealias CFString = String
public typealias CFURL = URL
public typealias CFData = Data
public typealias CFMutableData = NSMutableData
public typealias CFDictionary = NSDictionary
open class NSDictionary: NSObject, ExpressibleByDictionaryLiteral {
    public required init(dictionaryLiteral elements: (Any, Any)...) { fatalError() }
    public convenience init(dictionary otherDictionary: [AnyHashable: Any]) { fatalError() }
    open subscript(key: Any) -> Any? { fatalError() }
}
@available(*, unavailable)
extension NSDictionary: @unchecked Sendable {}
open class NSData: NSObject {}
open class NSMutableData: NSData {
    public override init() { fatalError() }
}
@available(*, unavailable)
extension NSData: @unchecked Sendable {}
extension Data {
    public init(referencing reference: NSData) { fatalError() }
}
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { fatalError() }
public struct CGRect: Equatable, Sendable {
    public init(x: Int, y: Int, width: Int, height: Int) { fatalError() }
}

// MARK: - Notifications between processes
open class CFNotificationCenter {}
@available(*, unavailable)
extension CFNotificationCenter: @unchecked Sendable {}
public func CFNotificationCenterGetDarwinNotifyCenter() -> CFNotificationCenter! { fatalError() }
public struct CFNotificationName: RawRepresentable, Hashable, Sendable {
    public let rawValue: CFString
    public init(_ rawValue: CFString) { self.rawValue = rawValue }
    public init(rawValue: CFString) { self.rawValue = rawValue }
}
public struct CFNotificationSuspensionBehavior: Sendable {
    public static var deliverImmediately: CFNotificationSuspensionBehavior { fatalError() }
}
public typealias CFNotificationCallback =
    @convention(thin) (
        CFNotificationCenter?, UnsafeMutableRawPointer?, CFNotificationName?, UnsafeRawPointer?, CFDictionary?
    ) -> Void
public func CFNotificationCenterAddObserver(
    _ center: CFNotificationCenter!, _ observer: UnsafeRawPointer!, _ callBack: CFNotificationCallback!,
    _ name: CFString!, _ object: UnsafeRawPointer!, _ suspensionBehavior: CFNotificationSuspensionBehavior
) { fatalError() }
public func CFNotificationCenterPostNotification(
    _ center: CFNotificationCenter!, _ name: CFNotificationName!, _ object: UnsafeRawPointer!,
    _ userInfo: CFDictionary!, _ deliverImmediately: Bool
) { fatalError() }

public final class CFAllocator {}
public typealias CFStringEncoding = UInt32
public var kCFStringEncodingInvalidId: CFStringEncoding { fatalError() }
public func CFStringConvertIANACharSetNameToEncoding(_ theString: CFString!) -> CFStringEncoding { fatalError() }
public func CFStringCreateWithBytes(
    _ alloc: CFAllocator!, _ bytes: UnsafePointer<UInt8>!, _ numBytes: Int, _ encoding: CFStringEncoding,
    _ isExternalRepresentation: Bool
) -> CFString! { fatalError() }
