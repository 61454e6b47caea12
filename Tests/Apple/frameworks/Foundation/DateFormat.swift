extension Date {
    public struct FormatStyle: Sendable {
        public struct DateStyle: Hashable, Sendable {
            public static let omitted = DateStyle()
            public static let abbreviated = DateStyle()
        }
        public struct TimeStyle: Hashable, Sendable {
            public static let omitted = TimeStyle()
            public static let shortened = TimeStyle()
        }
    }
    public func formatted(date: FormatStyle.DateStyle, time: FormatStyle.TimeStyle) -> String { fatalError() }
}
public protocol ParseStrategy: Codable, Hashable {
    associatedtype ParseInput
    associatedtype ParseOutput
    func parse(_ value: ParseInput) throws -> ParseOutput
}
public protocol FormatStyle: Codable, Hashable {
    associatedtype FormatInput
    associatedtype FormatOutput
    func format(_ value: FormatInput) -> FormatOutput
}
extension Date {
    public struct ISO8601FormatStyle: Sendable, Codable, Hashable {
        public enum DateSeparator: String, Sendable, Codable { case dash = "-", omitted = "" }
        public enum DateTimeSeparator: String, Sendable, Codable { case space = " ", standard = "'T'" }
        public enum TimeSeparator: String, Sendable, Codable { case colon = ":", omitted = "" }
        public enum TimeZoneSeparator: String, Sendable, Codable { case colon = ":", omitted = "" }
        public init(
            dateSeparator: DateSeparator = .dash, dateTimeSeparator: DateTimeSeparator = .standard,
            timeSeparator: TimeSeparator = .colon, timeZoneSeparator: TimeZoneSeparator = .omitted,
            includingFractionalSeconds: Bool = false
        ) { fatalError() }
        public func parse(_ value: String) throws -> Date { fatalError() }
        public func format(_ value: Date) -> String { fatalError() }
    }
    public init<T: ParseStrategy>(_ value: T.ParseInput, strategy: T) throws where T.ParseOutput == Date {
        fatalError()
    }
    public func formatted<F: Foundation.FormatStyle>(_ format: F) -> F.FormatOutput where F.FormatInput == Date {
        fatalError()
    }
}
extension Date.ISO8601FormatStyle: ParseStrategy, FormatStyle {}
extension ParseStrategy where Self == Date.ISO8601FormatStyle {
    public static var iso8601: Date.ISO8601FormatStyle { fatalError() }
}
extension FormatStyle where Self == Date.ISO8601FormatStyle {
    public static var iso8601: Date.ISO8601FormatStyle { fatalError() }
}
