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
