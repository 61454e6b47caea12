#if !os(watchOS) && !os(tvOS)
open class NSExtensionItem: NSObject {
    open var attachments: [NSItemProvider]? {
        get { fatalError() }
        set { fatalError() }
    }
}
@available(*, unavailable)
extension NSExtensionItem: @unchecked Sendable {}
open class NSExtensionContext: NSObject {
    open var inputItems: [Any] { fatalError() }
    open func completeRequest(returningItems items: [Any]?, completionHandler: (@Sendable (Bool) -> Void)? = nil) {
        fatalError()
    }
    open func cancelRequest(withError error: any Error) { fatalError() }
}
@available(*, unavailable)
extension NSExtensionContext: @unchecked Sendable {}
#endif
