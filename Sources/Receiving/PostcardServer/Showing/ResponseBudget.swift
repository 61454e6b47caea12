import HTTPTypes
package import Hummingbird
package import NIOCore
package import PostcardReception
import PostcardStore

/// Sends responses within the limits of memory and open files that clients share.
///
/// A stored file is read in pieces. Each piece is read after the previous piece was sent, and once memory is free for
/// it. A client that does not read its response uses the memory of one piece until its connection is closed.
package struct ResponseBudget: Sendable {
    let shares: ShareAccount
    /// The minimum size of a piece, in bytes: ``minimumPieceBytes``, or less if the memory for all responses is small.
    private let leastPieceBytes: Int

    static let maximumPieceBytes = 64 << 10
    static let minimumPieceBytes = SharedResource.responseBytes.unit

    package init(_ shares: ShareAccount) {
        self.shares = shares
        leastPieceBytes = min(Self.minimumPieceBytes, max(shares.limits[.responseBytes] / 16, 1))
    }

    /// Sends a part of a stored file. The memory for each piece counts for the client of the connection. Throws
    /// `CancellationError` if the task is cancelled, `ChannelError` if the client is disconnected, and
    /// `UploadStoreError` if the file has become shorter.
    @concurrent func send(
        _ content: some StoredFile, _ range: Range<Int64>, to writer: inout any ResponseBodyWriter,
        priority: FormResponse.Priority = .ordinary, on connection: UploadConnection?
    ) async throws {
        if let length = writer as? BodyLength { return length.add(range.upperBound - range.lowerBound) }
        var offset = range.lowerBound
        while offset < range.upperBound {
            try Task.checkCancellation()
            let wanted = Int(clamping: range.upperBound - offset)
            let (hold, count) = try await take(upTo: wanted, priority, connection)
            let piece = try await content.read(at: offset, count: count)
            guard piece.readableBytes == count else {
                throw UploadStoreError(.unavailable, "A stored file is shorter than its record says.")
            }
            try await writer.write(piece)
            try await connection?.flushed()
            withExtendedLifetime(hold) {}
            offset += Int64(count)
        }
    }

    /// Reserves memory for a piece of a response. Waits for the memory, unless the priority is `immediate`. Returns the
    /// reservation, and the maximum size of the piece.
    private func take(
        upTo wanted: Int, _ priority: FormResponse.Priority, _ connection: UploadConnection?
    ) async throws -> (hold: ShareAccount.Hold?, count: Int) {
        let sizes = min(leastPieceBytes, wanted)...min(Self.maximumPieceBytes, wanted)
        switch priority {
        case .immediate:
            guard let (hold, count) = shares.takeNow(sizes, of: .responseBytes, for: connection?.peer) else {
                return (nil, min(wanted, Self.minimumPieceBytes))
            }
            return (hold, count)
        case .ordinary:
            let (hold, count) = try await shares.wait(
                for: sizes, of: .responseBytes, for: connection?.peer, on: connection?.channelToClose)
            return (hold, count)
        }
    }

    /// Makes a response body of a stored file. The memory for each piece counts for the client of the connection.
    /// `hold` is a reservation, such as that of an open file. The reservation ends when the body is sent or dropped.
    func body(
        of content: any StoredFile, _ hold: ShareAccount.Hold, priority: FormResponse.Priority = .ordinary,
        on connection: UploadConnection?
    ) -> ResponseBody {
        ResponseBody(contentLength: Int(content.size)) { [self] writer in
            try await send(content, 0..<content.size, to: &writer, priority: priority, on: connection)
            withExtendedLifetime(hold) {}
            try await writer.finish(nil)
        }
    }

    /// Makes a response body of bytes in memory. If they are larger than the smallest piece, they count as used memory
    /// until they are sent or the response is dropped. Throws `UploadProblem` if the memory for responses is used up.
    package func body(
        of bytes: ByteBuffer, on connection: UploadConnection?
    ) throws(UploadProblem) -> ResponseBody {
        guard bytes.readableBytes > Self.minimumPieceBytes else { return ResponseBody(byteBuffer: bytes) }
        return body(of: bytes, try shares.take(bytes.readableBytes, of: .responseBytes, on: connection), on: connection)
    }

    /// - Parameter hold: Reserves the memory of the bytes.
    func body(of bytes: ByteBuffer, _ hold: ShareAccount.Hold?, on connection: UploadConnection?) -> ResponseBody {
        ResponseBody(contentLength: bytes.readableBytes) { writer in
            try await writer.write(bytes)
            try await connection?.flushed()
            withExtendedLifetime(hold) {}
            try await writer.finish(nil)
        }
    }
}

extension IncomingRequest {
    init(_ request: Request) { self.init(request.head, request.body) }
}

extension FormResponse {
    /// Converts the response to a response of Hummingbird.
    func response(within budget: ResponseBudget, on connection: UploadConnection?) -> Response {
        let content =
            switch body {
            case .bytes(let bytes, nil): ResponseBody(byteBuffer: bytes)
            case .bytes(let bytes, let hold): budget.body(of: bytes, hold, on: connection)
            case .record(_, let file, let hold, let priority):
                budget.body(of: file, hold, priority: priority, on: connection)
            }
        return Response(status: status, headers: headers, body: content)
    }
}

/// Counts the bytes of a body instead of sending them.
final class BodyLength: ResponseBodyWriter {
    private(set) var bytes = 0

    func write(_ buffer: ByteBuffer) async throws { bytes += buffer.readableBytes }

    /// Adds bytes to the count without reading them.
    func add(_ count: Int64) { bytes += Int(clamping: count) }

    func finish(_ trailingHeaders: HTTPFields?) async throws {}
}

extension Response {
    /// The same response without its body, but with the body's length (RFC 9110 §8.6).
    func withoutBody() async throws -> Response {
        var response = createHeadResponse()
        guard headers[.contentLength] == nil, status.kind == .successful else { return response }
        let length = BodyLength()
        try await body.write(length)
        response.headers[.contentLength] = String(length.bytes)
        return response
    }
}
