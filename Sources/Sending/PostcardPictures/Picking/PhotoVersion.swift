/// Which version of a photo or video in the library is sent.
public enum PhotoVersion: String, Sendable, Hashable, Codable {
    /// The item as it was taken or imported, byte for byte, without later edits.
    case original
    /// The item as the library shows it, with all edits. An item that was never edited is its original.
    case current
}
