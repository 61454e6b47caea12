import HTTPTypes
import NIOCore
import NIOHTTP1
import PostcardFoundation
package import PostcardReception
package import PostcardStore

/// A request that was refused while it was parsed, before any other handler received it.
package struct EarlyRefusal: Sendable {
    package let problem: UploadProblem
    /// The beginning of the bytes received last; empty if they do not begin with the request.
    package let bytes: [UInt8]
    /// The client's address. Over HTTP/1, it is from the PROXY header or the connection, because no header fields were
    /// parsed.
    package var client: IPAddress?

    /// Called with each early refusal, on the connection's event loop.
    package typealias Observer = @Sendable (EarlyRefusal) -> Void
}

struct RequestRefusal: Error {
    let problem: UploadProblem
}

extension UploadProblem {
    /// Makes the refusal for an error of the HTTP decoder.
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
    /// Whether `Connection`, a case-insensitive list, asks to close the connection (RFC 9110 §7.6.1).
    var askForClose: Bool {
        self[values: .connection].contains { value in
            value.split(separator: ",").contains { option in
                option.lowercased().split(whereSeparator: { $0 == " " || $0 == "\t" }) == ["close"]
            }
        }
    }
}

/// Records the latest bytes of a connection while they are parsed, so that an ``EarlyRefusal`` can show them. Also
/// records when the first bytes of an incomplete part of a request, such as its head, arrived.
final class WireBytes: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private var latest: ByteBuffer?
    private var isBetweenRequests = true
    /// Whether the latest bytes begin with the current request, and not in the middle of a form.
    private var startsWithRequest = true
    /// The time at which the first bytes of an incomplete part of a request arrived; `nil` if there are none.
    private(set) var incompleteSince: NIODeadline?

    /// The maximum number of recorded bytes: enough for the head of a usual request.
    private static let maximumBytes = 8 << 10

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        latest = unwrapInboundIn(data)
        startsWithRequest = isBetweenRequests && incompleteSince == nil
        incompleteSince = incompleteSince ?? context.eventLoop.now
        context.fireChannelRead(data)
        latest = nil
    }

    /// Records that a part of a request was decoded.
    func partRead(isEnd: Bool) {
        incompleteSince = nil
        isBetweenRequests = isEnd
        startsWithRequest = false
    }

    /// The first bytes of the request that is being parsed; empty if they were not recorded.
    var beginning: [UInt8] {
        guard startsWithRequest, let latest else { return [] }
        return Array(latest.readableBytesView.prefix(Self.maximumBytes))
    }
}

@available(*, unavailable)
extension WireBytes: Sendable {}

extension HTTPFields {
    /// Adds the field `Date`, which every response must have (RFC 9110 §6.6.1).
    mutating func dateIfMissing() {
        if self[.date] == nil { self[.date] = Date().httpDate }
    }
}

extension Date {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// The time in the format of header fields, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
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
