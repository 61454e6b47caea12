/// How one upload of a batch ended.
public struct UploadOutcome: Sendable {
    /// Which one it was: its place in the sequence that was given, from 0.
    public let index: Int

    /// The answer, whose status is one that is accepted, or why there is none: ``UploadError`` or what else
    /// ``UploadClient/upload(_:to:method:headerFields:progress:)`` throws, `CancellationError` where it was cancelled,
    /// and the errors of the closure that makes the forms.
    public let result: Result<UploadResponse, any Error>
}
