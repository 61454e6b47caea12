/// XMP (ISO 16684-1): RDF in XML, in UTF-8, UTF-16 or UTF-32.
///
/// The names and values of removed properties are overwritten with spaces, so the XML stays well-formed. Names are
/// compared as bytes, without decoding.
struct XMPPacket {
    /// The document with one byte for each character: 0x80 for characters other than ASCII.
    private let characters: [UInt8]
    /// The minimum number of bytes for a character.
    private let width: Int
    /// The ranges of characters to overwrite.
    private var blanks: [Range<Int>] = []
    private var removed: RemovedContent = []

    /// The packet without places, persons and devices, in the same number of bytes.
    static func withoutLocation(_ bytes: [UInt8], _ removed: inout RemovedContent) throws(BlockError) -> [UInt8] {
        var packet = XMPPacket(bytes)
        try packet.scan()
        removed.formUnion(packet.removed)
        var result = bytes
        let space = packet.space(like: bytes)
        for blank in packet.blanks {
            for character in blank {
                result.replaceSubrange((character * packet.width)..<((character + 1) * packet.width), with: space)
            }
        }
        return result
    }

    static func empty(count: Int) -> [UInt8] {
        let document = Array("<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"/>".utf8)
        let spaces = [UInt8](repeating: space, count: max(count - document.count, 0))
        return document.count <= count ? document + spaces : [UInt8](repeating: space, count: count)
    }

    private init(_ bytes: [UInt8]) {
        // XML begins with "<", a blank or a byte order mark. Zeros around it show UTF-16 or UTF-32.
        let start = bytes.prefix(4) + [1, 1, 1, 1]
        let isMark = (start[0], start[1]) == (0xFF, 0xFE) || (start[0], start[1]) == (0xFE, 0xFF)
        switch (start[0] == 0, start[1] == 0, start[2] == 0, start[3] == 0) {
        case (true, true, _, _), (_, true, true, true): width = 4
        case _ where isMark && start[2] == 0 && start[3] == 0: width = 4
        case (true, _, _, _), (_, true, _, _): width = 2
        default: width = isMark ? 2 : 1
        }
        guard width > 1 else {
            characters = bytes
            return
        }
        let width = width
        characters = (0..<(bytes.count / width)).map { index in
            let units = bytes[(index * width)..<((index + 1) * width)]
            let sum = units.reduce(0) { $0 | $1 }
            return units.count { $0 != 0 } <= 1 && (units.first == sum || units.last == sum) ? sum : 0x80
        }
    }

    /// A space in the encoding and byte order of the document. The first "<" of the document shows both.
    private func space(like bytes: [UInt8]) -> [UInt8] {
        guard width > 1, let first = characters.firstIndex(of: UInt8(ascii: "<")) else { return [Self.space] }
        return bytes[(first * width)..<((first + 1) * width)].map { $0 == 0 ? 0 : Self.space }
    }

    // MARK: - XML

    private mutating func scan() throws(BlockError) {
        var index = 0
        var depth = 0
        /// The start and depth of the element that is being removed.
        var sensitive: (start: Int, depth: Int)?
        while let start = next("<", from: index) {
            if depth == 0 { clearText(in: index..<start) }
            if begins("<!--", at: start) {
                index = try end("-->", from: start)
            } else if begins("<![CDATA[", at: start) {
                index = try end("]]>", from: start)
            } else if begins("<?", at: start) {
                index = try end("?>", from: start)
            } else if begins("<!", at: start) {
                throw error(at: start, "the XMP has a document type, which it must not have")
            } else if begins("</", at: start) {
                index = try end(">", from: start)
                depth -= 1
                guard depth >= 0 else { throw error(at: start, "the XMP closes an element that is not open") }
                if let element = sensitive, element.depth == depth {
                    blanks.append(element.start..<index)
                    sensitive = nil
                }
            } else {
                let tag = try readTag(at: start, removesAttributes: sensitive == nil)
                index = tag.end
                if sensitive == nil, tag.isSensitive {
                    if tag.isEmpty { blanks.append(start..<index) } else { sensitive = (start, depth) }
                }
                if !tag.isEmpty { depth += 1 }
            }
        }
        let saysSomething = characters.dropFirst(markCount).contains { $0 != 0 && !isBlank($0) }
        guard index > 0 || !saysSomething else { throw error(at: 0, "the XMP is not XML") }
        guard depth == 0 else { throw error(at: characters.count, "the XMP ends inside an element") }
        if index > 0 { clearText(in: index..<characters.count) }
    }

    /// Clears text outside of all elements. It is invalid in XML, and would remain after the elements are removed.
    private mutating func clearText(in range: Range<Int>) {
        let text = range.lowerBound > 0 ? range : range.clamped(to: markCount..<characters.count)
        guard characters[text].contains(where: { $0 != 0 && !isBlank($0) }) else { return }
        blanks.append(text)
        removed.insert(.unused)
    }

    /// The number of characters of the byte order mark; 0 if there is none.
    private var markCount: Int {
        if width == 1 { return characters.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0 }
        return characters.first == 0x80 ? 1 : 0
    }

    /// Reads the start tag of an element. Records sensitive names even inside a removed element.
    private mutating func readTag(
        at start: Int, removesAttributes: Bool
    ) throws(BlockError) -> (isSensitive: Bool, end: Int, isEmpty: Bool) {
        let name = self.name(at: start + 1)
        guard !name.isEmpty else { throw error(at: start, "the XMP has a \"<\" that begins no tag") }
        var index = name.upperBound
        var sensitive: [Range<Int>] = []
        while true {
            index = behindBlanks(index)
            guard index < characters.count else { throw error(at: start, "the XMP ends inside a tag") }
            if begins(">", at: index) || begins("/>", at: index) { break }
            let attribute = self.name(at: index)
            let equals = behindBlanks(attribute.upperBound)
            let quote = behindBlanks(equals + 1)
            guard !attribute.isEmpty, begins("=", at: equals), begins("\"", at: quote) || begins("'", at: quote),
                let end = characters[(quote + 1)...].firstIndex(of: characters[quote])
            else { throw error(at: index, "the XMP has an attribute that cannot be read") }
            let name = characters[attribute]
            if !name.starts(with: "xmlns".utf8), let kind = SensitiveName.kind(of: name) {
                sensitive.append(index..<(end + 1))
                removed.formUnion(kind)
            }
            index = end + 1
        }
        let isEmpty = characters[index] == UInt8(ascii: "/")
        let kind = SensitiveName.kind(of: characters[name])
        removed.formUnion(kind ?? [])
        // A removed element is overwritten as a whole.
        if removesAttributes, kind == nil { blanks += sensitive }
        return (kind != nil, index + (isEmpty ? 2 : 1), isEmpty)
    }

    private func name(at start: Int) -> Range<Int> {
        var end = start
        while end < characters.count, !isBlank(characters[end]), !Self.delimiters.contains(characters[end]) { end += 1 }
        return start..<max(start, end)
    }

    private static let space = UInt8(ascii: " ")
    private static let delimiters = Array("=/><\"'".utf8)

    private func isBlank(_ character: UInt8) -> Bool {
        switch character {
        case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): true
        default: false
        }
    }

    private func behindBlanks(_ start: Int) -> Int {
        var index = start
        while index < characters.count, isBlank(characters[index]) { index += 1 }
        return index
    }

    private func begins(_ text: StaticString, at index: Int) -> Bool {
        guard index >= 0, text.utf8CodeUnitCount <= characters.count - index else { return false }
        return (0..<text.utf8CodeUnitCount).allSatisfy { characters[index + $0] == text.utf8Start[$0] }
    }

    private func next(_ text: StaticString, from start: Int) -> Int? {
        var index = start
        while index < characters.count {
            if characters[index] == text.utf8Start[0], begins(text, at: index) { return index }
            index += 1
        }
        return nil
    }

    /// The index after the next occurrence of a text.
    private func end(_ text: StaticString, from start: Int) throws(BlockError) -> Int {
        guard let found = next(text, from: start) else { throw error(at: start, "the XMP ends inside a tag") }
        return found + text.utf8CodeUnitCount
    }

    private func error(at character: Int, _ reason: String) -> BlockError {
        BlockError(at: character * width, reason)
    }
}
