@_exported import Foundation
open class UIImage: NSObject, @unchecked Sendable {
    public init?(data: Data) { fatalError() }
    open func jpegData(compressionQuality: CGFloat) -> Data? { fatalError() }
    open func pngData() -> Data? { fatalError() }
}

#if !os(watchOS)
@MainActor open class UIApplication: NSObject {
    open class var shared: UIApplication { fatalError() }
    public struct LaunchOptionsKey: Hashable, RawRepresentable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
    }
}
@MainActor public protocol UIApplicationDelegate: NSObjectProtocol {}
public protocol Implements_handleEventsForBackgroundURLSession: UIApplicationDelegate {
    func application(
        _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
        completionHandler: @escaping () -> Void)
}
#endif
