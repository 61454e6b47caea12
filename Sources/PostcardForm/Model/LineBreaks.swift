/// What becomes of the line breaks in a form's texts and names.
public enum LineBreaks: Sendable, Hashable {
    /// They are sent as they were given, byte for byte.
    case asGiven
    /// A lone CR and a lone LF become CRLF, as browsers send what was typed into a `textarea` (HTML, "constructing
    /// the entry list" and "multipart/form-data encoding algorithm"). Filenames and files stay as they are.
    case normalized

    package func applied(to text: String) -> String {
        switch self {
        case .asGiven: text
        case .normalized: String(decoding: Self.normalized(text.utf8), as: UTF8.self)
        }
    }

    private static func normalized(_ text: String.UTF8View) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var follows: UInt8?
        for byte in text {
            switch (follows, byte) {
            case (.carriageReturn, .lineFeed): break
            case (_, .carriageReturn), (_, .lineFeed): result += [.carriageReturn, .lineFeed]
            default: result.append(byte)
            }
            follows = byte
        }
        return result
    }
}
