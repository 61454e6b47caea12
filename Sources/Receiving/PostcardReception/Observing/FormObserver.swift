package import PostcardForm

/// Watches the parts of a form while it is received.
package protocol FormObserver: Sendable {
    /// - Parameter offset: The offset of the part's content.
    func partBegan(_ header: PartHeader, at offset: Int64)

    /// - Parameter count: How many further bytes of the part's content were read.
    func partRead(_ count: Int)

    /// The first bytes of the file that is being read show that it was damaged before it was sent.
    ///
    /// - Parameter offset: The offset of the part's content.
    func damageFound(_ damage: FileDamage, inFileAt offset: Int64, partIndex: Int)

    /// - Parameter text: The content of a text field, whose part has ended.
    func fieldEnded(text: [UInt8])

    /// The refusal that the client gets for a problem. An observer that examines the form may know its cause.
    func refusal(for problem: UploadProblem) async -> UploadProblem
}
