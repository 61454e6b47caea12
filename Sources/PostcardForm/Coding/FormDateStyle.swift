#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// How a form writes dates.
public enum FormDateStyle: Sendable {
    /// `2026-11-20T12:00:00Z`, in UTC and with milliseconds where they are not zero.
    ///
    /// Read are RFC 3339 and what browsers send: an offset from UTC, any number of digits of a second, and dates or
    /// times without an offset (`2026-11-20`, `2026-11-20T12:00`), which are taken for UTC. The years are 0 to 9999.
    case iso8601

    /// The seconds since 1 January 1970, such as `1795176000` or `1795176000.25`.
    case secondsSince1970

    /// The whole milliseconds since 1 January 1970, as JavaScript counts them.
    case millisecondsSince1970

    /// A format of your own. What the closures throw becomes the `underlying` error of what the coder throws.
    case custom(write: @Sendable (Date) throws -> String, read: @Sendable (String) throws -> Date)

    /// The date as a text; `nil` where the style cannot write it.
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

    /// The date that a text stands for; `nil` where it is none in this style.
    func read(_ text: String) throws -> Date? {
        switch self {
        case .iso8601: InternetDate.read(text)
        case .secondsSince1970: NumberText.floatingPoint(text).map { Date(timeIntervalSince1970: $0) }
        case .millisecondsSince1970: NumberText.floatingPoint(text).map { Date(timeIntervalSince1970: $0 / 1000) }
        case .custom(_, let read): try read(text)
        }
    }

    /// What a text of the style looks like.
    var example: String? {
        switch self {
        case .iso8601: "2026-11-20T12:00:00Z"
        case .secondsSince1970: "1795176000"
        case .millisecondsSince1970: "1795176000000"
        case .custom: nil
        }
    }
}
