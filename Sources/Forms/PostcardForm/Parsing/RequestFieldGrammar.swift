import PostcardFoundation

/// The bytes that are allowed in the fields of a request's head.
///
/// All fields must be stream-safe: see ``CombiningMarks``. Some fields also have a grammar and a maximum length.
package enum RequestFieldGrammar {
    /// The reason why a field is refused.
    package enum Refusal: Sendable, Hashable {
        /// The field has more combining marks in a row than any text needs.
        case tooManyMarks(offset: Int)
        /// The field has a byte that its grammar does not allow.
        case wrongByte(UInt8, offset: Int, advice: String)
        case tooLong(maximumBytes: Int, advice: String)
    }

    /// The bytes that are allowed in the value of a field.
    private struct Rule: Sendable {
        /// The field's name in lower case.
        let name: String
        let maximumBytes: Int
        let bytes: Bytes
        /// The advice on what to send, as the object of a sentence.
        let advice: String
    }

    /// A set of allowed bytes.
    private enum Bytes: Sendable {
        /// Letters, digits and other characters of tokens (RFC 9110 §5.6.2), blanks, and the given characters.
        case tokens(and: StaticString)
        /// All visible ASCII characters, and blanks.
        case visible

        func contains(_ byte: UInt8) -> Bool {
            switch self {
            case .tokens(let others):
                byte.isTokenCharacter || byte.isBlank || others.withUTF8Buffer { $0.contains(byte) }
            case .visible: (0x20..<0x7F).contains(byte) || byte == .tab
            }
        }
    }

    private static let rules = [
        Rule(
            name: "host", maximumBytes: 300, bytes: .tokens(and: "[]:(),;=@"),
            advice: "the server's name, in Punycode if it is not ASCII, and its port"),
        Rule(name: "origin", maximumBytes: 512, bytes: .visible, advice: "the page's scheme, host and port"),
        Rule(
            name: "sec-fetch-site", maximumBytes: 64, bytes: .tokens(and: ";="),
            advice: "one of the words that browsers send"),
        Rule(
            name: "authorization", maximumBytes: 16 << 10, bytes: .visible,
            advice: "a scheme and its credentials in ASCII, such as Bearer and a token"),
        Rule(name: "connection", maximumBytes: 1 << 10, bytes: .tokens(and: ","), advice: "names of fields, or close"),
        Rule(
            name: "accept-language", maximumBytes: 4 << 10, bytes: .visible,
            advice: "a list of language tags, such as ko, en;q=0.8"),
        Rule(
            name: "content-encoding", maximumBytes: 256, bytes: .tokens(and: ","),
            advice: "the body as it is, without this field"),
        Rule(
            name: "content-type", maximumBytes: 4 << 10, bytes: .visible,
            advice: "multipart/form-data; boundary= and the boundary, in ASCII"),
    ]

    /// The reason why a field is refused; `nil` if the field is accepted.
    package static func refusal(ofField name: String, _ value: some Collection<UInt8>) -> Refusal? {
        check(value, of: name)
    }

    /// The reason why a field is refused. This method is not generic, which makes it faster for receivers' values.
    package static func refusal(ofField name: String, _ value: String.UTF8View) -> Refusal? { check(value, of: name) }

    private static func check(_ value: some Collection<UInt8>, of name: String) -> Refusal? {
        guard let rule = rules.first(where: { name.utf8.isEqualIgnoringCase($0.name) }) else {
            return tooManyMarks(in: value)
        }
        guard value.count <= rule.maximumBytes else {
            return .tooLong(maximumBytes: rule.maximumBytes, advice: rule.advice)
        }
        for (offset, byte) in value.enumerated() where !rule.bytes.contains(byte) {
            return .wrongByte(byte, offset: offset, advice: rule.advice)
        }
        return nil
    }

    /// The reason why a request's target is refused; `nil` if it is accepted. The decoded target is checked, because
    /// routes and queries are decoded before they are compared.
    package static func refusal(ofTarget target: some Collection<UInt8>) -> Refusal? { check(target: target) }

    /// The reason why a target is refused. This method is not generic, which makes it faster for receivers' targets.
    package static func refusal(ofTarget target: String.UTF8View) -> Refusal? { check(target: target) }

    private static func tooManyMarks(in text: some Collection<UInt8>) -> Refusal? {
        // Most texts are ASCII.
        guard text.contains(where: { $0 >= 0x80 }) else { return nil }
        return CombiningMarks.firstExcess(in: text).map(Refusal.tooManyMarks)
    }

    private static func check(target: some Collection<UInt8>) -> Refusal? {
        if let refusal = tooManyMarks(in: target) { return refusal }
        guard target.contains(.percent) else { return nil }
        return CombiningMarks.firstExcess(in: PercentEncoding.decoded(target).bytes).map {
            .tooManyMarks(offset: PercentEncoding.offset(ofDecoded: $0, in: Array(target)))
        }
    }
}

extension RequestFieldGrammar.Refusal {
    package var code: FormProblem.Code {
        switch self {
        case .tooManyMarks: .tooManyCombiningMarks
        case .wrongByte: .malformedRequestField
        case .tooLong: .requestFieldTooLong
        }
    }

    /// The problem, in a sentence. `field` is the name of the header field, or `target` for the target of the request.
    package func message(of field: String) -> String {
        switch self {
        case .tooManyMarks:
            "The request's \(field) has more than \(CombiningMarks.maximumInARow) combining marks in a row."
        case .wrongByte(let byte, let offset, _):
            "The request's \(field) has the byte 0x\([byte].hexadecimal.uppercased()) at offset \(offset), which this "
                + "field cannot have."
        case .tooLong(let maximumBytes, _): "The request's \(field) has more than \(maximumBytes) bytes."
        }
    }

    package var advice: String {
        switch self {
        case .tooManyMarks: "Send it without them: no text in any language has so many (UAX #15 §13)."
        case .wrongByte(_, _, let advice), .tooLong(_, let advice): "Send \(advice)."
        }
    }
}
