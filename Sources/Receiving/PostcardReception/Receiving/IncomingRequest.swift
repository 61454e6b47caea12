package import HTTPTypes
public import NIOCore
public import PostcardForm
package import PostcardStore
import PostcardWire

/// A request that the server of an app passes on: its head, and the bytes of its body as they arrive.
package struct IncomingRequest: Sendable {
    package let head: HTTPRequest
    private let makeChunks: @Sendable () -> IncomingChunks

    /// - Parameter body: The body. It is read once.
    package init<Body: AsyncSequence & Sendable>(_ head: HTTPRequest, _ body: Body) where Body.Element == ByteBuffer {
        self.head = head
        makeChunks = { IncomingChunks(body.makeAsyncIterator()) }
    }

    var headers: HTTPFields { head.headerFields }

    /// Begins to read the body.
    func chunks() -> IncomingChunks { makeChunks() }

    /// Waits for the first bytes of the body, so that a request that sends none uses nothing but its connection.
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
        // Only one task at a time has these chunks, as with the iterator itself.
        nonisolated(unsafe) var chunks = chunks
        read = { try await chunks.next(isolation: $0) }
    }

    /// The next bytes of the body; `nil` at its end.
    mutating func next(isolation actor: isolated (any Actor)? = #isolation) async throws -> ByteBuffer? {
        try await read(actor)
    }
}

extension HTTPRequest {
    /// Whether the client waits for `100 Continue` (RFC 9110 §10.1.1).
    package var expectsContinue: Bool { headerFields[.expect]?.utf8.isEqualIgnoringCase("100-continue") == true }

    /// Checks the head of a request with a form, and returns its Content-Type.
    package func formContentType(limits: FormLimits) throws(UploadProblem) -> String {
        // The HTTP decoder has checked that the length is a number. A number that does not fit exceeds any limit.
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

/// Why a request's body ended early. The body throws this error to its reader.
package enum RequestInterruption: Error {
    /// The client closed its side.
    case endedEarly
    /// The received bytes are not HTTP, such as a broken chunk.
    case malformed
    /// No byte arrived for this time.
    case tooSlow(Duration)
    /// The bytes arrived at a lower rate than this many per second.
    case belowMinimumRate(Int)
    /// The connection is closed, so no response can be sent.
    case disconnected(any Error)

    /// The problem to respond with; `nil` if the client is gone.
    ///
    /// - Parameter offset: The number of bytes of the body that were received.
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

/// The connection of a request. For HTTP/2, the request's stream.
package protocol RequestConnection: HoldingConnection {
    /// The client that the request counts for; `nil` if clients cannot be distinguished.
    var peer: PeerAddress? { get }

    /// The report of the request's outcome.
    var report: UploadReport { get }

    /// The channel that is closed if the client has to make room for a newcomer; `nil` if it cannot be closed.
    var channelToClose: (any Channel)? { get }

    /// Whether the client can receive interim responses.
    var informs: Bool { get }

    /// Sends an interim response (RFC 9110 §15.2).
    func inform(_ head: HTTPResponse) async throws

    /// Sends an interim response after a delay.
    ///
    /// - Returns: A closure that cancels the response if it was not sent yet.
    func inform(_ head: HTTPResponse, after delay: Duration) -> @Sendable () -> Void
}

extension RequestConnection {
    /// Sends `100 Continue`, which asks the client for its body (RFC 9110 §10.1.1).
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
