import HTTPTypes
package import PostcardFoundation

extension UploadResponse {
    /// The maximum number of seconds in a `Retry-After`, small enough that calculations do not overflow.
    private static let longestRetryAfter: Int64 = 999_999_999

    /// The delay in the server's `Retry-After` (RFC 9110 §10.2.3): a number of seconds, or a date. Clocks differ, so a
    /// date is compared with the response's own `Date` if there is one. A huge number counts as many years.
    ///
    /// - Parameter now: The time by this machine's clock.
    package func retryAfter(now: Date = Date()) -> Duration? {
        guard let value = headerFields[.retryAfter] else { return nil }
        if !value.isEmpty, value.utf8.allSatisfy(\.isDigit) {
            return .seconds(min(Int64(value) ?? .max, Self.longestRetryAfter))
        }
        guard let date = Date(httpDate: value, now: now) else { return nil }
        let sent = headerFields[.date].flatMap { Date(httpDate: $0, now: now) } ?? now
        return .seconds(max(0, date.timeIntervalSince(sent)))
    }
}

extension Date {
    /// Reads an HTTP-date in any of the three formats that RFC 9110 §5.6.7 requires recipients to accept.
    ///
    /// - Parameters:
    ///   - text: The date.
    ///   - now: The time by this machine's clock, for years of two digits.
    init?(httpDate text: String, now: Date) {
        let words = text.split { " ,:-".contains($0) }
        guard words.count >= 7 else { return nil }
        let isAsctime = Int(words[1]) == nil
        // The format of asctime is `Sun Nov  6 08:49:37 1994`. The others are `Sun, 06 Nov 1994 08:49:37 GMT` and
        // `Sunday, 06-Nov-94 …`.
        let (day, month, year, time) =
            isAsctime ? (words[2], words[1], words[6], words[3...5]) : (words[1], words[2], words[3], words[4...6])
        let numbers = time.compactMap { Int($0) }
        guard numbers.count == 3, let day = Int(day), let writtenYear = Int(year), (0...9999).contains(writtenYear),
            let month = Date.months.firstIndex(of: String(month)), (1...31).contains(day),
            (0...23).contains(numbers[0]), (0...59).contains(numbers[1]), (0...60).contains(numbers[2])
        else { return nil }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        var fullYear = writtenYear
        if year.count == 2 {
            // A year more than 50 years ahead belongs to the previous century (RFC 9110 §5.6.7).
            let currentYear = calendar.component(.year, from: now)
            fullYear += currentYear / 100 * 100
            if fullYear > currentYear + 50 { fullYear -= 100 }
        }
        let components = DateComponents(
            year: fullYear, month: month + 1, day: day, hour: numbers[0], minute: numbers[1], second: numbers[2])
        guard let date = calendar.date(from: components) else { return nil }
        self = date
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}
