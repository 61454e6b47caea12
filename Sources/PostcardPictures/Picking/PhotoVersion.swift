/// Which version of a photo or video in the library is sent.
public enum PhotoVersion: Sendable, Hashable {
    /// As it was taken or imported, byte for byte, without later edits.
    case original
    /// As the library shows it, with all edits. An item that was never edited is its original.
    case current
}
