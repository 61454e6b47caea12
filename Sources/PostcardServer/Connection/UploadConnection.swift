#if Server
import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// The connection that the request under way came on, for those who are to answer `Expect: 100-continue`.
struct UploadConnection: Sendable {
    @TaskLocal static var current: UploadConnection?

    let channel: any Channel

    /// Tells the client that its body is wanted (RFC 9110 §10.1.1).
    func askForBody() async throws {
        try await channel.writeAndFlush(HTTPResponsePart.head(HTTPResponse(status: .continue)))
    }
}
#endif
