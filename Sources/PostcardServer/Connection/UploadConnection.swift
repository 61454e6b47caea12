import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// An event whose promise is kept once the answer's parts are in the socket.
struct AnswerFlush: Sendable {}

/// The connection that the request under way came on, and what is kept for as long as the request lasts.
package struct UploadConnection: Sendable {
    @TaskLocal package static var current: UploadConnection?

    let channel: any Channel

    /// Whether it is one stream of a connection of HTTP/2. The parent of a whole connection is what accepted it.
    package var isStream: Bool { channel.parent?.parent != nil }

    /// The client that the request counts for; `nil` where nothing tells clients apart.
    var peer: PeerAddress? { PeerAddress(channel.remoteAddress) }

    /// Files that are gone when the request has been answered.
    let files = TemporaryFiles()

    /// Waits until what was written of the answer is in the client's socket. What reads nothing is waited for until the
    /// connection is closed.
    func flushed() async throws {
        do {
            try await channel.triggerUserOutboundEvent(AnswerFlush())
        } catch ChannelError.operationUnsupported {
            // A server of another kind has its own way of waiting.
        }
    }

    /// Tells the client that its body is wanted (RFC 9110 §10.1.1).
    func askForBody() async throws {
        try await inform(HTTPResponse(status: .continue))
    }

    /// Tells the client something ahead of the answer (RFC 9110 §15.2).
    func inform(_ head: HTTPResponse) async throws {
        try await channel.writeAndFlush(HTTPResponsePart.head(head))
    }
}
