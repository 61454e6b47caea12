public import PostcardFoundation

/// Changes parts of a form before it is sent, such as photos that must fit the server's limit.
///
/// Set it as ``FormPart/preparation``. Clients and queues prepare a form before they lay it out. `PostcardPictures` has
/// the preparation for pictures, `PictureFitting`.
///
/// All parts of a form whose preparations are equal are prepared in one call, so that they can share the bytes that the
/// form may have.
public protocol FormPreparation: Sendable, Hashable {
    /// Whether the result depends on the server's limits. If a server refuses the form and reports a smaller limit than
    /// was known, the form is prepared and sent again.
    var followsServerLimit: Bool { get }

    /// By what a ``PickedItemFinder`` makes the preparation again in a later run of the app, for a form with picked
    /// items in a queue. Defaults to `nil`: such a form is not completed by a later run.
    var record: Data? { get }

    /// Prepares parts.
    ///
    /// - Parameters:
    ///   - parts: The parts, in the order of the form.
    ///   - context: What is known of the rest of the form and of the server.
    /// - Returns: As many parts, in the same order.
    /// - Throws: An error that fails the upload, unchanged. `CancellationError` if the task is cancelled. If the form
    ///   is prepared again because the server has refused it, the upload fails with the refusal instead, and this error
    ///   is its underlying one.
    func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart]
}

extension FormPreparation {
    public var record: Data? { nil }
}
