public struct Logger: Sendable {
    public enum Level: String, Codable, CaseIterable, Sendable, Comparable {
        case trace, debug, info, notice, warning, error, critical
        public static func < (lhs: Level, rhs: Level) -> Bool { fatalError() }
    }
    public struct Message: ExpressibleByStringLiteral, ExpressibleByStringInterpolation, Equatable, Sendable {
        public init(stringLiteral value: String) { fatalError() }
    }
    public typealias Metadata = [String: MetadataValue]
    public enum MetadataValue: ExpressibleByStringInterpolation, ExpressibleByStringLiteral, Sendable {
        case string(String), array([MetadataValue])
        public init(stringLiteral value: String) { fatalError() }
    }
    public init(label: String) { fatalError() }
    public var logLevel: Level {
        get { fatalError() }
        set { fatalError() }
    }
    public subscript(metadataKey key: String) -> MetadataValue? {
        get { fatalError() }
        set { fatalError() }
    }
    public func debug(
        _ message: @autoclosure () -> Message, metadata: @autoclosure () -> Metadata? = nil, file: String = #fileID,
        function: String = #function, line: UInt = #line
    ) { fatalError() }
    public func info(
        _ message: @autoclosure () -> Message, metadata: @autoclosure () -> Metadata? = nil, file: String = #fileID,
        function: String = #function, line: UInt = #line
    ) { fatalError() }
}
