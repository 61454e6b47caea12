/// The result of checking a file.
public enum ScreeningVerdict: Sendable, Hashable {
    /// The file may be kept.
    case accepted
    /// The form is refused. The reason is a sentence for the client.
    case refused(reason: String)
}
