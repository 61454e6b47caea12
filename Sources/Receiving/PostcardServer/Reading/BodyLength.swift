import HTTPTypes
import Hummingbird

/// Counts the bytes of a body instead of sending them.
final class BodyLength: ResponseBodyWriter {
    private(set) var bytes = 0

    func write(_ buffer: ByteBuffer) async throws { bytes += buffer.readableBytes }

    /// Counts bytes without reading them.
    func add(_ count: Int64) { bytes += Int(clamping: count) }

    func finish(_ trailingHeaders: HTTPFields?) async throws {}
}

extension Response {
    /// The same response without its body, and with the length of the body (RFC 9110 §8.6).
    func withoutBody() async throws -> Response {
        var response = createHeadResponse()
        guard headers[.contentLength] == nil, status.kind == .successful else { return response }
        let length = BodyLength()
        try await body.write(length)
        response.headers[.contentLength] = String(length.bytes)
        return response
    }
}
