import Foundation
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

/// Reads a response that does not end. Used from one thread at a time.
final class EventListener: @unchecked Sendable {
    private let socket: RawSocket
    private var received = ""

    /// Returns once events are published.
    static func listening(to receiver: RunningReceiver) async throws -> EventListener {
        let port = receiver.port
        return try await onThread {
            let listener = try EventListener(port: port)
            #expect(try listener.text(until: ": listening\n\n").contains("text/event-stream"))
            return listener
        }
    }

    private init(port: Int) throws {
        socket = try RawSocket(port: port)
        try socket.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    /// Receives until one text, and after it another one, has arrived. What follows them is kept.
    func text(until first: String, and second: String = "") throws -> String {
        while true {
            if let start = received.range(of: first) {
                let rest = received[start.upperBound...]
                let end = second.isEmpty ? start.upperBound : rest.range(of: second)?.upperBound
                if let end {
                    defer { received = String(received[end...]) }
                    return String(received[..<end])
                }
            }
            let more = try socket.receive()
            guard !more.isEmpty else { return received }
            received += String(decoding: more, as: UTF8.self)
        }
    }

    func rest() throws -> String { received + String(decoding: try socket.receiveAll(), as: UTF8.self) }
}
