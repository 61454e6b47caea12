import PostcardFoundation

// Decodes the value of one field.

extension ValueDecoder: SingleValueDecodingContainer {
    func decodeNil() -> Bool {
        if case .absent = fields.shape(at: place) { return true }
        return emptyIsNil && isEmptyText
    }

    func decode(_ type: Bool.Type) throws -> Bool {
        if options.absentBoolIsFalse, case .absent = fields.shape(at: place) { return false }
        let (text, part) = try text(for: type)
        return switch text.lowercased() {
        case "true", "on", "yes", "1": true
        case "false", "off", "no", "0": false
        default: throw invalid(part, type, "is neither true nor false.", advice: "Send true or false.")
        }
    }

    func decode(_ type: String.Type) throws -> String {
        try text(for: type).text
    }

    func decode(_ type: Double.Type) throws -> Double { try floatingPoint(type) }
    func decode(_ type: Float.Type) throws -> Float { try floatingPoint(type) }

    func decode(_ type: Int128.Type) throws -> Int128 { try integer(type) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(type) }

    func decode<Number: FixedWidthInteger & Decodable>(_ type: Number.Type) throws -> Number {
        try integer(type)
    }

    private func text(for type: any Any.Type) throws -> (text: String, part: ReceivedForm.Part) {
        let part = try part(for: type)
        guard !part.header.isFile else {
            throw failure(
                FormDecodingError(
                    .wrongShape, part, "is a file, and a text is wanted.", advice: "Send it without a filename."),
                type: type)
        }
        if let text = part.text(of: try bytes(of: part)) { return (try comparable(text, part, type), part) }
        throw failure(
            FormDecodingError(
                .notUTF8, part, "is not text in UTF-8, or in the charset that the form names.",
                advice: "Send texts in UTF-8."),
            type: type)
    }

    /// The content of a part, which may be on disk.
    private func bytes(of part: ReceivedForm.Part) throws -> Data {
        switch part.content {
        case .bytes(let bytes): bytes
        case .file(let url): try contents(of: url, part)
        }
    }

    /// Refuses a text that is slow to compare, because decoded types may compare it.
    private func comparable(_ text: String, _ part: ReceivedForm.Part, _ type: any Any.Type) throws -> String {
        guard CombiningMarks.firstExcess(in: text.utf8) != nil else { return text }
        throw invalid(
            part, type, "has more than \(CombiningMarks.maximumInARow) combining marks in a row.",
            advice: "Send the text without them.")
    }

    private func invalid(
        _ part: ReceivedForm.Part, _ type: any Any.Type, _ wrong: String, advice: String,
        underlyingError: (any Error)? = nil
    ) -> DecodingError {
        failure(
            FormDecodingError(.invalidValue, part, wrong, advice: advice, underlyingError: underlyingError), type: type)
    }

    private func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        let (text, part) = try text(for: type)
        if let number = Number(text) { return number }
        guard NumberText.isWhole(text) else {
            throw invalid(part, type, "is not a whole number.", advice: "Send digits alone, such as 42.")
        }
        throw outOfRange(part, type, advice: "Send a number from \(Number.min) to \(Number.max).")
    }

    private func floatingPoint<Number: BinaryFloatingPoint & LosslessStringConvertible>(
        _ type: Number.Type
    ) throws -> Number {
        let (text, part) = try text(for: type)
        if let number: Number = NumberText.floatingPoint(text) { return number }
        guard NumberText.isDecimal(text) else { throw notANumber(part, type) }
        throw outOfRange(part, type, advice: "Send a number of at most \(Number.greatestFiniteMagnitude).")
    }

    private func notANumber(_ part: ReceivedForm.Part, _ type: any Any.Type) -> DecodingError {
        invalid(part, type, "is not a number.", advice: "Send digits and a point, such as 42.5.")
    }

    private func outOfRange(_ part: ReceivedForm.Part, _ type: any Any.Type, advice: String) -> DecodingError {
        failure(FormDecodingError(.outOfRange, part, "is out of range.", advice: advice), type: type)
    }

    private func contents(of url: URL, _ part: ReceivedForm.Part) throws -> Data {
        do {
            return try Data(contentsOf: url)
        } catch {
            throw failure(
                FormDecodingError(
                    .fileUnreadable, part, "was received, and cannot be read back from disk.",
                    advice: "Decode the form before the receiver removes its files.", underlyingError: error))
        }
    }
}

// MARK: - Foundation's types

extension ValueDecoder {
    func decimal() throws -> Decimal {
        let (text, part) = try text(for: Decimal.self)
        if let number = NumberText.decimal(text) { return number }
        guard NumberText.isDecimal(text) else { throw notANumber(part, Decimal.self) }
        throw outOfRange(part, Decimal.self, advice: "Send a number of at most 38 digits.")
    }

    func date() throws -> Date {
        let (text, part) = try text(for: Date.self)
        let advice = options.dateStyle.example.map { "Send one such as \($0)." } ?? "Send one as the form asks for it."
        do {
            if let date = try options.dateStyle.read(text) { return date }
        } catch {
            throw invalid(part, Date.self, "is not a date.", advice: advice, underlyingError: error)
        }
        throw invalid(part, Date.self, "is not a date.", advice: advice)
    }

    func url() throws -> URL {
        let (text, part) = try text(for: URL.self)
        guard let url = URL(string: text) else {
            throw invalid(part, URL.self, "is not a URL.", advice: "Send one such as https://example.com/pets.")
        }
        return url
    }

    func identifier() throws -> UUID {
        let (text, part) = try text(for: UUID.self)
        guard let identifier = UUID(uuidString: text) else {
            throw invalid(
                part, UUID.self, "is not a UUID.", advice: "Send one such as 9F0B1A52-3C7D-4E11-8B0E-6A1D2C3F4B5A.")
        }
        return identifier
    }

    /// The bytes of a file, of a part that is not text, or of a text in base64.
    func data() throws -> Data {
        let part = try part(for: Data.self)
        let bytes = try bytes(of: part)
        let isText = part.header.contentType?.lowercased().hasPrefix("text/") != false
        if part.header.isFile || !isText || String(validating: bytes, as: UTF8.self) == nil { return bytes }
        guard let data = Data(base64Encoded: bytes) else {
            throw invalid(
                part, Data.self, "is neither a file nor base64.",
                advice: "Send it as a file, with a filename, or in base64.")
        }
        return data
    }

    func file() throws -> FormFile {
        let part = try part(for: FormFile.self)
        guard let file = FormFile(part) else {
            throw failure(
                FormDecodingError(
                    .wrongShape, part, "is a text, and a file is wanted.", advice: "Send it as a file, with a filename."
                ),
                type: FormFile.self)
        }
        return file
    }
}

/// Reads numbers from texts: decimal digits, a point, an exponent.
enum NumberText {
    /// Whether a text is an integer, even if no type can hold it.
    static func isWhole(_ text: String) -> Bool {
        let digits = unsigned(text)
        return !digits.isEmpty && digits.allSatisfy(\.isDigit)
    }

    /// The finite number in a text; `nil` for any other text.
    static func floatingPoint<Number: BinaryFloatingPoint & LosslessStringConvertible>(_ text: String) -> Number? {
        // Number's initializer also accepts hexadecimal digits, infinities and NaN.
        guard isDecimal(text), let number = Number(text), number.isFinite else { return nil }
        return number
    }

    /// The number in a text; `nil` if it has more than the 38 digits of a `Decimal`.
    static func decimal(_ text: String) -> Decimal? {
        guard isDecimal(text), significantDigits(text) <= 38 else { return nil }
        return Decimal(string: text)
    }

    /// Whether a text is a decimal number, with or without a fraction, even if no type can hold it.
    static func isDecimal(_ text: String) -> Bool {
        var rest = unsigned(text)
        let wholePart = rest.prefix(while: \.isDigit)
        rest = rest[wholePart.endIndex...]
        var digits = wholePart.count
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix(while: \.isDigit)
            digits += fraction.count
            rest = rest[fraction.endIndex...]
        }
        guard digits > 0 else { return false }
        if rest.isEmpty { return true }
        guard rest.removeFirst().asciiLowercased == UInt8(ascii: "e") else { return false }
        if let sign = rest.first, signs.contains(sign) { rest.removeFirst() }
        return !rest.isEmpty && rest.allSatisfy(\.isDigit)
    }

    private static let signs = [UInt8(ascii: "+"), UInt8(ascii: "-")]

    private static func unsigned(_ text: String) -> Substring.UTF8View {
        text.utf8.first.map(signs.contains) == true ? text.utf8.dropFirst() : text.utf8[...]
    }

    /// The number of digits before the exponent, without leading and trailing zeros.
    private static func significantDigits(_ text: String) -> Int {
        let digits = text.utf8.prefix { $0.asciiLowercased != UInt8(ascii: "e") }.filter(\.isDigit)
        let zero = UInt8(ascii: "0")
        guard let first = digits.firstIndex(where: { $0 != zero }), let last = digits.lastIndex(where: { $0 != zero })
        else { return 0 }
        return last - first + 1
    }
}
