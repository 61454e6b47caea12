package import HTTPTypes
package import NIOCore
package import PostcardStore

/// The connection of a request, or its stream of one.
package protocol RequestConnection: HoldingConnection {
    /// The client that the request counts for; `nil` if clients cannot be distinguished.
    var peer: PeerAddress? { get }

    /// What becomes of the request.
    var report: UploadReport { get }

    /// What is closed if the client has to give way to a newcomer; `nil` if that cannot be closed.
    var channelToClose: (any Channel)? { get }

    /// Whether interim responses reach the client.
    var informs: Bool { get }

    /// Sends an interim response (RFC 9110 §15.2).
    func inform(_ head: HTTPResponse) async throws

    /// Sends an interim response after a delay.
    ///
    /// - Returns: Cancels it if it was not sent yet.
    func inform(_ head: HTTPResponse, after delay: Duration) -> @Sendable () -> Void
}

extension RequestConnection {
    /// Asks the client to send its body (RFC 9110 §10.1.1).
    package func askForBody() async throws {
        try await inform(HTTPResponse(status: .continue))
    }
}

extension ShareAccount {
    /// Takes part of a resource for the client at the other end of a connection.
    package func take(
        _ amount: Int = 1, of resource: SharedResource, on connection: (any RequestConnection)?
    ) throws(UploadProblem) -> Hold {
        try take(amount, of: resource, for: connection?.peer, on: connection?.channelToClose)
    }
}
