import ArgumentParser

/// A length of time with its unit, such as `30d`.
struct TimeSpan: ExpressibleByArgument, Equatable {
    let duration: Duration

    private static let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800]

    /// The longest time, a hundred years of 365 days.
    private static let longest: Double = 100 * 365 * 86400

    /// Reads a number and a unit: seconds, minutes, hours, days or weeks.
    init?(argument: String) {
        guard let unit = argument.last.flatMap({ Self.units[$0] }) else { return nil }
        let digits = argument.dropLast()
        guard digits.first?.isASCII == true, digits.first?.isNumber == true,
            digits.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." }), let number = Double(digits)
        else { return nil }
        let seconds = number * unit
        guard (1...Self.longest).contains(seconds) else { return nil }
        duration = .seconds(seconds)
    }
}
