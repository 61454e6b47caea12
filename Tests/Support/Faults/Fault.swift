/// A fault of one request that passes through the proxy. Bytes are those of the body, without the framing of chunks.
package enum Fault: Sendable, Hashable {
    /// Nothing: the request goes to the server, and the server's response to the client.
    case none
    /// The client's connection is reset when this many bytes have arrived.
    case reset(atByte: Int)
    /// After this many bytes, nothing is read and nothing is sent, until the proxy ends.
    case stall(atByte: Int)
    /// The body and the response pass at this speed.
    case slow(bytesPerSecond: Int)
    /// When this many bytes have arrived, the proxy closes its sending side and keeps reading. Further bytes are lost.
    case halfClose(atByte: Int)
    /// The server takes the form and answers; the client's connection is closed instead of the response.
    case responseLost
    /// The proxy answers itself when the whole body has come, and the connection stays open.
    case response(Response)
    /// The proxy itself responds when this many bytes have arrived, and closes.
    case earlyResponse(Response, atByte: Int, Closing)

    /// A response that the server has no part in.
    package struct Response: Sendable, Hashable {
        package var status: Int
        package var headerFields: [String: String]
        package var body: String

        package init(_ status: Int, _ headerFields: [String: String] = [:], body: String = "") {
            self.status = status
            self.headerFields = headerFields
            self.body = body
        }
    }

    /// How a connection is closed whose body is still coming.
    package enum Closing: Sendable, Hashable {
        /// The proxy ends its side, reads what comes, and closes when the client has: as RFC 9112 §9.6 asks.
        case reading
        /// The proxy closes at once, and the kernel resets the connection: as many servers do.
        case atOnce
    }

    /// How many bytes of the body pass before it happens; all where it waits for the body's end.
    var byte: Int {
        switch self {
        case .none, .slow, .responseLost, .response: .max
        case .reset(let byte), .stall(let byte), .halfClose(let byte), .earlyResponse(_, let byte, _): byte
        }
    }

    /// Whether the server gets to see the request.
    var reachesServer: Bool {
        switch self {
        case .none, .reset, .stall, .slow, .halfClose, .responseLost: true
        case .response, .earlyResponse: false
        }
    }
}
