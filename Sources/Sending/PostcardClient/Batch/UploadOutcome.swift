/// How one upload of a batch ended.
public struct UploadOutcome: Sendable {
    /// The index of the upload in the sequence of items, from 0.
    public let index: Int

    /// The response, with an accepted status, or an error: what
    /// ``UploadClient/upload(_:to:method:headerFields:progress:)`` throws, `CancellationError` if the upload was
    /// cancelled, or an error of the closure that makes the forms.
    public let result: Result<UploadResponse, any Error>
}
