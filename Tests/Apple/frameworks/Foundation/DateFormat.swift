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
