@_exported import Foundation
public struct UTType: Equatable, Hashable, Sendable, Codable {
    public var identifier: String { fatalError() }
    public init(from decoder: any Decoder) throws { fatalError() }
    public func encode(to encoder: any Encoder) throws { fatalError() }
    public static func == (lhs: UTType, rhs: UTType) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
    public init?(_ identifier: String) { fatalError() }
    public var preferredMIMEType: String? { fatalError() }
    public var preferredFilenameExtension: String? { fatalError() }
    public static var image: UTType { fatalError() }
    public static var movie: UTType { fatalError() }
    public static var jpeg: UTType { fatalError() }
    public static var data: UTType { fatalError() }
}
