package import HTTPTypes
public import NIOCore
public import PostcardForm
package import PostcardStore
import PostcardWire

/// A request that a server passes to the receiver: its head, and the bytes of its body as they arrive.
package struct IncomingRequest: Sendable {
    package let head: HTTPRequest
    private let makeChunks: @Sendable () -> IncomingChunks

    /// - Parameter body: The bytes of the body, which are read once.
    package init<Body: AsyncSequence & Sendable>(_ head: HTTPRequest, _ body: Body) where Body.Element == ByteBuffer {
        self.head = head
        makeChunks = { IncomingChunks(body.makeAsyncIterator()) }
    }

    var headers: HTTPFields { head.headerFields }

    /// Begins to read the body.
    func chunks() -> IncomingChunks { makeChunks() }

    /// Waits for the first bytes of the body; `nil` if it is empty. Until they arrive, the request reserves only its
    /// connection.
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

/// The unread bytes of a body.
package struct IncomingChunks {
    private let read: (isolated (any Actor)?) async throws -> ByteBuffer?

    init<Chunks: AsyncIteratorProtocol>(_ chunks: Chunks) where Chunks.Element == ByteBuffer {
        // Only one task at a time uses these chunks, as with the iterator itself.
        nonisolated(unsafe) var chunks = chunks
        read = { try await chunks.next(isolation: $0) }
    }

    /// Returns the next bytes of the body; `nil` at the end.
    mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> ByteBuffer? {
        try await read(actor)
    }
}

extension HTTPRequest {
    /// Whether the client waits for `100 Continue` (RFC 9110 §10.1.1).
    package var expectsContinue: Bool { headerFields[.expect]?.utf8.isEqualIgnoringCase("100-continue") == true }

    /// Checks the head of a request with a form, and returns its Content-Type.
    package func formContentType(limits: FormLimits) throws(UploadProblem) -> String {
        // The HTTP decoder has checked that the length is a number. A number that exceeds `Int64` exceeds any limit.
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

/// The reason why a request's body ended early. Reading the body throws this error.
package enum RequestInterruption: Error {
    /// The client closed its side of the connection.
    case endedEarly
    /// The received bytes are not valid HTTP, such as a broken chunk.
    case malformed
    /// No byte arrived during this time.
    case tooSlow(Duration)
    /// Fewer than this many bytes arrived per second.
    case belowMinimumRate(Int)
    /// The connection is closed, so no response can be sent.
    case disconnected(any Error)

    /// The refusal for the client after `offset` bytes of the body; `nil` if the client is disconnected.
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

/// The connection of a request; over HTTP/2, the stream of the request.
package protocol RequestConnection: HoldingConnection {
    /// The client whose limits the request uses; `nil` if clients cannot be distinguished.
    var peer: PeerAddress? { get }

    var report: UploadReport { get }

    /// The channel to close if this client must make room for a new one; `nil` if it cannot be closed.
    var channelToClose: (any Channel)? { get }

    /// Whether the client can receive interim responses.
    var informs: Bool { get }

    /// Sends an interim response (RFC 9110 §15.2).
    func inform(_ head: HTTPResponse) async throws

    /// Sends an interim response after a delay. Returns a closure that cancels the response unless it was already sent.
    func inform(_ head: HTTPResponse, after delay: Duration) -> @Sendable () -> Void
}

extension RequestConnection {
    /// Sends `100 Continue`, which asks the client for its body (RFC 9110 §10.1.1).
    package func askForBody() async throws {
        try await inform(HTTPResponse(status: .continue))
    }
}

extension ShareAccount {
    /// Reserves an amount of a resource for the client of a connection.
    package func take(
        _ amount: Int = 1, of resource: SharedResource, on connection: (any RequestConnection)?
    ) throws(UploadProblem) -> Hold {
        try take(amount, of: resource, for: connection?.peer, on: connection?.channelToClose)
    }
}

extension ByteBuffer: FormChunk {
    public init(formChunk keptBytes: ArraySlice<UInt8>) {
        self.init(bytes: keptBytes)
    }

    public func withFormChunkBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(readableBytesSpan)
    }

    public func formChunkPiece(_ range: Range<Int>) -> ByteBuffer {
        getSlice(at: readerIndex + range.lowerBound, length: range.count) ?? ByteBuffer()
    }
}
