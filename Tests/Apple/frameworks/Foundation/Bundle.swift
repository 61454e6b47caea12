open class Bundle: NSObject, @unchecked Sendable {
    open class var main: Bundle { fatalError() }
    open func localizedString(forKey key: String, value: String?, table tableName: String?) -> String { fatalError() }
}
