import HTTPTypes
import NIOCore
import NIOHTTP1
import PostcardFoundation
package import PostcardReception
package import PostcardStore

/// A request that was refused while it was being parsed, before any handler saw it.
package struct EarlyRefusal: Sendable {
    package let problem: UploadProblem
    /// The first of the bytes received last; empty unless they begin with the request.
    package let bytes: [UInt8]
    /// The other end of the connection. Header fields that were not read cannot say more.
    package var client: IPAddress?

    /// Called with each such request, on the connection's event loop.
    package typealias Observer = @Sendable (EarlyRefusal) -> Void
}

/// The problem for which ``RequestGuard`` refuses a request.
struct RequestRefusal: Error {
    let problem: UploadProblem
}

extension UploadProblem {
    /// The refusal for an error of the HTTP decoder.
    static func decoding(_ error: any Error) -> UploadProblem {
        switch error {
        case let refusal as RequestRefusal: refusal.problem
        case HTTPParserError.headerOverflow: .headTooLarge
        case HTTPParserError.invalidMethod: .unknownMethod
        default: .malformedRequest
        }
    }
}

extension HTTPFields {
    /// Whether a message is the last one of its connection. `Connection` is a case-insensitive list (RFC 9110 §7.6.1).
    var askForClose: Bool {
        self[values: .connection].contains { value in
            value.split(separator: ",").contains { option in
                option.lowercased().split(whereSeparator: { $0 == " " || $0 == "\t" }) == ["close"]
            }
        }
    }
}

/// Keeps the bytes of a connection only while they are parsed, so that an ``EarlyRefusal`` can show them, and knows
/// since when the head of a request is incomplete.
final class WireBytes: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private var latest: ByteBuffer?
    private var isBetweenRequests = true
    /// Whether the latest bytes begin with the request that is being parsed. Others may be the middle of a form.
    private var startsWithRequest = true
    /// The time of the first bytes after the last complete part of a request; `nil` if there were none.
    private(set) var incompleteSince: NIODeadline?

    /// The maximum number of bytes that are shown: enough for the head of a usual request.
    private static let maximumBytes = 8 << 10

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        latest = unwrapInboundIn(data)
        startsWithRequest = isBetweenRequests && incompleteSince == nil
        incompleteSince = incompleteSince ?? context.eventLoop.now
        context.fireChannelRead(data)
        latest = nil
    }

    /// A part of a request was decoded.
    func partRead(isEnd: Bool) {
        incompleteSince = nil
        isBetweenRequests = isEnd
        startsWithRequest = false
    }

    /// The first of the bytes being parsed, if a request begins with them.
    var beginning: [UInt8] {
        guard startsWithRequest, let latest else { return [] }
        return Array(latest.readableBytesView.prefix(Self.maximumBytes))
    }
}

@available(*, unavailable)
extension WireBytes: Sendable {}

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
