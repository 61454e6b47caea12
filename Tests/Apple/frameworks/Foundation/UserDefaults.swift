// Documented as thread-safe, and not assumed to be Sendable.
open class UserDefaults: NSObject {
    open class var standard: UserDefaults { fatalError() }
    public init?(suiteName suitename: String?) { fatalError() }
    open func set(_ value: Any?, forKey defaultName: String) { fatalError() }
}
@available(*, unavailable)
extension UserDefaults: @unchecked Sendable {}
