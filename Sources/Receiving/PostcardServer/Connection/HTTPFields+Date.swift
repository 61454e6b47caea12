import HTTPTypes
import PostcardFoundation

extension HTTPFields {
    /// Adds the time of the response, which every response of an origin server has (RFC 9110 §6.6.1).
    mutating func dateIfMissing() {
        if self[.date] == nil { self[.date] = Date().httpDate }
    }
}

extension Date {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// The time as header fields have it, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
    var httpDate: String {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let parts = calendar.dateComponents([.weekday, .day, .month, .year, .hour, .minute, .second], from: self)
        func digits(_ number: Int?, _ count: Int) -> String {
            let text = String(number ?? 0)
            return String(repeating: "0", count: Swift.max(count - text.count, 0)) + text
        }
        let day = Self.days[((parts.weekday ?? 1) - 1) % 7]
        let month = Self.months[((parts.month ?? 1) - 1) % 12]
        let time = [parts.hour, parts.minute, parts.second].map { digits($0, 2) }.joined(separator: ":")
        return "\(day), \(digits(parts.day, 2)) \(month) \(digits(parts.year, 4)) \(time) GMT"
    }
}
