package import PostcardFoundation

/// What servers may have of a form after all attempts so far.
///
/// Errors carry ``UploadError/Delivery``, which does not name the upload resource: anyone who knows its URL has access
/// to the upload.
package enum PossibleDelivery: Sendable, Hashable {
    /// No server has the whole form.
    case neverArrived
    /// A server has refused the form.
    case refused
    /// The whole form was sent, and what became of it is not known.
    ///
    /// - Parameter resource: The upload resource that it was first sent to, or `nil` for an ordinary request, or if the
    ///   resource is no longer known.
    case responseLost(resource: URL?)
    /// A server has accepted the form.
    case accepted

    /// Whether a server may have accepted the form. It may then know the form by its `Idempotency-Key`: a success
    /// counts although the form was not sent to its end again, and a 409 may mean that the form is still in progress.
    package var mayHaveArrived: Bool {
        switch self {
        case .neverArrived, .refused: false
        case .responseLost, .accepted: true
        }
    }

    /// Adds what a failed attempt says. No later failure says what became of an attempt whose response was lost.
    ///
    /// - Parameters:
    ///   - failure: What the failure says by itself.
    ///   - resource: The upload resource that the attempt sent the form to, and that is still known.
    mutating func add(_ failure: UploadError.Delivery, resource: URL?) {
        switch (self, failure) {
        case (_, .accepted): self = .accepted
        case (.accepted, _): break
        case (.responseLost(let lost), _): if lost != resource { self = .responseLost(resource: nil) }
        case (_, .responseLost): self = .responseLost(resource: resource)
        case (_, .neverArrived): self = .neverArrived
        case (_, .refused): self = .refused
        }
    }

    /// Records that an upload resource does not have the whole form. That rules out a lost form that was sent there,
    /// and no other.
    mutating func ruleOut(_ resource: URL) {
        if self == .responseLost(resource: resource) { self = .neverArrived }
    }

    /// What an error says about the delivery.
    var summary: UploadError.Delivery {
        switch self {
        case .neverArrived: .neverArrived
        case .refused: .refused
        case .responseLost: .responseLost
        case .accepted: .accepted
        }
    }
}
