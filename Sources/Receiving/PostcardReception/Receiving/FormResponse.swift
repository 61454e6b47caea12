package import HTTPTypes
package import NIOCore
import PostcardFoundation
package import PostcardStore

/// The response to a request at the upload routes, before a server has sent any of it.
package struct FormResponse: Sendable {
    package var status: HTTPResponse.Status
    package var headers: HTTPFields
    package var body: Body

    /// The body of a response.
    package enum Body: Sendable {
        /// Bytes in memory, and the room for them.
        case bytes(ByteBuffer, ShareAccount.Hold?)
        /// A stored file, and the room for the open file.
        case file(any StoredFile, ShareAccount.Hold, Priority)
    }

    /// What a server does with a stored file that it has no room for.
    package enum Priority: Sendable {
        /// The response waits until there is room.
        case ordinary
        /// The response is sent in the smallest pieces, which do not count: its client has sent a form, and should not
        /// wait for clients that do not read. A small record is in memory without being counted, too.
        case immediate
    }

    package init(
        status: HTTPResponse.Status, headers: HTTPFields = [:], body: Body = .bytes(ByteBuffer(), nil)
    ) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The bytes of a body in memory; `nil` if it is a stored file.
    var bytes: Data? {
        if case .bytes(let bytes, _) = body { Data(bytes.readableBytesView) } else { nil }
    }
}
