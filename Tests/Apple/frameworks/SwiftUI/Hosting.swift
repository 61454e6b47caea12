#if os(iOS) || os(tvOS) || os(visionOS)
public import UIKit

@MainActor open class UIHostingController<Content: View>: UIViewController {
    public init(rootView: Content) { fatalError() }
}
#endif
