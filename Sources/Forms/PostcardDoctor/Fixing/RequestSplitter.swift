/// Splits a request into its head and its body, and joins the chunks of the body. A body without a request is passed on
/// as it is.
package struct RequestSplitter: Sendable {
    private enum State {
        case head([UInt8])
        case body
        case chunks(ChunkedBody)
    }

    private let head: RequestHead?
    private var state: State

    /// - Parameter explanation: That of the same input.
    package init(_ explanation: Explanation) {
        head = explanation.head
        state = head == nil ? .body : .head([])
    }

    /// Reads the next bytes of the input.
    ///
    /// - Parameters:
    ///   - handOnHead: Receives the whole head, once.
    ///   - handOnBody: Receives the bytes of the body.
    package mutating func read(
        _ chunk: RawSpan, handOnHead: ([UInt8]) throws -> Void = { _ in }, handOnBody: (RawSpan) throws -> Void
    ) rethrows {
        switch state {
        case .body: try handOnBody(chunk)
        case .chunks(var body):
            var pieces: [UInt8] = []
            body.read(chunk) { piece in piece.withUnsafeBytes { pieces += $0 } }
            state = .chunks(body)
            let bytes = pieces[...]
            try handOnBody(bytes.span.bytes)
        case .head(var bytes):
            guard let head else { return }
            // Emptied first, because an array with two owners is copied when it grows.
            state = .body
            let count = min(head.length - bytes.count, chunk.byteCount)
            chunk.extracting(first: count).withUnsafeBytes { bytes += $0 }
            guard bytes.count == head.length else {
                state = .head(bytes)
                return
            }
            if head.isChunked { state = .chunks(ChunkedBody()) }
            try handOnHead(bytes)
            try read(chunk.extracting(count...), handOnHead: handOnHead, handOnBody: handOnBody)
        }
    }
}
