import PostcardFoundation

/// Times as stores write them.
enum StoreTime {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Reads a field such as `Date` (RFC 9110 §5.6.7), in the only format that may be sent.
    static func date(ofField text: String) -> Date? {
        let words = text.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(of: String(words[2])) else {
            return nil
        }
        let number = month + 1
        return date(of: "\(words[3])-\(number < 10 ? "0" : "")\(number)-\(words[1])T\(words[4])Z")
    }

    /// Reads a time of a listing, such as `2026-11-25T01:02:03.123Z`.
    static func date(of text: some StringProtocol) -> Date? {
        let text = String(text)
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: text.contains("."))
        return try? Date(text, strategy: style)
    }
}
