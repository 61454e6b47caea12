// NSItemProvider is not assumed to be Sendable.
open class NSItemProvider: NSObject {
    public override init() { fatalError() }
    open var registeredTypeIdentifiers: [String] { fatalError() }
    open var suggestedName: String? {
        get { fatalError() }
        set { fatalError() }
    }
    @discardableResult open func loadFileRepresentation(
        forTypeIdentifier typeIdentifier: String, completionHandler: @escaping @Sendable (URL?, (any Error)?) -> Void
    ) -> Progress { fatalError() }
}
@available(*, unavailable)
extension NSItemProvider: @unchecked Sendable {}
