import Foundation

// SwiftPM writes this accessor on Apple's platforms, where the module has resources.
extension Bundle {
    static let module = Bundle()
}
