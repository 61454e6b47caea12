package import PostcardForm

/// Watches the parts of a form while it is received.
package protocol FormObserver: Sendable {
    /// - Parameter offset: The offset of the part's content.
    func partBegan(_ header: PartHeader, at offset: Int64)

    /// - Parameter count: How many further bytes of the part's content were read.
    func partRead(_ count: Int)

    /// - Parameter text: The content of a text field, whose part has ended.
    func fieldEnded(text: [UInt8])
}
