extension Date {
    /// A style of ISO 8601 in UTC.
    public struct ISO8601FormatStyle: Sendable {
        package let includesFractions: Bool

        package init(includingFractionalSeconds: Bool = false) {
            includesFractions = includingFractionalSeconds
        }

        public static var iso8601: ISO8601FormatStyle { ISO8601FormatStyle() }
    }

    /// Not a time.
    package struct Malformed: Error {}

    /// Reads a time such as `2026-11-29T08:49:37Z`.
    package init(_ text: String, strategy: ISO8601FormatStyle) throws(Malformed) {
        var rest = Array(text.utf8)[...]
        func digits(_ count: Int) throws(Malformed) -> Int {
            guard rest.count >= count else { throw Malformed() }
            var number = 0
            for byte in rest.prefix(count) {
                guard (0x30...0x39).contains(byte) else { throw Malformed() }
                number = number * 10 + Int(byte - 0x30)
            }
            rest = rest.dropFirst(count)
            return number
        }
        func skip(_ byte: UInt8) throws(Malformed) {
            guard rest.first == byte else { throw Malformed() }
            rest = rest.dropFirst()
        }
        let year = try digits(4)
        try skip(0x2D)
        let month = try digits(2)
        try skip(0x2D)
        let day = try digits(2)
        try skip(0x54)
        let hour = try digits(2)
        try skip(0x3A)
        let minute = try digits(2)
        try skip(0x3A)
        let second = try digits(2)
        var fraction = 0.0
        if strategy.includesFractions {
            try skip(0x2E)
            var scale = 0.1
            guard let first = rest.first, (0x30...0x39).contains(first) else { throw Malformed() }
            while let byte = rest.first, (0x30...0x39).contains(byte) {
                fraction += Double(byte - 0x30) * scale
                scale /= 10
                rest = rest.dropFirst()
            }
        }
        guard rest.elementsEqual([0x5A]), (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60,
            second < 61
        else { throw Malformed() }
        // An Int of 32 bits ends in 2038.
        let seconds = Int64(Self.days(year, month, day)) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
        self.init(timeIntervalSince1970: Double(seconds) + fraction)
    }

    /// Days since 1970 in the Gregorian calendar.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// The time as ISO 8601 has it, in UTC.
    public func formatted(_ style: ISO8601FormatStyle) -> String {
        let seconds = Int64(timeIntervalSince1970.rounded(.down))
        let days = Int((seconds >= 0 ? seconds : seconds - 86_399) / 86_400)
        let time = Int(seconds - Int64(days) * 86_400)
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let index = (5 * dayOfYear + 2) / 153
        let month = index < 10 ? index + 3 : index - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        func digits(_ number: Int, _ count: Int = 2) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(count - text.utf8.count, 0)) + text
        }
        return digits(year, 4) + "-" + digits(month) + "-" + digits(dayOfYear - (153 * index + 2) / 5 + 1) + "T"
            + digits(time / 3600) + ":" + digits(time / 60 % 60) + ":" + digits(time % 60) + "Z"
    }
}
