#if !os(watchOS)
@MainActor open class UIView: NSObject {
    open var frame: CGRect {
        get { fatalError() }
        set { fatalError() }
    }
    open var bounds: CGRect {
        get { fatalError() }
        set { fatalError() }
    }
    public struct AutoresizingMask: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var flexibleWidth: AutoresizingMask { AutoresizingMask(rawValue: 2) }
        public static var flexibleHeight: AutoresizingMask { AutoresizingMask(rawValue: 16) }
    }
    open var autoresizingMask: AutoresizingMask {
        get { fatalError() }
        set { fatalError() }
    }
    open func addSubview(_ view: UIView) { fatalError() }
}
@MainActor open class UIProgressView: UIView {
    open var observedProgress: Progress? {
        get { fatalError() }
        set { fatalError() }
    }
}
@MainActor open class UIViewController: NSObject {
    public override init() { fatalError() }
    // Implicitly unwrapped on Apple's platforms.
    open var view: UIView? {
        get { fatalError() }
        set { fatalError() }
    }
    open func viewDidLoad() { fatalError() }
    open func addChild(_ childController: UIViewController) { fatalError() }
    open func didMove(toParent parent: UIViewController?) { fatalError() }
    #if !os(tvOS)
    open var extensionContext: NSExtensionContext? { fatalError() }
    #endif
}
#endif
