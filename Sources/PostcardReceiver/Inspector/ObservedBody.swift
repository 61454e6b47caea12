import Hummingbird

/// A request's body that tells a capture what goes by, and of which the rest can be read when its reader is done.
struct ObservedBody: AsyncSequence, Sendable {
    /// The body can be read once. Whoever reads on gets the same iterator.
    ///
    /// Unchecked: a request is answered by one task, and it reads the body first where the form is received, and then,
    /// when that has returned, where the request is kept.
    fileprivate final class Reader: @unchecked Sendable {
        private var iterator: RequestBody.AsyncIterator?
        private let body: RequestBody

        init(_ body: RequestBody) {
            self.body = body
        }

        @concurrent
        func next() async throws -> ByteBuffer? {
            var reading = iterator ?? body.makeAsyncIterator()
            defer { iterator = reading }
            return try await reading.next()
        }
    }

    fileprivate let reader: Reader
    private let capture: RequestCapture

    init(_ body: RequestBody, capture: RequestCapture) {
        reader = Reader(body)
        self.capture = capture
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let reader: Reader
        private let capture: RequestCapture

        fileprivate init(reader: Reader, capture: RequestCapture) {
            self.reader = reader
            self.capture = capture
        }

        func next() async throws -> ByteBuffer? {
            guard let chunk = try await reader.next() else {
                capture.bodyEnded()
                return nil
            }
            capture.took(chunk)
            return chunk
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(reader: reader, capture: capture)
    }

    /// Reads on after a refusal, as far as it would be kept: most refused bodies are short and here already, and what
    /// is wrong with a body is best said of all of it.
    func readRest() async {
        let iterator = makeAsyncIterator()
        // A body that breaks off is kept as far as it came.
        while capture.hasRoom, let chunk = try? await iterator.next() { _ = chunk }
    }
}
