public import PostcardFoundation

/// The style in which a form writes dates.
public enum FormDateStyle: Sendable {
    /// Writes `2026-11-20T12:00:00Z`: in UTC, with milliseconds if they are not zero.
    ///
    /// Reads dates of RFC 3339 and of browsers, with any number of fractional digits. Dates and times without an offset
    /// (`2026-11-20`, `2026-11-20T12:00`) count as UTC. Years are 0 to 9999.
    case iso8601

    /// Seconds since 1 January 1970, such as `1795176000` or `1795176000.25`.
    case secondsSince1970

    /// Whole milliseconds since 1 January 1970, as in JavaScript.
    case millisecondsSince1970

    /// A custom format. An error that a closure throws becomes the `underlyingError` of the coder's error.
    case custom(write: @Sendable (Date) throws -> String, read: @Sendable (String) throws -> Date)

    /// The date as text; `nil` if the date cannot be written in this style.
    func write(_ date: Date) throws -> String? {
        switch self {
        case .iso8601:
            return InternetDate.write(date)
        case .secondsSince1970:
            let seconds = date.timeIntervalSince1970
            return Int64(exactly: seconds)?.description ?? (seconds.isFinite ? seconds.description : nil)
        case .millisecondsSince1970:
            return Int64(exactly: (date.timeIntervalSince1970 * 1000).rounded())?.description
        case .custom(let write, _):
            return try write(date)
        }
    }

    /// The date in a text; `nil` if it is not a date in this style.
    func read(_ text: String) throws -> Date? {
        switch self {
        case .iso8601: InternetDate.read(text)
        case .secondsSince1970: NumberText.floatingPoint(text).map { Date(timeIntervalSince1970: $0) }
        case .millisecondsSince1970: NumberText.floatingPoint(text).map { Date(timeIntervalSince1970: $0 / 1000) }
        case .custom(_, let read): try read(text)
        }
    }

    /// An example of a date in this style; `nil` for a custom style.
    var example: String? {
        switch self {
        case .iso8601: "2026-11-20T12:00:00Z"
        case .secondsSince1970: "1795176000"
        case .millisecondsSince1970: "1795176000000"
        case .custom: nil
        }
    }
}

/// Dates in the formats of RFC 3339 §5.6 and of HTML's inputs for dates and local times.
///
/// The Gregorian calendar of RFC 3339 needs no locale and no time zone database, so every platform reads the same date.
enum InternetDate {
    /// The range of writable dates in seconds since 1970: the years 0 to 9999.
    private static let writable = -62_167_219_200.0..<253_402_300_800.0

    /// The date in UTC, to the millisecond; `nil` outside the years 0 to 9999.
    static func write(_ date: Date) -> String? {
        let total = (date.timeIntervalSince1970 * 1000).rounded()
        guard writable.contains(total / 1000) else { return nil }
        // An Int of 32 bits, as on watches, is too small for the milliseconds and for all seconds.
        let (seconds, milliseconds) = floorDivision(Int64(total), by: 1000)
        let (wholeDays, rest) = floorDivision(seconds, by: 86400)
        let (days, secondOfDay) = (Int(clamping: wholeDays), Int(clamping: rest))
        let (year, month, day) = civil(fromDays: days)
        let date = "\(digits(year, 4))-\(digits(month, 2))-\(digits(day, 2))"
        let (hour, minute, second) = (secondOfDay / 3600, secondOfDay / 60 % 60, secondOfDay % 60)
        let fraction = milliseconds == 0 ? "" : ".\(digits(Int(clamping: milliseconds), 3))"
        return "\(date)T\(digits(hour, 2)):\(digits(minute, 2)):\(digits(second, 2))\(fraction)Z"
    }

    /// The date in a text; `nil` if it is not a date.
    static func read(_ text: String) -> Date? {
        var text = Text(rest: Array(text.utf8)[...])
        guard let days = text.readDate() else { return nil }
        if text.rest.isEmpty { return Date(timeIntervalSince1970: Double(days) * 86400) }
        guard text.skip("T") || text.skip("t") || text.skip(" "), let time = text.readTime(),
            let offset = text.readOffset(), text.rest.isEmpty
        else { return nil }
        return Date(timeIntervalSince1970: Double(days) * 86400 + Double(time.seconds - offset) + time.fraction)
    }

    private static func digits(_ number: Int, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }

    private static func floorDivision<Number: SignedInteger>(
        _ number: Number, by divisor: Number
    ) -> (quotient: Number, remainder: Number) {
        let (quotient, remainder) = number.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

// MARK: - The calendar

extension InternetDate {
    /// The days from 1 January 1970 to a day of the Gregorian calendar.
    ///
    /// Years begin in March, so the leap day is their last. Every five months from March on have 153 days, so a linear
    /// formula gives the days before a month.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let shifted = month > 2 ? (year: year, month: month - 3) : (year: year - 1, month: month + 9)
        let (era, yearOfEra) = floorDivision(shifted.year, by: 400)
        let dayOfYear = (153 * shifted.month + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(fromDays days: Int) -> (year: Int, month: Int, day: Int) {
        let (era, dayOfEra) = floorDivision(days + 719_468, by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    /// The rest of a date's text, which is read from its start.
    private struct Text {
        var rest: ArraySlice<UInt8>

        mutating func skip(_ character: Unicode.Scalar) -> Bool {
            guard rest.first == UInt8(ascii: character) else { return false }
            rest.removeFirst()
            return true
        }

        mutating func readNumber(_ count: Int) -> Int? {
            guard rest.count >= count, rest.prefix(count).allSatisfy(\.isDigit) else { return nil }
            defer { rest.removeFirst(count) }
            return rest.prefix(count).reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        }

        /// Reads `full-date`, as the number of days since 1 January 1970.
        mutating func readDate() -> Int? {
            guard let year = readNumber(4), skip("-"), let month = readNumber(2), skip("-"), let day = readNumber(2),
                (1...12).contains(month), day >= 1
            else { return nil }
            let days = InternetDate.days(year: year, month: month, day: day)
            return InternetDate.civil(fromDays: days) == (year, month, day) ? days : nil
        }

        /// Reads `partial-time`. The seconds are optional, as in HTML. A leap second counts as the following second.
        mutating func readTime() -> (seconds: Int, fraction: Double)? {
            guard let hour = readNumber(2), skip(":"), let minute = readNumber(2), hour < 24, minute < 60 else {
                return nil
            }
            var second = 0
            var fraction = 0.0
            if skip(":") {
                guard let read = readNumber(2), read <= 60 else { return nil }
                second = read
                if skip(".") {
                    let digits = rest.prefix(while: \.isDigit)
                    guard !digits.isEmpty else { return nil }
                    fraction = Double("0.\(String(decoding: digits, as: UTF8.self))") ?? 0
                    rest.removeFirst(digits.count)
                }
            }
            return (hour * 3600 + minute * 60 + second, fraction)
        }

        /// Reads `time-offset`, in seconds. The colon is optional. A missing offset is 0.
        mutating func readOffset() -> Int? {
            if rest.isEmpty || skip("Z") || skip("z") { return 0 }
            let isNegative = skip("-")
            guard isNegative || skip("+"), let hours = readNumber(2) else { return nil }
            _ = skip(":")
            guard let minutes = readNumber(2), hours < 24, minutes < 60 else { return nil }
            return (hours * 3600 + minutes * 60) * (isNegative ? -1 : 1)
        }
    }
}
