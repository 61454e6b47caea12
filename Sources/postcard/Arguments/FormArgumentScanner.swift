import PostcardForm

/// Reads what stands behind the equals sign of a `-F`: a word, and attributes such as `;type=image/png`.
struct FormArgumentScanner {
    /// What may follow a word, in any case and with blanks around its semicolon.
    enum Attribute: String, CaseIterable {
        case type, filename, headers, encoder
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    /// A word in quotes, or what comes before the next attribute.
    mutating func word() -> String {
        if let quoted = quotedWord() { return quoted }
        let end = rest.indices.first { attribute(at: $0) != nil } ?? rest.endIndex
        var word = rest[..<end]
        // Blanks before an attribute belong to it; those at the end of all belong to the word.
        while end < rest.endIndex, word.last?.isBlank == true { word.removeLast() }
        rest = rest[end...]
        return String(decoding: word, as: UTF8.self)
    }

    /// The next attribute; `nil` at the end.
    mutating func nextAttribute() throws -> (Attribute, value: String)? {
        guard !rest.isEmpty else { return nil }
        guard let (attribute, end) = attribute(at: rest.startIndex) else {
            throw FormArgument.Fault(
                description:
                    "'\(String(decoding: rest, as: UTF8.self))' is not understood; expected ;type=, ;filename= or "
                    + ";headers=.")
        }
        rest = rest[end...]
        return (attribute, word())
    }

    /// The attribute whose semicolon stands at an index, blanks before it passed over, and where its value begins.
    private func attribute(at index: Int) -> (Attribute, end: Int)? {
        let start = rest[index...].drop(while: \.isBlank)
        guard start.first == UInt8(ascii: ";") else { return nil }
        let name = start.dropFirst().drop(while: \.isBlank)
        for attribute in Attribute.allCases {
            let expected = "\(attribute.rawValue)=".utf8
            if name.prefix(expected.count).elementsEqual(expected, by: { $0 | 0x20 == $1 | 0x20 }) {
                return (attribute, name.startIndex + expected.count)
            }
        }
        return nil
    }

    /// A word in quotes, `\"` and `\\` undone, where nothing but an attribute follows; a text such as
    /// `"yes" he said` is no such word.
    private mutating func quotedWord() -> String? {
        guard rest.first == UInt8(ascii: "\"") else { return nil }
        var word: [UInt8] = []
        var index = rest.startIndex + 1
        while index < rest.endIndex {
            let byte = rest[index]
            index += 1
            if byte == UInt8(ascii: "\"") {
                let following = rest[index...]
                guard following.allSatisfy(\.isBlank) || attribute(at: index) != nil else { return nil }
                rest = following.allSatisfy(\.isBlank) ? following[following.endIndex...] : following
                return String(decoding: word, as: UTF8.self)
            }
            let isEscape = byte == UInt8(ascii: "\\") && index < rest.endIndex
            if isEscape, rest[index] == UInt8(ascii: "\"") || rest[index] == UInt8(ascii: "\\") {
                word.append(rest[index])
                index += 1
            } else {
                word.append(byte)
            }
        }
        return nil
    }
}
