import HTTPTypes

/// A response as it was received, interim or final.
struct RawResponse: Sendable {
    let status: Int
    let fields: HTTPFields
    /// The content, without transfer codings.
    var body: [UInt8] = []
    /// Whether the server keeps the connection open (RFC 9112 §9.3).
    let isKeptAlive: Bool

    /// Whether the response is informational (RFC 9110 §15.2), and so not the last one to its request.
    var isInterim: Bool { (100..<200).contains(status) }

    var isSuccess: Bool { (200..<300).contains(status) }

    /// About how much memory it takes, in bytes: each field has some besides its text.
    var memoryBytes: Int {
        fields.reduce(body.count) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count + 128 }
    }
}

/// Why a connection has no more responses.
package struct ConnectionFailure: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String

    init(_ description: String) {
        self.description = description
    }

    static let closed = ConnectionFailure("the connection was closed without a response")
    static let cutResponse = ConnectionFailure("the connection was closed within a response")
    static let tooMany = ConnectionFailure(
        "more than \(ResponseInbox.maximumResponses) responses on a connection")
    static let tooManyBytes = ConnectionFailure(
        "more than \(ResponseInbox.maximumBytes >> 20) MiB of unread responses on a connection")
    static let tooLarge = ConnectionFailure(
        "the content of the response is larger than \(ResponseReader.maximumBytes >> 20) MiB")
    static let tooLargeHead = ConnectionFailure(
        "the head of the response is larger than \(ResponseReader.maximumHeadBytes >> 10) KiB")
    static let tooLargeLines = ConnectionFailure(
        "the lines around the chunks of the response are larger than \(ResponseReader.maximumHeadBytes >> 10) KiB")

    static func malformed(_ what: String) -> ConnectionFailure {
        ConnectionFailure("the response is not HTTP/1.1: \(what)")
    }
}
