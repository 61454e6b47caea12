/// The content of a part as it was sent.
public struct SentPart: Sendable, Hashable {
    /// The index of the part in the form, from 0.
    public let index: Int

    /// The name of the form's field.
    public let name: String

    /// The name of the file; `nil` for a text field.
    public let filename: String?

    /// The number of bytes of its content.
    public let size: Int64

    /// The SHA-256 of its content, in lower-case hexadecimal.
    public let sha256: String

    /// Whether the part is a file rather than a text field.
    public var isFile: Bool { filename != nil }
}

extension SentPart: CustomStringConvertible {
    /// Such as `the file "cat.jpg" (field "petImage", part 2)`; parts are counted from 1 for people.
    public var description: String {
        let field = "field \(name.debugDescription), part \(index + 1)"
        return filename.map { "the file \($0.debugDescription) (\(field))" } ?? "the \(field)"
    }
}
