package import HTTPTypes
package import NIOCore
package import PostcardForm

/// A request as the server of an app passes it on: its head, and the bytes of its body as they arrive.
package struct IncomingRequest: Sendable {
    package let head: HTTPRequest
    private let makeChunks: @Sendable () -> IncomingChunks

    /// - Parameter body: The body, of which one pass is made.
    package init<Body: AsyncSequence & Sendable>(_ head: HTTPRequest, _ body: Body) where Body.Element == ByteBuffer {
        self.head = head
        makeChunks = { IncomingChunks(body.makeAsyncIterator()) }
    }

    var headers: HTTPFields { head.headerFields }

    /// Begins to read the body.
    func chunks() -> IncomingChunks { makeChunks() }

    /// Waits for the first bytes of the body, so that a request without any costs nothing but its connection.
    ///
    /// - Returns: `nil` if the body is empty.
    func beginning(
        of body: inout IncomingChunks, on connection: (any RequestConnection)?
    ) async throws -> ByteBuffer? {
        if head.expectsContinue { try await connection?.askForBody() }
        while let bytes = try await body.next(isolation: #isolation) {
            if bytes.readableBytes > 0 { return bytes }
        }
        return nil
    }
}

/// The bytes of a body that were not read yet.
package struct IncomingChunks {
    private let read: (isolated (any Actor)?) async throws -> ByteBuffer?

    init<Chunks: AsyncIteratorProtocol>(_ chunks: Chunks) where Chunks.Element == ByteBuffer {
        // One task at a time has these chunks, as with the iterator itself.
        nonisolated(unsafe) var chunks = chunks
        read = { try await chunks.next(isolation: $0) }
    }

    /// The next bytes; `nil` at the end.
    mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> ByteBuffer? {
        try await read(actor)
    }
}

extension HTTPRequest {
    /// Whether the client waits for `100 Continue` (RFC 9110 §10.1.1).
    package var expectsContinue: Bool { headerFields[.expect]?.utf8.isEqualIgnoringCase("100-continue") == true }

    /// Checks the head of a request with a form and returns its Content-Type.
    package func formContentType(limits: FormLimits) throws(UploadProblem) -> String {
        // The HTTP decoder has checked that it is a number. One that does not fit exceeds any limit.
        if let length = headerFields[.contentLength], Int64(length).map({ $0 > limits.maximumBodyBytes }) ?? true {
            throw .bodyTooLarge(announced: length, limits: limits)
        }
        guard headerFields[values: .contentType].count <= 1 else { throw .repeatedContentType }
        if let encoding = headerFields[.contentEncoding], !encoding.utf8.isEqualIgnoringCase("identity") {
            throw .encodedContent
        }
        return headerFields[.contentType] ?? ""
    }
}

/// Why a request's body broke off. The body throws it to its reader.
package enum RequestInterruption: Error {
    /// The client closed its side.
    case endedEarly
    /// The bytes received are not HTTP, such as a broken chunk.
    case malformed
    /// No byte arrived for this long.
    case tooSlow(Duration)
    /// The bytes arrived slower than this many per second.
    case belowMinimumRate(Int)
    /// The connection is closed, so no response can be sent.
    case disconnected(any Error)

    /// The problem to respond with, or `nil` if the client is gone.
    ///
    /// - Parameter offset: The bytes of the body that were received.
    package func problem(at offset: Int64) -> UploadProblem? {
        switch self {
        case .endedEarly: .endedEarly(at: offset)
        case .malformed: .malformedRequest
        case .tooSlow(let timeout): .tooSlow(timeout)
        case .belowMinimumRate(let minimum): .belowMinimumRate(minimum)
        case .disconnected: nil
        }
    }
}
