/// Shows when an object is released: what holds the object also holds the witness.
///
/// ```swift
/// func upload() async throws -> AsyncStream<Never> {
///     let (witness, gone) = Witness.make()
///     try await client.upload(form, to: url) { _ in _ = witness }
///     return gone
/// }
/// for await _ in try await upload() {}
/// ```
package final class Witness: Sendable {
    private let left: AsyncStream<Never>.Continuation

    private init(_ left: AsyncStream<Never>.Continuation) {
        self.left = left
    }

    deinit {
        left.finish()
    }

    /// A witness, and a stream that ends when the witness is released.
    package static func make() -> (witness: Witness, gone: AsyncStream<Never>) {
        let (gone, left) = AsyncStream.makeStream(of: Never.self)
        return (Witness(left), gone)
    }
}
