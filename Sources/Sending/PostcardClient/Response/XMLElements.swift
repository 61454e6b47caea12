import PostcardFoundation

/// The elements with nothing but text in an XML document, such as the errors of object stores.
///
/// Those documents are flat, and some stores write them slightly wrong. Foundation's parser is a library of its own on
/// Linux, with libxml2 behind it, which no app should need for six elements. So this only looks for `<Name>text</Name>`,
/// and ignores attributes and everything else. What it returns is shown, and decides nothing but advice and whether a
/// form is replaced by a new one.
struct XMLElements: Sendable {
    private let texts: [String: String]

    /// Longer documents are not read further.
    private static let maximumBytes = 64 << 10

    init(_ bytes: some Collection<UInt8>) {
        let text = String(streamSafe: bytes.prefix(Self.maximumBytes))
        var texts: [String: String] = [:]
        var rest = text[...]
        while let start = rest.firstIndex(of: "<") {
            rest = rest[start...].dropFirst()
            guard let end = rest.firstIndex(of: ">") else { break }
            let name = rest[..<end].prefix { !$0.isWhitespace }
            rest = rest[end...].dropFirst()
            guard !name.hasPrefix("/"), !name.hasPrefix("?"), let next = rest.firstIndex(of: "<"),
                rest[next...].hasPrefix("</\(name)>")
            else { continue }
            // Of several, the first: that of the error itself.
            if texts[String(name)] == nil { texts[String(name)] = Self.unescaped(rest[..<next]) }
        }
        self.texts = texts
    }

    /// The text of the first element of the name.
    subscript(name: String) -> String? { texts[name] }

    private static func unescaped(_ text: Substring) -> String {
        var result = ""
        var rest = text
        while let start = rest.firstIndex(of: "&") {
            result += rest[..<start]
            rest = rest[start...]
            // No name is longer, and a text of nothing but ampersands must not be searched again and again.
            let name = rest.dropFirst().prefix(8).prefix { $0 != ";" }
            guard name.endIndex < rest.endIndex, rest[name.endIndex] == ";",
                let character = Unicode.Scalar(xmlReference: name)
            else {
                result += "&"
                rest = rest.dropFirst()
                continue
            }
            result.unicodeScalars.append(character)
            rest = rest[name.endIndex...].dropFirst()
        }
        return result + rest
    }
}
