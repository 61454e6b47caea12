import PostcardFoundation

/// An XML element in a response of the store.
struct XMLNode: Sendable {
    let name: String
    var text = ""
    var children: [XMLNode] = []

    func text(of name: String) -> String? { children.first { $0.name == name }?.text }

    /// Parses the elements of a document and their text, without attributes; `nil` if the bytes are not XML in UTF-8,
    /// contain a document type, or have more than 64 levels.
    ///
    /// Foundation's parser would load libxml2 and ICU into every program that uses this module.
    static func root(of bytes: some Sequence<UInt8>) -> XMLNode? {
        var reader = XMLReader(rest: Array(bytes)[...])
        while reader.root == nil {
            guard !reader.rest.isEmpty, reader.readNext() else { return nil }
        }
        return reader.root
    }
}

private struct XMLReader {
    static let maximumDepth = 64

    /// The unread bytes of the document.
    var rest: ArraySlice<UInt8>
    /// The open elements, outermost first, each with its name as written and its text.
    private var open: [(name: ArraySlice<UInt8>, text: [UInt8], node: XMLNode)] = []
    private(set) var root: XMLNode?

    init(rest: ArraySlice<UInt8>) {
        self.rest = rest
        skip("\u{FEFF}")
    }

    /// Reads a tag, a text or another item. Returns `false` if this fails.
    mutating func readNext() -> Bool {
        if skip("<!--") { return through("-->") != nil }
        if skip("<?") { return through("?>") != nil }
        if skip("<![CDATA[") {
            guard let text = through("]]>"), !open.isEmpty else { return false }
            open[open.count - 1].text += text
            return true
        }
        if skip("</") { return through(">").map { close($0.prefix { !Self.isSpace($0) }) } ?? false }
        if skip("<") { return openElement() }
        let text = rest.prefix { $0 != UInt8(ascii: "<") }
        rest = rest[text.endIndex...]
        guard !open.isEmpty else { return text.allSatisfy(Self.isSpace) }
        return appendDecoded(text)
    }

    private mutating func openElement() -> Bool {
        var quote: UInt8?
        let end = rest.firstIndex { byte in
            if quote != nil {
                if byte == quote { quote = nil }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            }
            return quote == nil && byte == UInt8(ascii: ">")
        }
        guard let end, open.count < Self.maximumDepth else { return false }
        let tag = rest[..<end]
        rest = rest[(end + 1)...]
        let name = tag.prefix { !Self.isSpace($0) && $0 != UInt8(ascii: "/") }
        guard let first = name.first, first != UInt8(ascii: "!") else { return false }
        // A name may have a namespace prefix.
        let local = name.split(separator: UInt8(ascii: ":")).last ?? name
        open.append((name, [], XMLNode(name: String(streamSafe: local))))
        return tag.last != UInt8(ascii: "/") || close(name)
    }

    private mutating func close(_ name: ArraySlice<UInt8>) -> Bool {
        guard let last = open.popLast(), last.name.elementsEqual(name) else { return false }
        var node = last.node
        node.text = String(streamSafe: last.text)
        if open.isEmpty { root = node } else { open[open.count - 1].node.children.append(node) }
        return true
    }

    @discardableResult
    private mutating func skip(_ text: String) -> Bool {
        guard rest.starts(with: text.utf8) else { return false }
        rest = rest.dropFirst(text.utf8.count)
        return true
    }

    /// Reads the bytes before a text, and skips the text; `nil` if the text is missing.
    private mutating func through(_ text: String) -> ArraySlice<UInt8>? {
        var end = rest.startIndex
        while end < rest.endIndex {
            if rest[end...].starts(with: text.utf8) {
                defer { rest = rest[(end + text.utf8.count)...] }
                return rest[..<end]
            }
            end += 1
        }
        return nil
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }

    /// Decodes a text and appends it to the open element. Returns `false` if the text contains an unknown reference.
    private mutating func appendDecoded(_ text: ArraySlice<UInt8>) -> Bool {
        let pieces = text.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        open[open.count - 1].text += pieces[0]
        for piece in pieces.dropFirst() {
            guard let end = piece.firstIndex(of: UInt8(ascii: ";")),
                let scalar = Unicode.Scalar(xmlReference: String(streamSafe: piece[..<end]))
            else { return false }
            open[open.count - 1].text += Array(String(scalar).utf8) + piece[(end + 1)...]
        }
        return true
    }
}

/// Parses times in the formats of stores.
enum StoreTime {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Parses the value of a field such as `Date` (RFC 9110 §5.6.7), in the only format that may be sent.
    static func date(ofField text: String) -> Date? {
        let words = text.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let month = months.firstIndex(of: String(words[2])) else {
            return nil
        }
        let number = month + 1
        return date(of: "\(words[3])-\(number < 10 ? "0" : "")\(number)-\(words[1])T\(words[4])Z")
    }

    /// Parses a time in a listing, such as `2026-11-25T01:02:03.123Z`.
    static func date(of text: some StringProtocol) -> Date? {
        let text = String(text)
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: text.contains("."))
        return try? Date(text, strategy: style)
    }
}
