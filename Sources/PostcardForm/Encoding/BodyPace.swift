/// Says when the readers of a layout may hand out more bytes, and how many.
package protocol BodyPace: Sendable {
    /// Waits until bytes may be handed out.
    ///
    /// - Returns: How many; at least one.
    /// - Throws: `CancellationError`.
    func allowance() async throws -> Int

    /// Takes back what was allowed and not handed out.
    func takeBack(_ count: Int)
}
