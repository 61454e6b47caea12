import PostcardForm

/// The kind of a body that is not a form.
enum BodyKind: CaseIterable {
    case json, urlEncoded, base64, percentEncoded, compressed, withoutLineBreaks, escapedLineBreaks

    var code: FormProblem.Code {
        switch self {
        case .json: .jsonBody
        case .urlEncoded: .urlEncodedBody
        case .base64: .base64Body
        case .percentEncoded: .percentEncodedBody
        case .compressed: .compressedBody
        case .withoutLineBreaks: .withoutLineBreaks
        case .escapedLineBreaks: .escapedLineBreaks
        }
    }

    /// Whether the body begins with the signature of gzip (RFC 1952 §2.3.1).
    static func isGzip(_ buffer: BodyBuffer) -> Bool { buffer.holds([0x1F, 0x8B, 0x08], at: 0) }

    /// Recognizes a form whose line breaks were removed or escaped, by the body's first bytes. Line
    /// breaks are allowed only at the end.
    init?(lineOf buffer: BodyBuffer) {
        var line = buffer.bytes[...]
        while let last = line.last, last == .lineFeed || last == .carriageReturn { line.removeLast() }
        countSteps(line.count)
        let start = line.drop { $0 == .quote }.prefix(1024)
        guard start.starts(with: "--".utf8), Self.holds("form-data", start), !Self.holds("%0a", start),
            !line.contains(where: { $0 == .lineFeed || $0 == .carriageReturn })
        else { return nil }
        let isEscaped = [#"\n"#, #"\u000a"#, #"\x0a"#].contains { Self.holds($0, start) }
        self = isEscaped ? .escapedLineBreaks : .withoutLineBreaks
    }

    /// Recognizes the kind of a body by its first bytes. `isEncoded` says whether it is compressed according to the
    /// head.
    init?(_ buffer: BodyBuffer, isEncoded: Bool) {
        if isEncoded || Self.isGzip(buffer) {
            self = .compressed
            return
        }
        let bytes = buffer.bytes.prefix(1024)
        let text = bytes.drop { $0.isBlank || $0 == .carriageReturn || $0 == .lineFeed }
        guard let first = text.first else { return nil }
        if Self.isJSON(text, first) {
            self = .json
        } else if Self.begins(text, with: "--"), Self.holds("%0d%0a", text) || Self.holds("%0a", text) {
            self = .percentEncoded
        } else if Self.begins(text, with: "%2d%2d"), Self.holds("%0d%0a", text) {
            self = .percentEncoded
        } else if Self.isBase64(text) {
            self = .base64
        } else if Self.isURLEncoded(text) {
            self = .urlEncoded
        } else {
            return nil
        }
    }

    private static func isJSON(_ text: ArraySlice<UInt8>, _ first: UInt8) -> Bool {
        guard first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else { return false }
        let next = text.dropFirst().first { !$0.isBlank && $0 != .carriageReturn && $0 != .lineFeed }
        return next.map { "\"{[}]-0123456789tfn".utf8.contains($0) } ?? false
    }

    /// Whether a text is a form in base64, where two dashes are `LS0` or `LS1`, and CRLF with two dashes is `DQotL`.
    private static func isBase64(_ text: ArraySlice<UInt8>) -> Bool {
        guard ["LS0", "LS1", "DQotL"].contains(where: { text.starts(with: $0.utf8) }), text.count >= 16 else {
            return false
        }
        return text.allSatisfy {
            $0.isLetter || $0.isDigit
                || [.slash, .equals, .carriageReturn, .lineFeed, UInt8(ascii: "+"), .dash, UInt8(ascii: "_")].contains(
                    $0)
        }
    }

    private static func isURLEncoded(_ text: ArraySlice<UInt8>) -> Bool {
        guard let equals = text.firstIndex(of: .equals), equals > text.startIndex else { return false }
        let isName = text[..<equals].allSatisfy {
            $0.isTokenCharacter || $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "]")
        }
        return isName && text.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    private static func begins(_ text: ArraySlice<UInt8>, with lowercase: String) -> Bool {
        text.prefix(lowercase.utf8.count).map { $0.asciiLowercased }.elementsEqual(lowercase.utf8)
    }

    private static func holds(_ lowercase: String, _ text: ArraySlice<UInt8>) -> Bool {
        let bytes = text.map { $0.asciiLowercased }
        return ByteSearch(lowercase.utf8).firstIndex(in: bytes, from: 0, end: bytes.count) != nil
    }
}
