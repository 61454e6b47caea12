@_exported public import Foundation
public struct PHPickerResult: Equatable, Hashable {
    public func hash(into hasher: inout Hasher) { fatalError() }
    public static func == (lhs: PHPickerResult, rhs: PHPickerResult) -> Bool { fatalError() }
}
